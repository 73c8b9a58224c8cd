package query_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/query"
)

func zone(t require.TestingT, name string) *time.Location {
	z, err := time.LoadLocation(name)
	require.NoError(t, err)
	return z
}

func span(t *testing.T, text string, now time.Time) query.Span {
	t.Helper()
	w, err := query.ParseWhen("due", text)
	require.NoError(t, err)
	return w.Span(now)
}

func local(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.Format("2006-01-02T15:04-07:00")
}

func TestDaysAreCutAtTheCompanysMidnightAcrossDaylightSavingChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone, now, text, from, to string
		hours                     float64
	}{
		// Clocks go forward at 02:00 on 29 March 2026: the day has 23 hours; on 25 October it has 25.
		{"Europe/Berlin", "2026-03-29T12:00", "today", "2026-03-29T00:00+01:00", "2026-03-30T00:00+02:00", 23},
		{"Europe/Berlin", "2026-10-25T12:00", "today", "2026-10-25T00:00+02:00", "2026-10-26T00:00+01:00", 25},
		{"Europe/Berlin", "2026-03-28T23:30", "tomorrow", "2026-03-29T00:00+01:00", "2026-03-30T00:00+02:00", 23},
		{"Europe/Berlin", "2026-03-30T00:30", "thisweek", "2026-03-30T00:00+02:00", "2026-04-06T00:00+02:00", 168},
		{"Europe/Berlin", "2026-03-29T23:59", "thisweek", "2026-03-23T00:00+01:00", "2026-03-30T00:00+02:00", 167},
		{"Europe/Berlin", "2026-03-29T12:00", "next7", "2026-03-29T00:00+01:00", "2026-04-05T00:00+02:00", 167},
		{"Europe/Berlin", "2026-10-25T12:00", "last7", "2026-10-19T00:00+02:00", "2026-10-26T00:00+01:00", 169},
		{"Europe/Berlin", "2026-10-25T12:00", "thismonth", "2026-10-01T00:00+02:00", "2026-11-01T00:00+01:00", 745},
		{"Europe/Berlin", "2026-03-31T12:00", "lastmonth", "2026-02-01T00:00+01:00", "2026-03-01T00:00+01:00", 672},
		{"America/New_York", "2026-03-08T12:00", "today", "2026-03-08T00:00-05:00", "2026-03-09T00:00-04:00", 23},
		{"America/New_York", "2026-11-01T12:00", "today", "2026-11-01T00:00-04:00", "2026-11-02T00:00-05:00", 25},
		{"America/New_York", "2026-11-01T01:30", "range:sow..eow", "2026-10-26T00:00-04:00", "2026-11-02T00:00-05:00", 169},
		// Lord Howe Island moves its clocks by half an hour.
		{"Australia/Lord_Howe", "2026-04-05T12:00", "today", "2026-04-05T00:00+11:00", "2026-04-06T00:00+10:30", 24.5},
		{"Australia/Lord_Howe", "2026-10-04T12:00", "today", "2026-10-04T00:00+10:30", "2026-10-05T00:00+11:00", 23.5},
		{"Asia/Kolkata", "2026-03-29T00:10", "today", "2026-03-29T00:00+05:30", "2026-03-30T00:00+05:30", 24},
		{"Asia/Kolkata", "2026-03-29T00:10", "range:som-1m..eom-1m", "2026-02-01T00:00+05:30", "2026-03-01T00:00+05:30", 672},
		// Beirut skips midnight: 29 March 2026 begins at one o'clock.
		{"Asia/Beirut", "2026-03-29T12:00", "today", "2026-03-29T01:00+03:00", "2026-03-30T00:00+03:00", 23},
	} {
		now, err := time.ParseInLocation("2006-01-02T15:04", c.now, zone(t, c.zone))
		require.NoError(t, err)
		s := span(t, c.text, now)
		require.Equal(t, c.from, local(s.From), "%v", c)
		require.Equal(t, c.to, local(s.To), "%v", c)
		require.InDelta(t, c.hours, s.To.Sub(*s.From).Hours(), 0, "%v", c)
	}
}

func TestComparisonsAreWithTheWholeDay(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 15, 0, 0, 0, zone(t, "Europe/Berlin")) // a Monday
	for text, want := range map[string][4]string{
		"lt:today":                 {"", "2026-11-30T00:00+01:00", "", "2026-11-30"},
		"lte:today":                {"", "2026-12-01T00:00+01:00", "", "2026-12-01"},
		"gt:today":                 {"2026-12-01T00:00+01:00", "", "2026-12-01", ""},
		"gte:+3d":                  {"2026-12-03T00:00+01:00", "", "2026-12-03", ""},
		"2026-12-24":               {"2026-12-24T00:00+01:00", "2026-12-25T00:00+01:00", "2026-12-24", "2026-12-25"},
		"range:sow..eow":           {"2026-11-30T00:00+01:00", "2026-12-07T00:00+01:00", "2026-11-30", "2026-12-07"},
		"range:2026-01-31+1m..-1d": {"2026-02-28T00:00+01:00", "2026-11-30T00:00+01:00", "2026-02-28", "2026-11-30"},
		"earlier":                  {"", "2026-10-01T00:00+02:00", "", "2026-10-01"},
		"overdue":                  {"", "2026-11-30T15:00+01:00", "", "2026-11-30"},
		"gte:now-24h":              {"2026-11-29T15:00+01:00", "", "2026-11-29", ""},
		"lt:2026-11-30T22:30:00Z":  {"", "2026-11-30T22:30+00:00", "", "2026-11-30"},
		"lt:2026-11-30T23:30:00Z":  {"", "2026-11-30T23:30+00:00", "", "2026-12-01"},
		"gte:soy":                  {"2026-01-01T00:00+01:00", "", "2026-01-01", ""},
		"lte:eoy":                  {"", "2027-01-01T00:00+01:00", "", "2027-01-01"},
	} {
		s := span(t, text, now)
		day := func(at *time.Time) string {
			if at == nil {
				return ""
			}
			require.Equal(t, time.UTC, at.Location())
			require.Equal(t, at.Truncate(24*time.Hour), *at)
			return at.Format(time.DateOnly)
		}
		require.Equal(t, want, [4]string{local(s.From), local(s.To), day(s.FromDay), day(s.ToDay)}, text)
	}
	require.True(t, span(t, "overdue", now).Open)
	require.True(t, span(t, "none", now).Absent)
	require.True(t, span(t, "any", now).Present)
}

func TestWhatIsNoDateIsRefusedNamingTheForms(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "soon", "lt:", "lt:soon", "range:today", "range:..", "range:today..", "between:a..b", "2026-02-30", "2026-13-01", "+3x", "+d", "today+", "today+3h",
		"+36526d", "-101y", "0000-01-01", "9999-12-31", "tomorrow+99999999999999999999d", "today+3d+1d", "２０２６-01-01", "2026-01-01T25:00:00Z",
	} {
		_, err := query.ParseWhen("due", text)
		f, ok := fault.As(err)
		require.True(t, ok, "%q must be refused", text)
		require.Equal(t, "due", f.Field)
	}
	_, err := query.ParseWhen("updated", "overdue")
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
}

// Every date in every zone begins at the first moment that the clocks show it, and the days leave no gap.
func TestADayBeginsAtTheFirstMomentThatItIsShown(t *testing.T) {
	t.Parallel()
	names := []string{
		"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Asia/Beirut", "America/Havana", "America/Sao_Paulo", "Africa/Cairo",
		"America/Santiago", "Pacific/Auckland", "America/St_Johns", "Asia/Tehran", "UTC",
	}
	rapid.Check(t, func(t *rapid.T) {
		in := zone(t, rapid.SampledFrom(names).Draw(t, "zone"))
		day := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, rapid.IntRange(0, 365*60).Draw(t, "day"))
		begins, ends := query.StartOfDay(day, in), query.StartOfDay(day.AddDate(0, 0, 1), in)
		require.Equal(t, day.Format(time.DateOnly), begins.Format(time.DateOnly))
		require.Less(t, begins.Add(-time.Nanosecond).Format(time.DateOnly), day.Format(time.DateOnly))
		length := ends.Sub(begins).Hours()
		require.True(t, length >= 22.5 && length <= 25.5, "%s has %v hours", day, length)
	})
}

func FuzzWhen(f *testing.F) {
	for _, seed := range []string{
		"lt:today", "gte:+3d", "range:sow..eow", "overdue", "next7", "earlier", "2026-03-01", "eq:2026-03-01T15:00:00+02:00", "now-24h", "range:2026-01-31+1m..eom-2y",
		"lte:2026-03-01-5w", "gt:0200-01-01-100y", "gt:9800-12-31+100y", " LT:Today ",
	} {
		f.Add(seed, int64(1_790_000_000), "Europe/Berlin")
		f.Add(seed, int64(1_774_746_000), "Asia/Beirut")
	}
	f.Fuzz(func(t *testing.T, text string, unix int64, name string) {
		w, err := query.ParseWhen("due", text)
		if err != nil {
			_, ok := fault.As(err)
			require.True(t, ok)
			return
		}
		again, err := query.ParseWhen("due", w.String())
		require.NoError(t, err, "%q printed as %q", text, w)
		require.Equal(t, w, again)
		in, err := time.LoadLocation(name)
		if err != nil || unix < 0 || unix > 4_000_000_000 {
			return
		}
		s := w.Span(time.Unix(unix, 0).In(in))
		for _, at := range []*time.Time{s.From, s.To, s.FromDay, s.ToDay} {
			if at != nil {
				require.True(t, at.Year() > 0 && at.Year() < 10_000, "%s is %v", w, at)
			}
		}
	})
}
