package turn

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/protobuf/types/known/timestamppb"

	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/inbox"
	"github.com/bullpenhq/bullpen/services/turn/internal/events"
	"github.com/bullpenhq/bullpen/services/turn/internal/store"
)

// mailPrefix tells a dead delivery of the mailbox from an event that never got there.
const mailPrefix = "mail:"

// deadLetters are both kinds: events that could not be taken in, and mail that was worked on too often.
type deadLetters struct {
	pool  *pgxpool.Pool
	store *store.Store
	wake  func(seats ...string)
}

// List answers letters that wait first, newest first within each kind.
func (d deadLetters) List(ctx context.Context, limit int) ([]*turnv1.DeadLetter, error) {
	mail, err := d.store.ListDeadMail(ctx, limit)
	if err != nil {
		return nil, err
	}
	var letters []*turnv1.DeadLetter
	for _, m := range mail {
		letters = append(letters, &turnv1.DeadLetter{
			DeadLetterId: mailPrefix + m.DeliveryID, Topic: "mailbox", Key: m.Seat, Reason: m.Reason, CreateTime: timestamppb.New(m.AvailableAt),
		})
	}
	if len(letters) >= limit {
		return letters[:limit], nil
	}
	dead, err := inbox.ListDead(ctx, d.pool, limit-len(letters))
	if err != nil {
		return nil, err
	}
	for _, l := range dead {
		letter := &turnv1.DeadLetter{
			DeadLetterId: strconv.FormatInt(l.ID, 10), Topic: l.Topic, Key: l.Key, Reason: l.Reason, CreateTime: timestamppb.New(l.CreatedAt),
		}
		if l.RedrivenAt != nil {
			letter.RedriveTime = timestamppb.New(*l.RedrivenAt)
		}
		letters = append(letters, letter)
	}
	return letters, nil
}

// Redrive takes letters again, all that wait when ids is empty.
func (d deadLetters) Redrive(ctx context.Context, ids []string) (redriven, failed int, err error) {
	var (
		mail   []string
		events []int64
	)
	for _, id := range ids {
		if delivery, ok := strings.CutPrefix(id, mailPrefix); ok {
			mail = append(mail, delivery)
			continue
		}
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return 0, 0, fault.New(fault.Invalid, "%q is no id of a dead letter.", id).WithField("dead_letter_ids")
		}
		events = append(events, n)
	}
	if len(ids) == 0 || len(mail) > 0 {
		seats, err := d.store.RedriveMail(ctx, mail)
		if err != nil {
			return 0, 0, err
		}
		redriven += len(seats)
		defer d.wake(seats...)
	}
	if len(ids) == 0 {
		if events, err = d.waiting(ctx); err != nil {
			return redriven, 0, err
		}
	}
	if len(events) > 0 {
		n, err := d.redriveEvents(ctx, events)
		redriven += n
		failed = len(events) - n
		if err != nil && n == 0 && fault.ClassOf(err) == fault.Unavailable {
			return redriven, failed, err
		}
	}
	return redriven, failed, nil
}

func (d deadLetters) waiting(ctx context.Context) ([]int64, error) {
	const most = 200
	dead, err := inbox.ListDead(ctx, d.pool, most)
	var ids []int64
	for _, l := range dead {
		if l.RedrivenAt == nil {
			ids = append(ids, l.ID)
		}
	}
	return ids, err
}

func (d deadLetters) redriveEvents(ctx context.Context, ids []int64) (int, error) {
	return inbox.Redrive(ctx, d.pool, map[string]inbox.Handler{
		events.DeliveryTopic: events.Accept, events.ApprovalTopic: events.AcceptApproval,
	}, ids...)
}
