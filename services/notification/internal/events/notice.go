package events

import (
	"fmt"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/notification/internal/work"
)

// NoticeTopic carries a NoticeEvent for every change of a work item, keyed by the item.
const NoticeTopic = "bullpen.notification.notice.v1"

// EncodeWork makes the event that says whom a change was told to.
func EncodeWork(c *work.Change, o *work.Outcome, fact int64, at time.Time) (outbox.Message, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return outbox.Message{}, fmt.Errorf("draw an event id: %w", err)
	}
	item := c.Subject().ID.String()
	notified := &notificationv1.ChangeNotified{Position: c.Position, ItemId: item, Quiet: o.Why}
	for _, n := range o.Notices {
		notified.Notices = append(notified.Notices, noticeToProto(c, n))
	}
	for _, d := range o.Deliveries {
		notified.Woken = append(notified.Woken, d.Seat)
	}
	payload, err := proto.Marshal(&notificationv1.NoticeEvent{
		EventId: id.String(), OccurTime: timestamppb.New(at), Sequence: fact,
		Fact: &notificationv1.NoticeEvent_ChangeNotified{ChangeNotified: notified},
	})
	if err != nil {
		return outbox.Message{}, fmt.Errorf("encode notice event: %w", err)
	}
	return outbox.Message{Topic: NoticeTopic, Key: item, EventID: id, Type: NoticeTopic, Payload: payload}, nil
}

func noticeToProto(c *work.Change, n work.Notice) *notificationv1.Notice {
	notice := &notificationv1.Notice{
		NoticeId: n.ID.String(), Person: n.Person, Position: c.Position, ItemId: n.Item.ID.String(), ItemKey: n.Item.Key, Title: n.Item.Title,
		Reason: n.Reasons[0], Reasons: n.Reasons, Kind: c.Kind, Actor: c.Doer(), ActorKind: c.ActorKind, Excerpt: c.Excerpt,
		OccurTime: timestamppb.New(c.At),
	}
	if c.Comment != nil {
		notice.CommentId = c.Comment.ID
	}
	return notice
}
