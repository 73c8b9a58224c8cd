package store

import (
	"slices"
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

func scanComment(row pgx.CollectableRow) (*Comment, error) { return scanCommentAnd(row) }

// scanCommentAnd reads the columns, and whatever the query answers after them into more.
func scanCommentAnd(row pgx.CollectableRow, more ...any) (*Comment, error) {
	c, ask := &Comment{}, &item.Ask{}
	err := row.Scan(append([]any{
		&c.ID, &c.Author.Name, &c.Author.Kind, &c.Author.Seat, &c.Body, &c.Bytes, &c.ReplyTo, &c.Mentions, &c.Author.Turn, &c.CreatedAt,
		&ask.Asked, &ask.Decision, &c.Answers, &c.Choice, &ask.Answer, &ask.AnsweredBy, &ask.AnsweredAt, &ask.Choice,
	}, more...)...)
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

// endOfThread is after every comment.
func endOfThread() ThreadCursor {
	return ThreadCursor{At: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), ID: uuid.Max}
}

// chronological turns comments, newest first and one more than is shown, into a page of a thread and where it goes on.
func chronological(newest []*Comment) ([]*Comment, *ThreadCursor) {
	var next *ThreadCursor
	if len(newest) > CommentsShown {
		newest = newest[:CommentsShown]
		oldest := newest[CommentsShown-1]
		next = &ThreadCursor{At: oldest.CreatedAt, ID: oldest.ID}
	}
	slices.Reverse(newest)
	return newest, next
}

// entryColumns of a row h of history in the order that scanEntry reads them.
const entryColumns = `h.position, h.item_id, h.project, h.kind, h.actor, h.actor_kind, h.actor_seat, h.fields, h.comment_id, h.turn_id, h.version,
	h.reassignments, h.created_at, h.excerpt, h.notified`

func scanEntry(row pgx.CollectableRow) (Entry, error) { return scanEntryAnd(row) }

// scanEntryAnd reads the columns, and whatever the query answers after them into more.
func scanEntryAnd(row pgx.CollectableRow, more ...any) (Entry, error) {
	var e Entry
	var sequence int64
	c := &e.Change
	err := row.Scan(append([]any{
		&sequence, &e.ItemID, &e.Project, &c.Kind, &c.By.Name, &c.By.Kind, &c.By.Seat, &c.Fields, &e.CommentID, &c.By.Turn, &c.Version,
		&c.Reassignments, &c.At, &e.Excerpt, &e.Notified,
	}, more...)...)
	e.Position = position(sequence)
	return e, err
}
