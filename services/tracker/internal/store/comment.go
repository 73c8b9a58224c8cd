package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// InsertComment posts to an item's thread once per operation.
func (s *Store) InsertComment(
	ctx context.Context, op ops.Operation, result proto.Message, a Act, name string, c *Comment, answer func(*item.Item, ops.Position),
) error {
	replayed, err := ops.DoBatch(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		i, err := lock(ctx, tx, name)
		if err != nil {
			return nil, err
		}
		if err := answered(ctx, tx, i.ID, c.ReplyTo); err != nil {
			return nil, err
		}
		for _, handle := range c.Mentions {
			i.Watch(handle)
		}
		e := i.event(a, i.Remark(a.By, a.At))
		e.Comment, e.Mentions = c, c.Mentions
		batch := &pgx.Batch{}
		queueUpdate(batch, i.Item)
		batch.Queue(`insert into comments (id, item_id, author, author_kind, author_seat, body, reply_to, mentions, turn_id, created_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			c.ID, i.ID, c.Author.Name, c.Author.Kind, c.Author.Seat, c.Body, c.ReplyTo, set(c.Mentions), c.Author.Turn, c.CreatedAt)
		answer(i.Item, e.Position)
		return batch, s.record(ctx, batch, e)
	})
	return s.written(replayed, err)
}

// answered proves that the comment replied to stands in the same thread.
func answered(ctx context.Context, tx pgx.Tx, itemID uuid.UUID, replyTo *uuid.UUID) error {
	if replyTo == nil {
		return nil
	}
	var there bool
	if err := tx.QueryRow(ctx, `select exists (select from comments where id = $1 and item_id = $2)`, *replyTo, itemID).Scan(&there); err != nil {
		return err
	}
	if !there {
		return fault.New(fault.Invalid, "reply_to names no comment of this item: get_work_item shows them").WithField("reply_to")
	}
	return nil
}
