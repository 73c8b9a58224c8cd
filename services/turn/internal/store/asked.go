package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/services/turn/internal/mailbox"
)

// selectAsked is called by AskedBy.
const selectAsked = `select obligation, surface, title, mail_ids::text[] from turns where turn_id = $1`

// Asked is what a turn was for.
type Asked struct {
	Obligation, Surface, Title string
	// Mail is what it answers, oldest first.
	Mail []mailbox.Mail
}

// AskedBy answers what a turn is for, whether it runs or has ended; nothing for a turn that is not known here.
func AskedBy(ctx context.Context, tx pgx.Tx, turnID string) (a Asked, err error) {
	var ids []string
	err = tx.QueryRow(ctx, selectAsked, turnID).Scan(&a.Obligation, &a.Surface, &a.Title, &ids)
	if errors.Is(err, pgx.ErrNoRows) {
		return Asked{}, nil
	}
	if err != nil {
		return a, fmt.Errorf("read the turn: %w", err)
	}
	rows, err := tx.Query(ctx, selectMailByID, ids)
	if err != nil {
		return a, fmt.Errorf("read the turn's mail: %w", err)
	}
	if a.Mail, err = pgx.CollectRows(rows, scanMail); err != nil {
		return a, fmt.Errorf("read the turn's mail: %w", err)
	}
	return a, nil
}
