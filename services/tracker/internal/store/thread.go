package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// CommentsShown and HistoryShown are how much of a thread one read brings.
const (
	CommentsShown = 20
	HistoryShown  = 50
	subtasksShown = 1000
)

// commentColumns of a comment c in the order that scanComment reads them; body is the whole or a part of it.
func commentColumns(body string) string {
	return `c.id, c.author, c.author_kind, c.author_seat, ` + body + `, octet_length(c.body), c.reply_to, c.mentions, c.turn_id, c.created_at, c.asked, c.decision,
		c.answers, c.choice, c.answered_with, c.answered_by, c.answered_at,
		coalesce((select a.choice from comments a where a.id = c.answered_with), '')`
}

func scanComment(row pgx.CollectableRow) (*Comment, error) {
	c, ask := &Comment{}, &item.Ask{}
	err := row.Scan(&c.ID, &c.Author.Name, &c.Author.Kind, &c.Author.Seat, &c.Body, &c.Bytes, &c.ReplyTo, &c.Mentions, &c.Author.Turn, &c.CreatedAt,
		&ask.Asked, &ask.Decision, &c.Answers, &c.Choice, &ask.Answer, &ask.AnsweredBy, &ask.AnsweredAt, &ask.Choice)
	if ask.Asked != "" {
		c.Ask = ask
	}
	return c, err
}

// ThreadCursor is the oldest comment that was shown.
type ThreadCursor struct {
	At time.Time `json:"at"`
	ID uuid.UUID `json:"id"`
}

// Comments answers the newest comments before cursor (nil for the end of the thread), oldest of them first.
func (s *Store) Comments(ctx context.Context, itemID uuid.UUID, cursor *ThreadCursor) ([]*Comment, *ThreadCursor, error) {
	before := ThreadCursor{At: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), ID: uuid.Max}
	if cursor != nil {
		before = *cursor
	}
	rows, err := s.pool.Query(ctx, `select `+commentColumns("left(c.body, 2048)")+` from comments c
		where item_id = $1 and (created_at, id) < ($2, $3) order by created_at desc, id desc limit $4`, itemID, before.At, before.ID, CommentsShown+1)
	if err != nil {
		return nil, nil, err
	}
	newest, err := pgx.CollectRows(rows, scanComment)
	if err != nil {
		return nil, nil, err
	}
	var next *ThreadCursor
	if len(newest) > CommentsShown {
		newest = newest[:CommentsShown]
		oldest := newest[CommentsShown-1]
		next = &ThreadCursor{At: oldest.CreatedAt, ID: oldest.ID}
	}
	thread := make([]*Comment, 0, len(newest))
	for n := len(newest) - 1; n >= 0; n-- {
		thread = append(thread, newest[n])
	}
	return thread, next, nil
}

// History answers an item's newest rows of history, newest first.
func (s *Store) History(ctx context.Context, itemID uuid.UUID) ([]Entry, error) {
	rows, err := s.pool.Query(ctx, `select position, item_id, project, kind, actor, actor_kind, actor_seat, fields, comment_id, turn_id, version, reassignments, created_at, excerpt, notified
		from history where item_id = $1 order by position desc limit $2`, itemID, HistoryShown)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Entry, error) {
		var e Entry
		var sequence int64
		c := &e.Change
		err := row.Scan(&sequence, &e.ItemID, &e.Project, &c.Kind, &c.By.Name, &c.By.Kind, &c.By.Seat, &c.Fields, &e.CommentID, &c.By.Turn, &c.Version,
			&c.Reassignments, &c.At, &e.Excerpt, &e.Notified)
		e.Position = position(sequence)
		return e, err
	})
}

// Subtasks answers the keys of the items that are part of one.
func (s *Store) Subtasks(ctx context.Context, itemID uuid.UUID) ([]string, error) {
	rows, err := s.pool.Query(ctx, `select project, number from items where parent = $1 order by number limit $2`, itemID, subtasksShown)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var project string
		var number int32
		err := row.Scan(&project, &number)
		return item.Key(project, number), err
	})
}
