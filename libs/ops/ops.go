// Package ops is the ledger of operations: it makes a write that is asked for twice happen once.
//
// Every write carries an operation id that its caller chose. [Do] runs the write and, in the same transaction, keeps
// its result under that id. The same id again answers the kept result and writes nothing; the same id with other
// arguments, or from somebody else, is a mistake of the caller and refused. Twins that arrive together wait for each other: one writes, the
// others replay what it answered.
//
//	Do ── begin, lock the id, in the ledger? ── yes, same digest ──► replay
//	      (one round trip)     │ no                └─ other digest ──► conflict OPERATION_REUSED
//	                           ▼
//	                          fn ──► ledger row + commit, one round trip
//
// The id is locked by an advisory lock of the transaction, not by a row: a crash leaves nothing behind, and a refused
// write may be repeated as if it had never been tried.
//
// The table belongs to the service, whose own migration creates it:
//
//	create table operations (
//	    operation_id text primary key,
//	    tool text not null,
//	    digest bytea not null,
//	    result bytea not null default '',
//	    position text not null default '',
//	    created_at timestamptz not null default now()
//	);
//	create index operations_created_at_idx on operations (created_at);
//
// It is not a queue and not an audit: rows are swept after the time in which a caller may still repeat itself.
package ops

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pg"
)

const (
	// ReasonReused: the operation id was used before, with other arguments, for another tool or by somebody else.
	ReasonReused = "OPERATION_REUSED"

	// MaxIDBytes is the longest operation id.
	MaxIDBytes = 256

	insertOperation = `
insert into operations (operation_id, tool, digest, result, position) values ($1, $2, $3, $4, $5)`

	// operatorIntervention is the class of SQLSTATE codes that a server sends while it throws a session out.
	operatorIntervention = "57"
)

// Operation names one write.
type Operation struct {
	// ID is the caller's: printable ASCII without spaces, at most [MaxIDBytes] long. Empty means that the caller will never repeat itself: a new id is
	// minted, and the ledger is not asked.
	ID string
	// Caller is who writes, such as "seat:ada", required with an ID. Only who made an operation may repeat it: whoever
	// else guesses or copies an id learns nothing of what it did.
	Caller string
	// Tool is what is done, such as "create_item".
	Tool string
	// Digest is of the arguments, as [Digest] answers it.
	Digest []byte
}

// seal is what the ledger keeps to know the operation again: the digest of its arguments bound to its caller.
func (op Operation) seal() []byte {
	h := sha256.New()
	h.Write(binary.AppendUvarint(nil, uint64(len(op.Caller))))
	h.Write([]byte(op.Caller))
	h.Write(op.Digest)
	return h.Sum(nil)
}

// Digest is the SHA-256 of a message's deterministic wire form: equal for equal arguments, however they were written.
func Digest(m proto.Message) []byte {
	wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		// Only text that is no UTF-8 fails, and nothing that came through an edge contains any. Its text form still
		// tells two messages apart.
		wire = fmt.Append(nil, m)
	}
	sum := sha256.Sum256(wire)
	return sum[:]
}

// Do runs fn once per operation id. The first time, fn writes through tx and fills result, and Do keeps the result and
// commits, in one round trip. The same operation again fills result from the ledger, answers replayed true, and does
// not run fn. If result has a text field named position, it is kept in the ledger's column of that name as well.
//
// An error of fn rolls everything back and is answered as it is; the operation may then be tried again. Do refuses with
// conflict, reason [ReasonReused], an id that was used for something else. When the database is lost during the commit
// nobody knows whether the write happened: the fault is unavailable with the outcome unknown, and repeating the operation
// finds out, which is what the id is for.
//
// fn must not keep tx, nor commit it, nor wait for another connection of the pool: its twins may hold them all.
func Do(
	ctx context.Context, pool *pgxpool.Pool, op Operation, result proto.Message,
	fn func(ctx context.Context, tx pgx.Tx) error,
) (replayed bool, err error) {
	return DoBatch(ctx, pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		return nil, fn(ctx, tx)
	})
}

// DoBatch is [Do] for a write whose last statements need no answer: fn reads and locks through tx, decides, fills
// result, and answers the statements that write. They go to the server together with the ledger row and the commit, in
// one round trip, which is what keeps a hot write near the rate of a single insert. A nil batch is allowed. Callbacks
// queued on the batch run in order before DoBatch returns.
func DoBatch(
	ctx context.Context, pool *pgxpool.Pool, op Operation, result proto.Message,
	fn func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error),
) (replayed bool, err error) {
	return DoPipelined(ctx, pool, op, result, &pgx.Batch{}, fn)
}

// DoPipelined is [DoBatch] for a write that knows before it begins what it must read and lock first: those statements go to
// the server together with the beginning, so that the whole write takes two round trips. Their callbacks run before fn
// and not at all on a replay; the statements do run then, and are rolled back. A callback keeps what it finds wrong, such as
// a row that is not there, for fn to answer: what it returns makes the connection prepare the statements anew.
func DoPipelined(
	ctx context.Context, pool *pgxpool.Pool, op Operation, result proto.Message, first *pgx.Batch,
	fn func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error),
) (replayed bool, err error) {
	if err := checkID(op.ID); err != nil {
		return false, err
	}
	if op.ID != "" && op.Caller == "" {
		return false, fmt.Errorf("the operation %s of %s has no caller", op.ID, op.Tool)
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return false, fmt.Errorf("acquire a connection: %w", err)
	}
	defer conn.Release()

	tx := transaction{conn.Conn()}
	committed := false
	defer func() {
		if committed {
			return
		}
		if failed := tx.abandon(ctx); failed != nil && err == nil {
			err = failed
		}
	}()
	replayed, err = tx.open(ctx, op, result, first)
	if replayed || err != nil {
		return replayed, err
	}
	if op.ID == "" {
		op.ID = uuid.Must(uuid.NewV7()).String()
	}
	writes, err := fn(ctx, tx)
	if err != nil {
		return false, err
	}
	kept, err := proto.MarshalOptions{Deterministic: true}.Marshal(result)
	if err != nil {
		return false, fmt.Errorf("encode the result of %s: %w", op.Tool, err)
	}
	if writes == nil {
		writes = &pgx.Batch{}
	}
	writes.Queue(insertOperation, op.ID, op.Tool, op.seal(), kept, positionOf(result))
	writes.Queue("commit")
	if err := conn.SendBatch(ctx, writes).Close(); err != nil {
		return false, notCommitted(op, err)
	}
	committed = true
	return false, nil
}

func checkID(id string) error {
	if len(id) > MaxIDBytes {
		return fault.New(fault.Invalid, "The operation id is %d bytes long; at most %d are allowed.", len(id), MaxIDBytes)
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return fault.New(fault.Invalid, "The operation id may hold printable ASCII without spaces only.")
		}
	}
	return nil
}

// notCommitted tells a write that the server refused from one whose commit nobody answered.
func notCommitted(op Operation, err error) error {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && !strings.HasPrefix(pgErr.Code, operatorIntervention) {
		return fmt.Errorf("commit the operation: %w", err)
	}
	return fault.New(fault.Unavailable, "The database was lost before it said whether the write happened. Repeat the call "+
		"with the same operation id to find out.").
		WithOutcome(fault.OutcomeUnknown).WithOperation(op.ID).WithCause(err)
}

// positionOf answers the text field named position of a write's result, by the convention of bullpen.tool.v1.Receipt.
func positionOf(result proto.Message) string {
	m := result.ProtoReflect()
	field := m.Descriptor().Fields().ByName("position")
	if field == nil || field.Kind() != protoreflect.StringKind || field.IsList() {
		return ""
	}
	return m.Get(field).String()
}

// Check proves that the schema's operations table fits this build.
func Check(ctx context.Context, pool *pgxpool.Pool) error {
	return pg.RequireColumns(ctx, pool, "operations", map[string]string{
		"operation_id": "text", "tool": "text", "digest": "bytea", "result": "bytea", "position": "text",
		"created_at": "timestamp with time zone",
	})
}
