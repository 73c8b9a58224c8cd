package events

import (
	"context"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"

	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/inbox"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// NoticeTopic carries whom changes are told to; the key is the item's id.
const NoticeTopic = "bullpen.notification.notice.v1"

// NoticeConsumer takes in whom changes are told to.
func NoticeConsumer(pool *pgxpool.Pool, b bus.Bus, log *slog.Logger, metrics prometheus.Registerer) *inbox.Consumer {
	return inbox.NewConsumer(pool, b, inbox.Options{Topic: NoticeTopic, Group: "tracker-notices", Handler: TakeNotice, Log: log, Metrics: metrics})
}

// TakeNotice is the [inbox.Handler] of [NoticeTopic].
func TakeNotice(ctx context.Context, tx pgx.Tx, m bus.Message) error {
	event := &notificationv1.NoticeEvent{}
	if err := proto.Unmarshal(m.Value, event); err != nil {
		return fault.New(fault.Invalid, "The message is no event of a notice.").WithCause(err)
	}
	fact := event.GetChangeNotified()
	if fact == nil {
		return nil
	}
	told, err := told(fact)
	if err != nil {
		return err
	}
	return store.TakeTold(ctx, tx, told)
}

func told(fact *notificationv1.ChangeNotified) (store.Told, error) {
	at, err := ops.ParsePosition(fact.GetPosition())
	if err != nil || at.Service != "tracker" {
		return store.Told{}, fault.New(fault.Invalid, "The position %q is no place in the tracker's order of writes.", fact.GetPosition()).WithCause(err)
	}
	t := store.Told{Position: at}
	for _, n := range fact.GetNotices() {
		id, err := uuid.Parse(n.GetItemId())
		if err != nil {
			return store.Told{}, fault.New(fault.Invalid, "The item %q is no id.", n.GetItemId()).WithCause(err)
		}
		notice := store.Notice{
			Person: n.GetPerson(), ItemID: id, ItemKey: n.GetItemKey(), Title: n.GetTitle(), Reason: n.GetReason(), Reasons: n.GetReasons(), Kind: n.GetKind(),
			Actor: n.GetActor(), ActorKind: n.GetActorKind(), Excerpt: n.GetExcerpt(), OccurredAt: n.GetOccurTime().AsTime(),
		}
		if comment, err := uuid.Parse(n.GetCommentId()); err == nil {
			notice.CommentID = &comment
		}
		t.Notices = append(t.Notices, notice)
	}
	return t, nil
}
