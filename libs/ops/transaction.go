package ops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
)

const (
	// lockOperation locks an id in its schema. Two ids that share a key only wait for each other.
	lockOperation = `select pg_advisory_xact_lock(hashtextextended(current_schema() || '/operation/' || $1::text, 0))`

	selectOperation = `select tool, digest, result from operations where operation_id = $1`

	// rollbackTimeout bounds the clean-up after a caller that has gone away.
	rollbackTimeout = 5 * time.Second

	// idle is the status of a connection without a transaction.
	idle = 'I'
)

var errOurs = errors.New("an operation begins and ends its transaction itself")

// connection is an alias, so that embedding it leaves the name Conn to the method.
type connection = pgx.Conn

// transaction is the transaction of an operation, begun by the first statement of a pipeline, which pgx's own cannot be. It is no one's to end but
// the operation's, and has no savepoints and no large objects.
type transaction struct{ *connection }

func (transaction) Begin(context.Context) (pgx.Tx, error) { return nil, errOurs }
func (transaction) Commit(context.Context) error          { return errOurs }
func (transaction) Rollback(context.Context) error        { return errOurs }
func (transaction) LargeObjects() pgx.LargeObjects        { return pgx.LargeObjects{} }
func (t transaction) Conn() *pgx.Conn                     { return t.connection }

// open begins the transaction, locks the id, fills result when the ledger knows the operation, and asks what the write asks first, all in one round trip.
func (t transaction) open(ctx context.Context, op Operation, result proto.Message, first *pgx.Batch) (replayed bool, err error) {
	batch := &pgx.Batch{}
	batch.Queue("begin")
	var known bool
	var refused error
	if op.ID != "" {
		batch.Queue(lockOperation, op.ID)
		batch.Queue(selectOperation, op.ID).QueryRow(func(row pgx.Row) error {
			var tool string
			var digest, kept []byte
			err := row.Scan(&tool, &digest, &kept)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("read the ledger: %w", err)
			}
			known, refused = true, op.again(tool, digest, kept, result)
			return nil
		})
	}
	for _, q := range first.QueuedQueries {
		asked := *q
		if q.Fn != nil {
			asked.Fn = func(answer pgx.BatchResults) error {
				if known {
					_, err := answer.Exec()
					return err
				}
				return q.Fn(answer)
			}
		}
		batch.QueuedQueries = append(batch.QueuedQueries, &asked)
	}
	err = t.SendBatch(ctx, batch).Close()
	switch {
	case known:
		return refused == nil, refused
	case err != nil:
		return false, fmt.Errorf("begin the operation: %w", err)
	}
	return false, nil
}

// again fills result from what the ledger keeps, or refuses an operation that is another one.
func (op Operation) again(tool string, digest, kept []byte, result proto.Message) error {
	if tool != op.Tool || !bytes.Equal(digest, op.seal()) {
		return fault.New(fault.Conflict, "This operation id was used before, with other arguments or by "+
			"another caller. Repeat the first call exactly, or use a new operation id.").WithReason(ReasonReused).WithOperation(op.ID)
	}
	if err := proto.Unmarshal(kept, result); err != nil {
		return fmt.Errorf("decode the kept result of %s: %w", tool, err)
	}
	return nil
}

// abandon rolls back what is not committed. A connection that cannot is closed, which rolls back as well.
func (t transaction) abandon(ctx context.Context) error {
	if t.IsClosed() || t.PgConn().TxStatus() == idle {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if _, err := t.Exec(ctx, "rollback"); err != nil {
		return errors.Join(fmt.Errorf("roll the operation back: %w", err), t.Close(ctx))
	}
	return nil
}
