package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	upsertSecret = `
insert into secrets (name, sealed, updated_at) values ($1, $2, $3)
on conflict (name) do update set sealed = excluded.sealed, updated_at = excluded.updated_at`

	deleteSecret = `delete from secrets where name = $1`

	listSecrets = `select name, updated_at from secrets order by name collate "C"`

	sealedSecrets = `select name, sealed from secrets where name = any($1)`
)

// SecretName is a sealed value without its value.
type SecretName struct {
	Name      string
	UpdatedAt time.Time
}

// PutSecret keeps a sealed value, in place of one that is there.
func (t *Tx) PutSecret(ctx context.Context, name string, sealed []byte, now time.Time) error {
	if _, err := t.tx.Exec(ctx, upsertSecret, name, sealed, now); err != nil {
		return fmt.Errorf("keep a secret: %w", err)
	}
	return nil
}

// DeleteSecret forgets a value and reports whether there was one.
func (t *Tx) DeleteSecret(ctx context.Context, name string) (bool, error) {
	tag, err := t.tx.Exec(ctx, deleteSecret, name)
	if err != nil {
		return false, fmt.Errorf("forget a secret: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

// ListSecrets answers the names in alphabetical order.
func (s *Store) ListSecrets(ctx context.Context) ([]SecretName, error) {
	rows, err := s.pool.Query(ctx, listSecrets)
	if err != nil {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[SecretName])
}

// Sealed answers the sealed values that are kept under names.
func (s *Store) Sealed(ctx context.Context, names []string) (map[string][]byte, error) {
	rows, err := s.pool.Query(ctx, sealedSecrets, names)
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	out := map[string][]byte{}
	var (
		name   string
		sealed []byte
	)
	if _, err := pgx.ForEachRow(rows, []any{&name, &sealed}, func() error {
		out[name] = append([]byte(nil), sealed...)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	return out, nil
}
