package notification_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/notification/internal/store"
)

const (
	workTopic   = "bullpen.tracker.item.v1"
	noticeTopic = "bullpen.notification.notice.v1"
	item        = "0190aaaa-0000-7000-8000-000000000001"
)

// event is the tracker's, of a comment that an actor makes on the item.
func event(sequence int64, actor, kind string, concerns ...*trackerv1.Concern) *trackerv1.ItemEvent {
	id, _ := uuid.NewV7()
	fields, _ := structpb.NewStruct(map[string]any{"status": map[string]any{"from": "todo", "to": "in_progress"}})
	return &trackerv1.ItemEvent{
		EventId: id.String(), OccurTime: timestamppb.New(time.Now().Truncate(time.Microsecond)), Sequence: sequence,
		Fact: &trackerv1.ItemEvent_ItemCommented{ItemCommented: &trackerv1.ItemCommented{
			Item:    &trackerv1.WorkItem{Id: item, Key: "OPS-1", Title: "Renew"},
			Comment: &trackerv1.Comment{Id: "c-1", Body: "Look at this."},
			Change: &trackerv1.Change{
				Position: fmt.Sprint("tracker@1:", sequence), Kind: "comment", Actor: actor, ActorKind: kind, Fields: fields, Excerpt: "Look at this.",
			},
			Routing: &trackerv1.RoutingSnapshot{Actor: actor, Concerns: concerns},
		}},
	}
}

func concern(handle, reason string, addressed bool) *trackerv1.Concern {
	return &trackerv1.Concern{Handle: handle, Reason: reason, Addressed: addressed}
}

// publish sends events as the tracker does.
func (w *world) publish(t *testing.T, events ...*trackerv1.ItemEvent) {
	t.Helper()
	for _, e := range events {
		payload, err := proto.Marshal(e)
		require.NoError(t, err)
		require.NoError(t, w.bus.Publish(t.Context(), bus.Message{
			Topic: workTopic, Key: item, Value: payload, Headers: map[string]string{"ce_id": e.GetEventId()},
		}))
	}
}

// notices reads what is published of changes, from the beginning.
func (w *world) notices(t *testing.T) func() *notificationv1.ChangeNotified {
	t.Helper()
	sub, err := w.bus.Subscribe(noticeTopic, "test")
	require.NoError(t, err)
	t.Cleanup(func() { _ = sub.Close() })
	return func() *notificationv1.ChangeNotified {
		m := fetchOne(t, sub)
		require.Equal(t, item, m.Key)
		var e notificationv1.NoticeEvent
		require.NoError(t, proto.Unmarshal(m.Value, &e))
		require.Equal(t, m.Headers["ce_id"], e.GetEventId())
		return e.GetChangeNotified()
	}
}

func (w *world) explain(t *testing.T, position string) *notificationv1.ExplainChangeResponse {
	t.Helper()
	res, err := w.rpc.ExplainChange(operator(t.Context()), &notificationv1.ExplainChangeRequest{Position: position})
	require.NoError(t, err)
	return res
}

func TestAChangeOfAnItemReachesPersonsAndAgents(t *testing.T) {
	t.Parallel()
	w := setup(t)
	next := w.notices(t)
	w.publish(t, event(7, "sage", "agent", concern("quill", "mention", true), concern("ines", "watcher", false), concern("ines", "reporter", false)))

	told := next()
	require.Equal(t, "tracker@1:7", told.GetPosition())
	require.Equal(t, []string{"quill"}, told.GetWoken())
	require.Empty(t, told.GetQuiet())
	require.Len(t, told.GetNotices(), 1)
	n := told.GetNotices()[0]
	require.Equal(t, []string{"ines", "reporter", "OPS-1", "comment", "sage", "agent", "Look at this.", "c-1", item}, []string{
		n.GetPerson(), n.GetReason(), n.GetItemKey(), n.GetKind(), n.GetActor(), n.GetActorKind(), n.GetExcerpt(), n.GetCommentId(), n.GetItemId(),
	})
	require.Equal(t, []string{"reporter", "watcher"}, n.GetReasons())

	deliveries := w.deliveries(t)
	require.Len(t, deliveries, 1)
	d := deliveries[0]
	require.Equal(t, []string{"quill", "tracker:" + item, "tracker", "work", "tool", "mention", "tracker@1:7", "OPS-1 Renew"}, []string{
		d.GetSeat(), d.GetConversationKey(), d.GetSource(), d.GetSurface(), d.GetObligation(), d.GetReason(), d.GetPosition(), d.GetSubject(),
	})
	require.Contains(t, d.GetBody(), "- status: todo → in_progress")
	require.Contains(t, d.GetBody(), "Look at this.")

	mail, err := w.bus.Subscribe("bullpen.notification.delivery.v1", "test")
	require.NoError(t, err)
	defer mail.Close()
	var sent notificationv1.DeliveryEvent
	require.NoError(t, proto.Unmarshal(fetchOne(t, mail).Value, &sent))
	require.True(t, proto.Equal(d, sent.GetDeliveryAddressed().GetDelivery()), "the event is the delivery that is listed")

	var stored int
	require.NoError(t, w.pool.QueryRow(t.Context(), `select count(*) from notices where person = 'ines' and reasons[1] = 'reporter'`).Scan(&stored))
	require.Equal(t, 1, stored)
}

func TestAChangeThatIsReadTwiceIsToldOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	next := w.notices(t)
	first := event(7, "ines", "human", concern("quill", "mention", true))
	again := event(7, "ines", "human", concern("quill", "mention", true)) // the same change in another event
	w.publish(t, first, first, again, event(8, "ines", "human", concern("quill", "watcher", false)))
	require.Equal(t, "tracker@1:7", next().GetPosition())
	require.Equal(t, "tracker@1:8", next().GetPosition())
	require.Equal(t, []string{"quill mention tool", "quill watcher none"}, told(w.deliveries(t)))
}

func TestChangesOfAnItemAreToldInTheirOrder(t *testing.T) {
	t.Parallel()
	w := setup(t)
	next := w.notices(t)
	const n = 250
	events := make([]*trackerv1.ItemEvent, n)
	for i := range events {
		events[i] = event(int64(i+1), "sage", "agent", concern("ines", "watcher", false))
	}
	w.publish(t, events...)
	for i := range n {
		require.Equal(t, fmt.Sprint("tracker@1:", i+1), next().GetPosition())
	}
}

func TestAChangeThatConcernsNobodyIsPublishedToo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	next := w.notices(t)
	w.publish(t, event(1, "ines", "human"), event(2, "ines", "human", concern("ines", "watcher", false)))
	require.Equal(t, "it concerns nobody", next().GetQuiet())
	require.Equal(t, "it is their own doing", next().GetQuiet())
}

func TestChangesWaitUntilThereIsACompany(t *testing.T) {
	t.Parallel()
	w := setup(t, withCompany(nil))
	w.publish(t, event(7, "sage", "agent", concern("quill", "mention", true)))
	next := w.notices(t)
	require.Equal(t, "unknown", w.explain(t, "tracker@1:7").GetState())

	w.office.mu.Lock()
	w.office.company = officeOf()
	w.office.mu.Unlock()
	require.NoError(t, w.bus.Publish(t.Context(), bus.Message{Topic: "bullpen.company.revision.v1", Key: "company"}))
	require.Equal(t, []string{"quill"}, next().GetWoken())
	dead, err := w.rpc.ListDeadLetters(operator(t.Context()), &notificationv1.ListDeadLettersRequest{})
	require.NoError(t, err)
	require.Empty(t, dead.GetDeadLetters())
}

func TestAgentsDoNotWakeEachOtherForEver(t *testing.T) {
	t.Parallel()
	w := setup(t, withWakes(2))
	next := w.notices(t)
	for sequence := range int64(4) {
		w.publish(t, event(sequence+1, "sage", "agent", concern("quill", "mention", true)))
		require.Equal(t, sequence >= 2, next().GetQuiet() != "", "wake %d", sequence+1)
	}
	w.publish(t, event(9, "ines", "human", concern("quill", "mention", true)))
	require.Equal(t, []string{"quill"}, next().GetWoken(), "a person is heard all the same")
}

func TestAChangeCanBeExplained(t *testing.T) {
	t.Parallel()
	w := setup(t)
	next := w.notices(t)
	w.publish(t,
		event(1, "ines", "human", concern("quill", "mention", true), concern("tom", "watcher", false)),
		event(2, "ines", "human"),
		event(3, "ines", "human", concern("ines", "watcher", false)),
	)
	for range 3 {
		next()
	}
	told := w.explain(t, "tracker@1:1")
	require.Equal(t, "told", told.GetState())
	require.Len(t, told.GetDecisions(), 2)
	require.True(t, proto.Equal(&notificationv1.ChangeDecision{Handle: "quill", Reason: "mention", Outcome: "delivered"}, told.GetDecisions()[0]))
	require.True(t, proto.Equal(&notificationv1.ChangeDecision{
		Handle: "tom", Reason: "watcher", Outcome: "skipped", Detail: "they are not in the company any more",
	}, told.GetDecisions()[1]))
	require.Equal(t, "nobody", w.explain(t, "tracker@1:2").GetState())
	require.Equal(t, "quiet", w.explain(t, "tracker@1:3").GetState())
	require.Equal(t, "unknown", w.explain(t, "tracker@1:4").GetState())

	_, err := w.pool.Exec(t.Context(), `update work_changes set settled_at = now() - interval '400 days' where sequence < 3`)
	require.NoError(t, err)
	_, err = w.pool.Exec(t.Context(), `update notices set created_at = now() - interval '400 days'`)
	require.NoError(t, err)
	_, err = store.New(w.pool, nil, nil).SweepWork(t.Context(), 365*24*time.Hour)
	require.NoError(t, err)
	require.Equal(t, "swept", w.explain(t, "tracker@1:1").GetState())
	require.Equal(t, "swept", w.explain(t, "tracker@1:2").GetState())
	require.Equal(t, "quiet", w.explain(t, "tracker@1:3").GetState(), "what is young enough stays")
	require.Equal(t, "unknown", w.explain(t, "tracker@2:1").GetState(), "another epoch is another order")

	for _, bad := range []string{"7", "tracker@1:x", "knowledge@1:7"} {
		_, err := w.rpc.ExplainChange(operator(t.Context()), &notificationv1.ExplainChangeRequest{Position: bad})
		require.Equal(t, fault.Invalid, rpc.FromError(err).Class, bad)
		require.Equal(t, "position", rpc.FromError(err).Field)
	}
	_, err = w.rpc.ExplainChange(seat(t.Context(), "quill", "", ""), &notificationv1.ExplainChangeRequest{Position: "tracker@1:1"})
	require.Equal(t, fault.Forbidden, rpc.FromError(err).Class)
}

func TestAnEventThatMakesNoSenseIsSetAsideAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	next := w.notices(t)
	senseless := event(1, "ines", "human", concern("quill", "mention", true))
	senseless.GetItemCommented().GetChange().Position = "somewhere"
	w.publish(t, senseless, event(2, "ines", "human", concern("quill", "mention", true)))
	require.Equal(t, "tracker@1:2", next().GetPosition())

	dead, err := w.rpc.ListDeadLetters(operator(t.Context()), &notificationv1.ListDeadLettersRequest{})
	require.NoError(t, err)
	require.Len(t, dead.GetDeadLetters(), 1)
	letter := dead.GetDeadLetters()[0]
	require.Equal(t, workTopic, letter.GetTopic())
	require.Contains(t, letter.GetReason(), "is not a position")

	res, err := w.rpc.RedriveDeadLetters(operator(t.Context()), &notificationv1.RedriveDeadLettersRequest{DeadLetterIds: []string{letter.GetDeadLetterId()}})
	require.NoError(t, err)
	require.EqualValues(t, 0, res.GetRedriven())
	require.EqualValues(t, 1, res.GetFailed(), "it makes no sense yet")

	mended := event(1, "ines", "human", concern("quill", "assignee", true))
	payload, err := proto.Marshal(mended)
	require.NoError(t, err)
	_, err = w.pool.Exec(t.Context(), `update dead_letters set payload = $1`, payload)
	require.NoError(t, err)
	res, err = w.rpc.RedriveDeadLetters(operator(t.Context()), &notificationv1.RedriveDeadLettersRequest{})
	require.NoError(t, err)
	require.EqualValues(t, 1, res.GetRedriven())
	require.Equal(t, []string{"quill"}, next().GetWoken())

	_, err = w.rpc.RedriveDeadLetters(operator(t.Context()), &notificationv1.RedriveDeadLettersRequest{DeadLetterIds: []string{"event:99"}})
	require.Equal(t, fault.NotFound, rpc.FromError(err).Class)
}

func TestAnAnswerToAnItemStandsOnTheItem(t *testing.T) {
	t.Parallel()
	w := setup(t)
	_, err := w.rpc.Reply(seat(t.Context(), "quill", "tracker:"+item, "op-1"), &notificationv1.ReplyRequest{Body: "Done."})
	require.Equal(t, fault.Invalid, rpc.FromError(err).Class)
	require.ErrorContains(t, err, "`comment_on_work_item`")
}
