package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/wake"
)

// Comment is a remark in an item's thread.
type Comment struct {
	ID        uuid.UUID
	Author    item.Actor
	Body      string
	ReplyTo   *uuid.UUID
	Mentions  []string
	CreatedAt time.Time
	// Ask is nil for a comment that asks nothing.
	Ask *item.Ask
	// Answers is the question that it answers, Choice the option that it chooses there.
	Answers *uuid.UUID
	Choice  string
	// Bytes is the size of the whole body, which a list shortens.
	Bytes int32
}

// Post is a comment and the item it is for. Its Answers may be left nil: the one open question on the item that waits for its
// author is then what it answers, unless it asks something itself.
type Post struct {
	Name    string
	Comment *Comment
	Act
}

// threadRead is how many comments are looked at for who speaks in a thread.
const threadRead = 200

// InsertComment posts to an item's thread once per operation. answer fills result when it stands.
func (s *Store) InsertComment(ctx context.Context, op ops.Operation, result proto.Message, p Post, answer func(*item.Item, ops.Position)) error {
	first := &pgx.Batch{}
	locked := queueLock(first, p.Name)
	replayed, err := ops.DoPipelined(ctx, s.pool, op, result, first, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		i, err := locked.item()
		if err != nil {
			return nil, err
		}
		c, batch := p.Comment, &pgx.Batch{}
		t, err := readThread(ctx, tx, i, c)
		if err != nil {
			return nil, err
		}
		question, err := t.answered(i.Item, c)
		if err != nil {
			return nil, err
		}
		e := i.event(p.Act, i.Remark(p.By, p.At))
		e.Comment, e.Mentions, e.Facts.Thread = c, c.Mentions, t.authors
		if question != nil {
			c.Answers = &question.ID
			e.Facts.Asker, e.Facts.Promised = question.Author.Seat, promised(question)
			i.Answered()
		}
		if c.Ask != nil {
			e.Facts.Asked = c.Ask.Asked
			i.AskedOf(c.Ask.Asked)
		}
		queueComment(batch, i.ID, c)
		if question != nil {
			batch.Queue(`update comments set answered_with = $2, answered_by = $3, answered_at = $4 where id = $1`, question.ID, c.ID, p.By.Name, p.At)
		}
		queueRemark(batch, i.Item)
		answer(i.Item, e.Position)
		return batch, s.record(ctx, batch, e)
	})
	return s.written(replayed, err)
}

// promised answers where who asked said that they would tell of the answer.
func promised(question *Comment) wake.Promise {
	if question.Ask == nil || question.Ask.Decision == nil || question.Ask.Decision.Inform == nil {
		return wake.Promise{}
	}
	return wake.Promise{Surface: question.Ask.Decision.Inform.Surface, Channel: question.Ask.Decision.Inform.Channel}
}

// queueRemark writes what a comment changes of an item.
func queueRemark(batch *pgx.Batch, i *item.Item) {
	batch.Queue(`update items set updated_at = $2, watchers = $3, reassignments = $4, open_asks = $5, claim_until = $6 where id = $1`,
		i.ID, i.UpdatedAt, set(i.Watchers), i.Reassignments, i.OpenAsks, claimedUntil(i))
}

// queueComment writes a comment, with what it asks.
func queueComment(batch *pgx.Batch, itemID uuid.UUID, c *Comment) {
	asked, decision := "", (*item.Decision)(nil)
	if c.Ask != nil {
		asked, decision = c.Ask.Asked, c.Ask.Decision
	}
	batch.Queue(`insert into comments (id, item_id, author, author_kind, author_seat, body, reply_to, mentions, turn_id, created_at, asked, decision, answers, choice)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		c.ID, itemID, c.Author.Name, c.Author.Kind, c.Author.Seat, c.Body, c.ReplyTo, set(c.Mentions), c.Author.Turn, c.CreatedAt,
		asked, decision, c.Answers, c.Choice)
}

// thread is what a comment is checked against.
type thread struct {
	// authors are the seats that spoke in it, the latest first.
	authors []string
	// questions are those that the comment may answer: the one that it names, and those that wait for its author.
	questions []*Comment
	// replied reports whether the comment replied to stands in the thread.
	replied bool
}

// readThread reads the thread in one round trip. The items that are evidence take another one, and their ids take the place of their names.
func readThread(ctx context.Context, tx pgx.Tx, i *held, c *Comment) (thread, error) {
	t := thread{replied: c.ReplyTo == nil}
	batch := &pgx.Batch{}
	batch.Queue(`select author_seat from (select author_seat, created_at from comments where item_id = $1 order by created_at desc, id desc limit $2) c
		where author_seat <> '' group by 1 order by max(created_at) desc limit $3`, i.ID, threadRead, wake.MaxThread).Query(func(rows pgx.Rows) (err error) {
		t.authors, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if c.ReplyTo != nil {
		batch.Queue(`select exists (select from comments where id = $1 and item_id = $2)`, *c.ReplyTo, i.ID).QueryRow(func(row pgx.Row) error {
			return row.Scan(&t.replied)
		})
	}
	if c.Answers != nil || i.OpenAsks > 0 {
		batch.Queue(`select `+commentColumns("c.body")+` from comments c where item_id = $1 and asked <> '' and (id = $2 or asked = $3 and answered_at is null)
			order by created_at, id`, i.ID, c.Answers, c.Author.Seat).Query(func(rows pgx.Rows) (err error) {
			t.questions, err = pgx.CollectRows(rows, scanComment)
			return err
		})
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return thread{}, err
	}
	if !t.replied {
		return thread{}, fault.New(fault.Invalid, "reply_to names no comment of this item: get_work_item shows them").WithField("reply_to")
	}
	if c.Ask != nil {
		return t, settleEvidence(ctx, tx, c.Ask.Decision)
	}
	return t, nil
}

// answered settles which question a comment answers, or refuses; nil for none.
func (t thread) answered(i *item.Item, c *Comment) (*Comment, error) {
	question, err := t.question(i, c)
	if err != nil || question == nil {
		return nil, err
	}
	if !question.Ask.Open() {
		return nil, question.Ask.AlreadyAnswered()
	}
	if err := question.Ask.MayAnswer(c.Author); err != nil {
		return nil, err
	}
	return question, question.Ask.Choose(c.Choice)
}

func (t thread) question(i *item.Item, c *Comment) (*Comment, error) {
	if c.Answers != nil {
		return pick(t.questions, *c.Answers, fault.New(fault.Invalid, "answers names no question of %s: get_work_item shows them", i.Key()).WithField("answers"))
	}
	if c.Ask != nil && c.Choice != "" {
		return nil, fault.New(fault.Invalid, "choice %q answers nothing: a comment that asks something itself must say with answers which question it chooses for", c.Choice).
			WithField("choice")
	}
	if c.Ask != nil {
		return nil, nil
	}
	if c.ReplyTo != nil {
		if question, err := pick(t.questions, *c.ReplyTo, nil); question != nil || err != nil {
			return question, err
		}
	}
	switch {
	case len(t.questions) > 1:
		return nil, fault.New(fault.Invalid, "%d questions on %s wait for you, so say with answers which one this is for: %s", len(t.questions), i.Key(), namesOf(t.questions)).
			WithField("answers")
	case len(t.questions) == 1:
		return t.questions[0], nil
	case c.Choice != "":
		return nil, fault.New(fault.Invalid, "choice %q answers nothing: no open question on %s waits for you", c.Choice, i.Key()).WithField("choice")
	default:
		return nil, nil
	}
}

func pick(questions []*Comment, id uuid.UUID, otherwise error) (*Comment, error) {
	at := slices.IndexFunc(questions, func(q *Comment) bool { return q.ID == id })
	if at < 0 {
		return nil, otherwise
	}
	return questions[at], nil
}

// namesOf names questions by id, asker and the beginning of what they ask.
func namesOf(questions []*Comment) string {
	parts := make([]string, 0, len(questions))
	for _, q := range questions {
		parts = append(parts, fmt.Sprintf("%s (%s asks: %s)", q.ID, q.Author.Name, item.Shorten(q.Question(), 120)))
	}
	return strings.Join(parts, "; ")
}

// Question is what a comment asks.
func (c *Comment) Question() string {
	if c.Ask != nil && c.Ask.Decision != nil {
		return c.Ask.Decision.Question
	}
	return c.Body
}
