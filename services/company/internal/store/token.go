package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const (
	tokenColumns = `token_id, name, seat, hint, hash, created_by, created_at, expires_at, revoked_at`

	insertToken = `insert into tokens (` + tokenColumns + `) values ($1, $2, $3, $4, $5, $6, $7, $8, null)`

	// tokenByHash serves every call that bears an API token.
	tokenByHash = `select ` + tokenColumns + ` from tokens where hash = $1`

	listTokens = `select ` + tokenColumns + ` from tokens order by token_id desc`

	// revokeToken keeps the first time of a token that is revoked twice.
	revokeToken = `update tokens set revoked_at = coalesce(revoked_at, $2) where token_id = $1`
)

// Token is an API token as it is kept: without its text.
type Token struct {
	ID         uuid.UUID
	Name       string
	Seat, Hint string
	Hash       []byte
	By         string
	CreatedAt  time.Time
	// ExpiresAt and RevokedAt are nil for no end and for a token that lives.
	ExpiresAt, RevokedAt *time.Time
}

// InsertToken keeps a new token.
func (t *Tx) InsertToken(ctx context.Context, k Token) error {
	if _, err := t.tx.Exec(ctx, insertToken, k.ID, k.Name, k.Seat, k.Hint, k.Hash, k.By, k.CreatedAt, k.ExpiresAt); err != nil {
		return fmt.Errorf("keep a token: %w", err)
	}
	return nil
}

// RevokeToken ends a token and reports whether there is one of this id.
func (t *Tx) RevokeToken(ctx context.Context, id uuid.UUID, now time.Time) (bool, error) {
	tag, err := t.tx.Exec(ctx, revokeToken, id, now)
	if err != nil {
		return false, fmt.Errorf("revoke a token: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

// TokenByHash answers the token of a hash, ended or not, and false when there is none.
func (s *Store) TokenByHash(ctx context.Context, hash []byte) (Token, bool, error) {
	rows, err := s.pool.Query(ctx, tokenByHash, hash)
	if err != nil {
		return Token{}, false, fmt.Errorf("read a token: %w", err)
	}
	k, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Token])
	if errors.Is(err, pgx.ErrNoRows) {
		return Token{}, false, nil
	}
	if err != nil {
		return Token{}, false, fmt.Errorf("read a token: %w", err)
	}
	return k, true, nil
}

// ListTokens answers all tokens, newest first.
func (s *Store) ListTokens(ctx context.Context) ([]Token, error) {
	rows, err := s.pool.Query(ctx, listTokens)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Token])
}
