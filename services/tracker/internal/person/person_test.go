package person_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/person"
)

var now = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

func refusal(t *testing.T, err error, class fault.Class, field string) *fault.Error {
	t.Helper()
	f, ok := fault.As(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, class, f.Class)
	require.Equal(t, field, f.Field)
	return f
}

func mark(t *testing.T, r *person.Record, m person.Mark) {
	t.Helper()
	_, err := r.Mark(m)
	require.NoError(t, err)
}

func TestWhatIsReadAndUnreadAreExceptionsToThePlaceSeenThrough(t *testing.T) {
	t.Parallel()
	r := &person.Record{Handle: "ines"}
	mark(t, r, person.Mark{Read: []int64{5, 9}})
	require.Equal(t, []int64{5, 9}, r.Read)
	mark(t, r, person.Mark{ReadThrough: 7})
	require.Equal(t, []int64{9}, r.Read, "what the place covers is no exception any more")
	mark(t, r, person.Mark{Unread: []int64{6}})
	require.Equal(t, []int64{6}, r.Unread)
	require.True(t, r.HasRead(5))
	require.False(t, r.HasRead(6))
	require.False(t, r.HasRead(8))
	require.True(t, r.HasRead(9))
	mark(t, r, person.Mark{ReadThrough: 8})
	require.True(t, r.HasRead(6), "everything up to the place is read")
}

func TestReadThroughOnlyMovesForward(t *testing.T) {
	t.Parallel()
	r := &person.Record{Handle: "ines", SeenThrough: 10, Version: 3}
	changed, err := r.Mark(person.Mark{ReadThrough: 4})
	require.NoError(t, err)
	require.False(t, changed)
	require.Equal(t, int64(10), r.SeenThrough)
	require.Equal(t, int32(3), r.Version)
}

func TestANoticeNamedTwiceIsInvalid(t *testing.T) {
	t.Parallel()
	for field, m := range map[string]person.Mark{
		"read[1]":     {Read: []int64{1, 1}},
		"unread[0]":   {Read: []int64{1}, Unread: []int64{1}},
		"unsnooze[0]": {Unread: []int64{2}, Unsnooze: []int64{2}},
		"snooze[0]":   {Read: []int64{3}, Snooze: []person.Snooze{{Record: 3, Until: now.Add(time.Hour)}}},
	} {
		_, err := m.Records()
		refusal(t, err, fault.Invalid, field)
	}
	records, err := person.Mark{Read: []int64{1}, Unread: []int64{2}, Snooze: []person.Snooze{{Record: 3}}}.Records()
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2, 3}, records)
}

func TestASnoozeLiesInTheFutureAndAtMostAYearAhead(t *testing.T) {
	t.Parallel()
	for _, until := range []time.Time{now, now.Add(-time.Second), now.AddDate(0, 0, 365).Add(time.Second)} {
		refusal(t, person.Mark{Snooze: []person.Snooze{{Record: 1, Until: until}}}.Check(now), fault.Invalid, "snooze[0].until")
	}
	for _, until := range []time.Time{now.Add(time.Microsecond), now.AddDate(0, 0, 365)} {
		require.NoError(t, person.Mark{Snooze: []person.Snooze{{Record: 1, Until: until}}}.Check(now))
	}
}

func TestASnoozeIsDueWhenItsTimeHasCome(t *testing.T) {
	t.Parallel()
	r := &person.Record{Handle: "ines"}
	mark(t, r, person.Mark{Snooze: []person.Snooze{{Record: 4, Until: now.Add(time.Hour)}, {Record: 2, Until: now.Add(time.Minute)}}})
	require.Empty(t, r.Due(now))
	require.Equal(t, []int64{2}, r.Due(now.Add(time.Minute)))
	require.Equal(t, []int64{2, 4}, r.Due(now.Add(time.Hour)))
	mark(t, r, person.Mark{Snooze: []person.Snooze{{Record: 2, Until: now.Add(2 * time.Hour)}}})
	require.Len(t, r.Snoozed, 2, "a later time replaces an earlier one")
	mark(t, r, person.Mark{Unsnooze: []int64{2}, Read: []int64{4}})
	require.Empty(t, r.Snoozed, "what is read is not put off any more")
}

func TestEachListHolds256AndIsThenFull(t *testing.T) {
	t.Parallel()
	many := make([]int64, person.MaxMarks)
	for n := range many {
		many[n] = int64(n) + 100
	}
	one := int64(person.MaxMarks) + 100
	var snoozes []person.Snooze
	for _, record := range many {
		snoozes = append(snoozes, person.Snooze{Record: record, Until: now.Add(time.Hour)})
	}
	for field, marks := range map[string][2]person.Mark{
		"read":   {{Read: many}, {Read: []int64{one}}},
		"unread": {{ReadThrough: 10_000, Unread: many}, {Unread: []int64{one}}},
		"snooze": {{Snooze: snoozes}, {Snooze: []person.Snooze{{Record: one, Until: now.Add(time.Hour)}}}},
	} {
		r := &person.Record{Handle: "ines"}
		mark(t, r, marks[0])
		before := *r
		_, err := r.Mark(marks[1])
		refusal(t, err, fault.InboxFull, field)
		require.Equal(t, before, *r, "a refusal leaves the record as it is")
	}
}

func TestReasonsAreAClosedSetAndAnEmptyRecordHasTheUsualOnes(t *testing.T) {
	t.Parallel()
	r := &person.Record{}
	require.Equal(t, []string{"mention", "asked", "answered", "assignee", "unassigned", "reporter", "unblocked", "prioritised"}, r.PrimaryReasons())
	require.Contains(t, refusal(t, person.Mark{Primary: []string{"asked", "boss"}}.Check(now), fault.Invalid, "primary_reasons[1]").Message, "lead_fallback")
	mark(t, r, person.Mark{Primary: []string{"asked"}})
	require.Equal(t, []string{"asked"}, r.PrimaryReasons())
	mark(t, r, person.Mark{UsualPrimary: true})
	require.Len(t, r.PrimaryReasons(), 8)
	refusal(t, person.Mark{Primary: []string{"asked"}, UsualPrimary: true}.Check(now), fault.Invalid, "clear")
}

func TestAnOrderSetBySomebodyElseSaysWhoSetItAndWhatIsNew(t *testing.T) {
	t.Parallel()
	a, b := uuid.New(), uuid.New()
	r := &person.Record{Handle: "ines"}
	added, changed := r.Prioritise([]uuid.UUID{a}, "lead", now)
	require.True(t, changed)
	require.Equal(t, []uuid.UUID{a}, added)
	require.Equal(t, "lead", r.PrioritiesBy)
	added, changed = r.Prioritise([]uuid.UUID{b, a}, "ines", now)
	require.True(t, changed)
	require.Equal(t, []uuid.UUID{b}, added)
	require.Empty(t, r.PrioritiesBy)
	_, changed = r.Prioritise([]uuid.UUID{b, a}, "lead", now)
	require.False(t, changed, "the same order is no change")
	require.Equal(t, "2", refusal(t, r.Match(ptr(int32(1))), fault.StaleVersion, "if_match").Facts["current_version"])
	require.NoError(t, r.Match(ptr(int32(2))))
	require.NoError(t, r.Match(nil))
}

func TestPinsHold32ViewsAnd64Favourites(t *testing.T) {
	t.Parallel()
	ids := make([]uuid.UUID, 65)
	for n := range ids {
		ids[n] = uuid.New()
	}
	r := &person.Record{Handle: "ines"}
	changed, err := r.Pin(&person.Change{Add: ids[:32]}, &person.Change{Replace: true, Set: ids[:64]})
	require.NoError(t, err)
	require.True(t, changed)
	_, err = r.Pin(&person.Change{Add: ids[32:33]}, nil)
	refusal(t, err, fault.Invalid, "views")
	_, err = r.Pin(nil, &person.Change{Replace: true, Set: ids})
	refusal(t, err, fault.Invalid, "favorites")
	changed, err = r.Pin(&person.Change{Remove: ids[1:32], Add: ids[:1]}, &person.Change{Replace: true})
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, ids[:1], r.Views)
	require.Empty(t, r.Favorites)
	changed, err = r.Pin(&person.Change{Add: ids[:1]}, nil)
	require.NoError(t, err)
	require.False(t, changed)
	require.Equal(t, int32(2), r.Version)
}

// A record agrees with a plain set of what is read, whatever is marked.
func TestMarksAgreeWithAPlainSet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, read := &person.Record{}, map[int64]bool{}
		through := int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "marks") {
			record := rapid.Int64Range(1, 20).Draw(t, "record")
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				_, err := r.Mark(person.Mark{Read: []int64{record}})
				require.NoError(t, err)
				read[record] = true
			case 1:
				_, err := r.Mark(person.Mark{Unread: []int64{record}})
				require.NoError(t, err)
				read[record] = false
			default:
				_, err := r.Mark(person.Mark{ReadThrough: record})
				require.NoError(t, err)
				if record <= through {
					continue
				}
				through = record
				for n := range through {
					read[n+1] = true
				}
			}
			for n := int64(1); n <= 20; n++ {
				require.Equal(t, read[n], r.HasRead(n), fmt.Sprint(n))
			}
			require.True(t, slices.IsSorted(r.Read) && slices.IsSorted(r.Unread))
		}
	})
}

func ptr[T any](v T) *T { return &v }
