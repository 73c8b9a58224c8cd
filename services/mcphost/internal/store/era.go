package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const (
	eraByConfiguration = `select legacy from eras where configuration = $1`
	upsertEra          = `
insert into eras (configuration, legacy) values ($1, $2)
on conflict (configuration) do update set legacy = excluded.legacy, seen_at = now()`
)

// Legacy answers which protocol a configuration spoke when it was last started, and false for known before the first time.
func (s *Store) Legacy(ctx context.Context, configuration []byte) (legacy, known bool, err error) {
	err = s.pool.QueryRow(ctx, eraByConfiguration, configuration).Scan(&legacy)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, false, nil
	case err != nil:
		return false, false, fmt.Errorf("read an era: %w", err)
	}
	return legacy, true, nil
}

// SetLegacy remembers which protocol a configuration speaks.
func (s *Store) SetLegacy(ctx context.Context, configuration []byte, legacy bool) error {
	if _, err := s.pool.Exec(ctx, upsertEra, configuration, legacy); err != nil {
		return fmt.Errorf("write an era: %w", err)
	}
	return nil
}
