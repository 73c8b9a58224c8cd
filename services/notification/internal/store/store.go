// Package store holds everything of this service that SQL says. It speaks in
// the nouns of package delivery and in its own rows; contracts do not reach it:
// whoever makes a Store hands it the function that encodes events.
package store

import (
	"context"
	"embed"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bullpenhq/bullpen/libs/inbox"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/notification/internal/delivery"
	"github.com/bullpenhq/bullpen/services/notification/internal/work"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations answers the files that make the schema.
func Migrations() fs.FS { return migrations }

// Encode turns a delivery into the event that tells of it.
type Encode func(*delivery.Delivery) (outbox.Message, error)

// EncodeWork turns what was decided about a change of a work item into the event
// that tells of it. fact is its place among all that were settled.
type EncodeWork func(c *work.Change, o *work.Outcome, fact int64, at time.Time) (outbox.Message, error)

// Store is the service's schema. It is safe for concurrent use.
type Store struct {
	pool       *pgxpool.Pool
	encode     Encode
	encodeWork EncodeWork
}

// New makes a store on a migrated schema.
func New(pool *pgxpool.Pool, encode Encode, encodeWork EncodeWork) *Store {
	return &Store{pool: pool, encode: encode, encodeWork: encodeWork}
}

// Check proves that the tables that are shared with the kit fit this build.
func (s *Store) Check(ctx context.Context) error {
	for _, check := range []func(context.Context, *pgxpool.Pool) error{ops.Check, outbox.Check, inbox.Check} {
		if err := check(ctx, s.pool); err != nil {
			return err
		}
	}
	return nil
}
