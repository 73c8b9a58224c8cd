package tracker_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
)

const noticeTopic = "bullpen.notification.notice.v1"

// notified is what the notification service says of a change: that it was told to one person, or to nobody.
func notified(position, itemID string, notices ...*notificationv1.Notice) *notificationv1.ChangeNotified {
	for _, n := range notices {
		n.NoticeId, n.Position, n.ItemId, n.OccurTime = uuid.NewString(), position, itemID, timestamppb.Now()
		n.Reasons = []string{n.GetReason()}
	}
	return &notificationv1.ChangeNotified{Position: position, ItemId: itemID, Notices: notices}
}

func tell(t *testing.T, b bundle, facts ...*notificationv1.ChangeNotified) {
	t.Helper()
	for _, fact := range facts {
		id := uuid.NewString()
		value, err := proto.Marshal(&notificationv1.NoticeEvent{EventId: id, OccurTime: timestamppb.Now(), Fact: &notificationv1.NoticeEvent_ChangeNotified{ChangeNotified: fact}})
		require.NoError(t, err)
		m := bus.Message{Topic: noticeTopic, Key: fact.GetItemId(), Value: value, Headers: map[string]string{"ce_id": id}}
		require.NoError(t, b.bus.Publish(t.Context(), m, m)) // at least once on the wire
	}
}

func inboxOf(t *testing.T, b bundle, req *trackerv1.WorkInboxRequest) *trackerv1.WorkInboxResponse {
	t.Helper()
	res, err := b.client.WorkInbox(member(t.Context(), "ines"), req)
	require.NoError(t, err)
	return res
}

// told files items and tells Ines of each, for the reasons given in turn; the inbox holds them all when it answers.
func told(t *testing.T, b bundle, reasons ...string) []string {
	t.Helper()
	positions := make([]string, len(reasons))
	for n, reason := range reasons {
		res := file(t, b, fmt.Sprintf("Item %d", n))
		positions[n] = res.GetPosition()
		tell(t, b, notified(res.GetPosition(), res.GetId(), &notificationv1.Notice{
			Person: "ines", ItemKey: "OLD-1", Title: "Then", Reason: reason, Kind: "created", Actor: "ops-lead", ActorKind: "agent",
		}))
	}
	require.Eventually(t, func() bool {
		return int(inboxOf(t, b, &trackerv1.WorkInboxRequest{Limit: 1}).GetUnread()) == len(reasons)
	}, 30*time.Second, 10*time.Millisecond)
	return positions
}

func records(res *trackerv1.WorkInboxResponse) []string {
	var ids []string
	for _, n := range res.GetNotices() {
		ids = append(ids, n.GetRecordId())
	}
	return ids
}

func marked(t *testing.T, b bundle, req *trackerv1.MarkInboxRequest) *trackerv1.MarkInboxResponse {
	t.Helper()
	res, err := b.client.MarkInbox(member(t.Context(), "ines"), req)
	require.NoError(t, err)
	return res
}

func TestANoticeSaysWhatTheItemIsCalledNowAndComesOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	positions := told(t, b, "asked")
	res := inboxOf(t, b, &trackerv1.WorkInboxRequest{})
	require.Equal(t, "ines", res.GetHandle())
	require.Equal(t, int32(1), res.GetCount())
	n := res.GetNotices()[0]
	require.Equal(t, positions[0], n.GetRecordId())
	require.Equal(t, "OPS-1", n.GetItem())
	require.Equal(t, "Item 0", n.GetTitle())
	require.Equal(t, "asked", n.GetReason())
	require.Equal(t, "created", n.GetKind())
	require.Equal(t, "ops-lead", n.GetActor())
	require.True(t, n.GetPrimary())
	require.False(t, n.GetRead())
}

func TestEveryFilterNarrowsTheScanSoPagesAreFull(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var reasons []string
	for n := range 24 {
		reasons = append(reasons, []string{"watcher", "asked", "thread", "mention"}[n%4])
	}
	positions := told(t, b, reasons...)
	marked(t, b, &trackerv1.MarkInboxRequest{Read: []string{positions[1], positions[3]}, ReadThrough: positions[0]})
	until := timestamppb.New(time.Now().Add(time.Hour))
	marked(t, b, &trackerv1.MarkInboxRequest{Snooze: []*trackerv1.Snooze{{RecordId: positions[23], Until: until}, {RecordId: positions[22], Until: until}}})
	pages := func(req *trackerv1.WorkInboxRequest) []string {
		var all []string
		req.Limit = 4
		for {
			res := inboxOf(t, b, req)
			all = append(all, records(res)...)
			if req.Cursor = res.GetNextCursor(); req.GetCursor() == "" {
				return all
			}
			require.Len(t, res.GetNotices(), 4, "a page is full as long as there is more")
		}
	}
	expect := func(keep func(n int) bool) []string {
		var want []string
		for n := len(positions) - 1; n >= 0; n-- {
			if keep(n) {
				want = append(want, positions[n])
			}
		}
		return want
	}
	asleep := func(n int) bool { return n >= 22 }
	read := func(n int) bool { return n == 0 || n == 1 || n == 3 }
	primary := func(n int) bool { return n%2 == 1 }
	require.Equal(t, expect(func(n int) bool { return !asleep(n) }), pages(&trackerv1.WorkInboxRequest{}))
	require.Equal(t, expect(func(int) bool { return true }), pages(&trackerv1.WorkInboxRequest{Snoozed: "include"}))
	require.Equal(t, expect(asleep), pages(&trackerv1.WorkInboxRequest{Snoozed: "only"}))
	require.Equal(t, expect(func(n int) bool { return !asleep(n) && !read(n) }), pages(&trackerv1.WorkInboxRequest{Unread: true}))
	require.Equal(t, expect(func(n int) bool { return !asleep(n) && primary(n) }), pages(&trackerv1.WorkInboxRequest{PrimaryOnly: true}))
	require.Equal(t, expect(func(n int) bool { return n%4 == 2 && !asleep(n) }), pages(&trackerv1.WorkInboxRequest{Reasons: []string{"thread"}}))
	require.Equal(t, expect(func(n int) bool { return n%4 == 1 && !read(n) && !asleep(n) }),
		pages(&trackerv1.WorkInboxRequest{Unread: true, PrimaryOnly: true, Reasons: []string{"thread", "asked"}}))
	require.Equal(t, expect(func(n int) bool { return n > 15 && !asleep(n) }), pages(&trackerv1.WorkInboxRequest{Since: positions[15]}))
	require.Empty(t, pages(&trackerv1.WorkInboxRequest{PrimaryOnly: true, Reasons: []string{"thread"}}))
	res := inboxOf(t, b, &trackerv1.WorkInboxRequest{Unread: true, Limit: 1})
	require.Equal(t, int32(21), res.GetUnread(), "what is not read, put off or not")
	marked(t, b, &trackerv1.MarkInboxRequest{PrimaryReasons: []string{"thread"}})
	require.Equal(t, expect(func(n int) bool { return n%4 == 2 && !asleep(n) }), pages(&trackerv1.WorkInboxRequest{PrimaryOnly: true}))
}

func TestANoticeThatWasPutOffComesBackWhenItsTimeHasCome(t *testing.T) {
	t.Parallel()
	b := setup(t)
	positions := told(t, b, "asked", "asked")
	until := time.Now().Add(250 * time.Millisecond)
	marked(t, b, &trackerv1.MarkInboxRequest{Snooze: []*trackerv1.Snooze{{RecordId: positions[1], Until: timestamppb.New(until)}}})
	require.Eventually(t, func() bool { return len(inboxOf(t, b, &trackerv1.WorkInboxRequest{}).GetNotices()) == 2 }, 30*time.Second, 10*time.Millisecond)
	person, err := b.client.GetPerson(member(t.Context(), "ines"), &trackerv1.GetPersonRequest{})
	require.NoError(t, err)
	require.Equal(t, []string{positions[1]}, person.GetDue())
	require.Equal(t, int32(365), person.GetMaxSnoozeDays())
	marked(t, b, &trackerv1.MarkInboxRequest{Unsnooze: []string{positions[1]}})
	person, err = b.client.GetPerson(member(t.Context(), "ines"), &trackerv1.GetPersonRequest{})
	require.NoError(t, err)
	require.Empty(t, person.GetDue())
	require.Empty(t, person.GetSnoozed())
}

func TestThroughSaysUpToWhichChangeEverybodyHasBeenToldAndIncompleteWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := file(t, b, "First"), file(t, b, "Second")
	res := inboxOf(t, b, &trackerv1.WorkInboxRequest{})
	require.Contains(t, res.GetIncomplete(), "not settled yet who is told of 2 changes")
	tell(t, b, notified(second.GetPosition(), second.GetId()))
	require.Eventually(t, func() bool {
		return inboxOf(t, b, &trackerv1.WorkInboxRequest{}).GetIncomplete() != res.GetIncomplete()
	}, 30*time.Second, 10*time.Millisecond)
	res = inboxOf(t, b, &trackerv1.WorkInboxRequest{})
	require.Contains(t, res.GetIncomplete(), "1 change")
	require.Empty(t, res.GetThrough(), "the first change is still to be told")
	tell(t, b, notified(first.GetPosition(), first.GetId()))
	require.Eventually(t, func() bool {
		got := inboxOf(t, b, &trackerv1.WorkInboxRequest{})
		return got.GetIncomplete() == "" && got.GetThrough() == second.GetPosition()
	}, 60*time.Second, 20*time.Millisecond)
}

func TestMarksOfAnInboxAreRefusedByName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	positions := told(t, b, "asked", "asked")
	mark := func(req *trackerv1.MarkInboxRequest) error {
		_, err := b.client.MarkInbox(member(t.Context(), "ines"), req)
		return err
	}
	refusal(t, mark(&trackerv1.MarkInboxRequest{Read: []string{positions[0], positions[0]}}), fault.Invalid, "read[1]")
	refusal(t, mark(&trackerv1.MarkInboxRequest{Read: positions[:1], Unread: positions[:1]}), fault.Invalid, "unread[0]")
	refusal(t, mark(&trackerv1.MarkInboxRequest{Read: []string{"one"}}), fault.Invalid, "read[0]")
	refusal(t, mark(&trackerv1.MarkInboxRequest{Read: []string{""}}), fault.Invalid, "read[0]")
	refusal(t, mark(&trackerv1.MarkInboxRequest{Unread: []string{"tracker@1:999999"}}), fault.Invalid, "unread[0]")
	require.Equal(t, "WRONG_STREAM", refusal(t, mark(&trackerv1.MarkInboxRequest{Read: []string{"knowledge@1:1"}}), fault.Invalid, "read[0]").Reason)
	require.Equal(t, "WRONG_STREAM", refusal(t, mark(&trackerv1.MarkInboxRequest{ReadThrough: "tracker@2:1"}), fault.Invalid, "read_through").Reason)
	refusal(t, mark(&trackerv1.MarkInboxRequest{ReadThrough: "tracker@1:999999"}), fault.Invalid, "read_through")
	for _, until := range []time.Time{time.Now().Add(-time.Minute), time.Now().AddDate(1, 0, 2)} {
		snooze := []*trackerv1.Snooze{{RecordId: positions[0], Until: timestamppb.New(until)}}
		refusal(t, mark(&trackerv1.MarkInboxRequest{Snooze: snooze}), fault.Invalid, "snooze[0].until")
	}
	refusal(t, mark(&trackerv1.MarkInboxRequest{Snooze: []*trackerv1.Snooze{{RecordId: positions[0]}}}), fault.Invalid, "snooze[0].until")
	refusal(t, mark(&trackerv1.MarkInboxRequest{PrimaryReasons: []string{"boredom"}}), fault.Invalid, "primary_reasons[0]")
	require.Equal(t, "unchanged", marked(t, b, &trackerv1.MarkInboxRequest{Unread: positions}).GetOutcome())
	require.Equal(t, int32(1), marked(t, b, &trackerv1.MarkInboxRequest{Read: positions}).GetVersion())
	require.Zero(t, inboxOf(t, b, &trackerv1.WorkInboxRequest{}).GetUnread())
}

func TestOnesOwnRecordAloneIsMarkedAndItNeedsASeat(t *testing.T) {
	t.Parallel()
	b := setup(t)
	told(t, b, "asked")
	for _, call := range []func(context.Context) error{
		func(ctx context.Context) error {
			_, err := b.client.MarkInbox(ctx, &trackerv1.MarkInboxRequest{})
			return err
		},
		func(ctx context.Context) error {
			_, err := b.client.SetPins(ctx, &trackerv1.SetPinsRequest{Favorites: &trackerv1.SetChange{Clear: true}})
			return err
		},
		func(ctx context.Context) error {
			_, err := b.client.WorkInbox(ctx, &trackerv1.WorkInboxRequest{})
			return err
		},
		func(ctx context.Context) error {
			_, err := b.client.GetPerson(ctx, &trackerv1.GetPersonRequest{})
			return err
		},
		func(ctx context.Context) error {
			_, err := b.client.MyWork(ctx, &trackerv1.MyWorkRequest{})
			return err
		},
	} {
		err := call(operator(t.Context()))
		require.Contains(t, refusal(t, err, fault.Forbidden, "").Message, "ci acts for no seat")
	}
	res, err := b.client.WorkInbox(operator(t.Context()), &trackerv1.WorkInboxRequest{Handle: "ines"})
	require.NoError(t, err)
	require.Len(t, res.GetNotices(), 1, "an operator reads another's")
	_, err = b.client.WorkInbox(seat(t.Context(), "designer"), &trackerv1.WorkInboxRequest{Handle: "ines"})
	refusal(t, err, fault.Forbidden, "handle")
	_, err = b.client.WorkInbox(operator(t.Context()), &trackerv1.WorkInboxRequest{Handle: "bob"})
	refusal(t, err, fault.Invalid, "handle")
}

func TestAnInboxRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	told(t, b, "asked", "thread", "asked")
	try := func(req *trackerv1.WorkInboxRequest) error {
		_, err := b.client.WorkInbox(member(t.Context(), "ines"), req)
		return err
	}
	refusal(t, try(&trackerv1.WorkInboxRequest{Limit: 51}), fault.Invalid, "limit")
	refusal(t, try(&trackerv1.WorkInboxRequest{Limit: -1}), fault.Invalid, "limit")
	refusal(t, try(&trackerv1.WorkInboxRequest{Snoozed: "maybe"}), fault.Invalid, "snoozed")
	refusal(t, try(&trackerv1.WorkInboxRequest{Reasons: []string{"boredom"}}), fault.Invalid, "reasons[0]")
	refusal(t, try(&trackerv1.WorkInboxRequest{Since: "yesterday"}), fault.Invalid, "since")
	refusal(t, try(&trackerv1.WorkInboxRequest{Cursor: "x"}), fault.Invalid, "cursor")
	next := inboxOf(t, b, &trackerv1.WorkInboxRequest{Limit: 1}).GetNextCursor()
	require.NotEmpty(t, next)
	for _, other := range []*trackerv1.WorkInboxRequest{{Unread: true}, {PrimaryOnly: true}, {Reasons: []string{"asked"}}, {Snoozed: "only"}, {Handle: "designer"}} {
		other.Cursor = next
		require.Equal(t, "CURSOR_MISMATCH", refusal(t, try(other), fault.Invalid, "cursor").Reason)
	}
	require.NoError(t, try(&trackerv1.WorkInboxRequest{Cursor: next, Limit: 2, Handle: "ines"}), "one's own handle is the same list")
}

func TestAFactThatNamesNoPlaceOfOursIsADeadLetterAndTheNextIsTakenIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	res := file(t, b, "After the broken one")
	tell(t, b, &notificationv1.ChangeNotified{Position: "nowhere", ItemId: res.GetId()}, notified(res.GetPosition(), res.GetId(),
		&notificationv1.Notice{Person: "ines", ItemKey: res.GetKey(), Title: "x", Reason: "asked", Kind: "created", Actor: "ops-lead", ActorKind: "agent"}))
	require.Eventually(t, func() bool { return len(records(inboxOf(t, b, &trackerv1.WorkInboxRequest{}))) == 1 }, 30*time.Second, 10*time.Millisecond)
	require.True(t, slices.Equal([]string{res.GetPosition()}, records(inboxOf(t, b, &trackerv1.WorkInboxRequest{}))))
}
