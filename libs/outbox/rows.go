package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/bus"
)

const (
	// batchRows and batchBytes bound one round: the second keeps a backlog of large events from filling the memory.
	batchRows  = 500
	batchBytes = 4 << 20

	// selectUnsent adds up the payloads before each row, which reads their sizes but not their bytes, and always takes
	// at least one row.
	selectUnsent = `
select id, topic, key, event_id, type, payload, headers, created_at from (
    select *, sum(octet_length(payload)) over (order by id) - octet_length(payload) as bytes_before
    from (select * from outbox where sent_at is null order by id limit $1) as oldest
) as measured
where bytes_before < $2 order by id`

	markSent = `update outbox set sent_at = now() where id = any($1) and sent_at is null`

	// sweepSent looks at the oldest rows only, so a look that finds nothing to delete costs the same however long the
	// table is. A row that cannot be sent stays, and is passed over only when it is not alone among the oldest.
	sweepSent = `
delete from outbox where sent_at < $1 and id in (select id from outbox order by id limit $2)`

	sweepRows = 1000
)

// row is one unsent message.
type row struct {
	id        int64
	topic     string
	key       string
	eventID   uuid.UUID
	kind      string
	payload   []byte
	headers   map[string]string
	createdAt time.Time
}

// unsentBatch is what one round publishes.
type unsentBatch struct {
	rows []row
	ids  []int64
	// full tells that a limit ended the batch, so there is more.
	full bool
}

// unsent reads the oldest unsent messages, in the order of their ids.
func unsent(ctx context.Context, conn *pgx.Conn) (unsentBatch, error) {
	var b unsentBatch
	rows, err := conn.Query(ctx, selectUnsent, batchRows, batchBytes)
	if err != nil {
		return b, fmt.Errorf("read the outbox: %w", err)
	}
	size := 0
	b.rows, err = pgx.CollectRows(rows, func(found pgx.CollectableRow) (row, error) {
		var r row
		err := found.Scan(&r.id, &r.topic, &r.key, &r.eventID, &r.kind, &r.payload, &r.headers, &r.createdAt)
		b.ids = append(b.ids, r.id)
		size += len(r.payload)
		return r, err
	})
	if err != nil {
		return b, fmt.Errorf("read the outbox: %w", err)
	}
	b.full = len(b.rows) == batchRows || size >= batchBytes
	return b, nil
}

// without answers the ids of a batch that a failed call did publish.
func without(ids []int64, failed *bus.PublishError) []int64 {
	missing := make(map[int]bool, len(failed.Failures))
	for _, f := range failed.Failures {
		missing[f.Index] = true
	}
	sent := slices.Clone(ids)
	i := -1
	return slices.DeleteFunc(sent, func(int64) bool {
		i++
		return missing[i]
	})
}

// sweep deletes what was sent before the given time.
func (r *Relay) sweep(ctx context.Context, conn *pgx.Conn, before time.Time) error {
	for {
		tag, err := conn.Exec(ctx, sweepSent, before, sweepRows)
		if err != nil {
			return fmt.Errorf("sweep the outbox: %w", err)
		}
		if tag.RowsAffected() < sweepRows {
			return nil
		}
	}
}
