package ops_test

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/structpb"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/libs/pgtest"
)

//go:embed testdata/*.sql
var migrations embed.FS

func operation(id string) ops.Operation {
	return ops.Operation{ID: id, Caller: "seat:ada", Tool: "create_item", Digest: ops.Digest(structpb.NewStringValue("arguments"))}
}

// effect writes a row and answers its id in the receipt's version.
func effect(name string, receipt *toolv1.Receipt) func(context.Context, pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		receipt.Outcome = "applied"
		receipt.Position = ops.Position{Service: "tracker", Epoch: 1, Sequence: 7}.String()
		return tx.QueryRow(ctx, "insert into effects (operation) values ($1) returning id", name).Scan(&receipt.Version)
	}
}

func count(t *testing.T, pool *pgxpool.Pool, table string) int {
	t.Helper()
	var n int
	require.NoError(t, pool.QueryRow(t.Context(), "select count(*) from "+table).Scan(&n))
	return n
}

func TestDo(t *testing.T) {
	t.Parallel()

	t.Run("the same operation again answers the first result and writes nothing", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		require.NoError(t, ops.Check(t.Context(), pool))
		var first toolv1.Receipt
		replayed, err := ops.Do(t.Context(), pool, operation("op-1"), &first, effect("op-1", &first))
		require.NoError(t, err)
		require.False(t, replayed)

		var again toolv1.Receipt
		replayed, err = ops.Do(t.Context(), pool, operation("op-1"), &again, func(context.Context, pgx.Tx) error {
			t.Error("the write ran twice")
			return nil
		})
		require.NoError(t, err)
		require.True(t, replayed)
		require.Equal(t, first.GetVersion(), again.GetVersion())
		require.Equal(t, "tracker@1:7", again.GetPosition())
		require.Equal(t, 1, count(t, pool, "effects"))

		var position string
		require.NoError(t, pool.QueryRow(t.Context(), "select position from operations").Scan(&position))
		require.Equal(t, "tracker@1:7", position)
	})

	t.Run("sixty-four twins at once have one effect and one answer", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		const twins = 64
		var (
			start   sync.WaitGroup
			group   errgroup.Group
			answers [twins]toolv1.Receipt
			first   [twins]bool
		)
		start.Add(1)
		for i := range twins {
			group.Go(func() error {
				start.Wait()
				replayed, err := ops.Do(t.Context(), pool, operation("op-1"), &answers[i], effect("op-1", &answers[i]))
				first[i] = !replayed
				return err
			})
		}
		start.Done()
		require.NoError(t, group.Wait())
		writers := 0
		for i := range twins {
			require.Equal(t, answers[0].GetVersion(), answers[i].GetVersion())
			if first[i] {
				writers++
			}
		}
		require.Equal(t, 1, writers)
		require.Equal(t, 1, count(t, pool, "effects"))
	})

	t.Run("an id that was used for something else is refused", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		var r toolv1.Receipt
		_, err := ops.Do(t.Context(), pool, operation("op-1"), &r, effect("op-1", &r))
		require.NoError(t, err)

		otherArguments := operation("op-1")
		otherArguments.Digest = ops.Digest(structpb.NewStringValue("other arguments"))
		otherTool := operation("op-1")
		otherTool.Tool = "delete_item"
		for _, op := range []ops.Operation{otherArguments, otherTool} {
			_, err = ops.Do(t.Context(), pool, op, &r, effect("op-1", &r))
			f, ok := fault.As(err)
			require.True(t, ok, "%v", err)
			require.Equal(t, fault.Conflict, f.Class)
			require.Equal(t, ops.ReasonReused, f.Reason)
			require.Equal(t, "op-1", f.Operation)
		}
		require.Equal(t, 1, count(t, pool, "effects"))
	})

	t.Run("a refused write leaves nothing and may be tried again", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		var r toolv1.Receipt
		refusal := fault.New(fault.Conflict, "the item is closed")
		_, err := ops.Do(t.Context(), pool, operation("op-1"), &r, func(ctx context.Context, tx pgx.Tx) error {
			return errors.Join(effect("op-1", &r)(ctx, tx), refusal)
		})
		require.ErrorIs(t, err, refusal)
		require.Zero(t, count(t, pool, "effects"))
		require.Zero(t, count(t, pool, "operations"))

		replayed, err := ops.Do(t.Context(), pool, operation("op-1"), &r, effect("op-1", &r))
		require.NoError(t, err)
		require.False(t, replayed)
		require.Equal(t, 1, count(t, pool, "effects"))
	})

	t.Run("a panic rolls back and gives the connection back", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		var r toolv1.Receipt
		for range pool.Config().MaxConns + 1 {
			require.Panics(t, func() {
				_, _ = ops.Do(t.Context(), pool, operation("op-1"), &r, func(ctx context.Context, tx pgx.Tx) error {
					_ = effect("op-1", &r)(ctx, tx)
					panic("a bug")
				})
			})
		}
		require.Zero(t, count(t, pool, "effects"))
	})

	t.Run("a connection that dies before the commit leaves nothing, and the repetition writes once", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		var r toolv1.Receipt
		_, err := ops.Do(t.Context(), pool, operation("op-1"), &r, func(ctx context.Context, tx pgx.Tx) error {
			if err := effect("op-1", &r)(ctx, tx); err != nil {
				return err
			}
			_, err := pool.Exec(ctx, "select pg_terminate_backend($1)", tx.Conn().PgConn().PID())
			return err
		})
		f, ok := fault.As(err)
		require.True(t, ok, "%v", err)
		require.Equal(t, fault.Unavailable, f.Class)
		require.Equal(t, fault.OutcomeUnknown, f.Outcome)
		require.Equal(t, "op-1", f.Operation)
		require.True(t, pg.Transient(err))
		require.Zero(t, count(t, pool, "operations"))

		replayed, err := ops.Do(t.Context(), pool, operation("op-1"), &r, effect("op-1", &r))
		require.NoError(t, err)
		require.False(t, replayed)
		require.Equal(t, 1, count(t, pool, "effects"))
	})

	t.Run("a caller that goes away frees the id for its twin", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		ctx, leave := context.WithCancel(t.Context())
		var r toolv1.Receipt
		_, err := ops.Do(ctx, pool, operation("op-1"), &r, func(ctx context.Context, tx pgx.Tx) error {
			leave()
			return effect("op-1", &r)(ctx, tx)
		})
		require.ErrorIs(t, err, context.Canceled)
		replayed, err := ops.Do(t.Context(), pool, operation("op-1"), &r, effect("op-1", &r))
		require.NoError(t, err)
		require.False(t, replayed)
	})

	t.Run("only who made an operation may repeat it", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		var first toolv1.Receipt
		_, err := ops.Do(t.Context(), pool, operation("op-1"), &first, effect("op-1", &first))
		require.NoError(t, err)

		another := operation("op-1")
		another.Caller = "seat:bo"
		var learned toolv1.Receipt
		_, err = ops.Do(t.Context(), pool, another, &learned, effect("op-1", &learned))
		f, ok := fault.As(err)
		require.True(t, ok, "%v", err)
		require.Equal(t, fault.Conflict, f.Class)
		require.Equal(t, ops.ReasonReused, f.Reason)
		require.Empty(t, learned.GetPosition(), "nothing of the first result is told")
		require.Equal(t, 1, count(t, pool, "effects"))
	})

	t.Run("an operation that could be repeated has a caller", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		nobodys := operation("op-1")
		nobodys.Caller = ""
		_, err := ops.Do(t.Context(), pool, nobodys, &toolv1.Receipt{}, nil)
		require.ErrorContains(t, err, "has no caller")
	})

	t.Run("without an id every call is an operation of its own", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		var r toolv1.Receipt
		for range 2 {
			replayed, err := ops.Do(t.Context(), pool, operation(""), &r, effect("", &r))
			require.NoError(t, err)
			require.False(t, replayed)
		}
		require.Equal(t, 2, count(t, pool, "effects"))
		require.Equal(t, 2, count(t, pool, "operations"))
	})

	t.Run("an id that no ledger should hold is refused before anything is done", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		for _, id := range []string{strings.Repeat("x", ops.MaxIDBytes+1), "two words", "nul\x00", "ü"} {
			_, err := ops.Do(t.Context(), pool, operation(id), &toolv1.Receipt{}, nil)
			require.Equal(t, fault.Invalid, fault.ClassOf(err), "%q", id)
		}
	})
}

func TestDoBatch(t *testing.T) {
	t.Parallel()

	t.Run("the batch commits with the ledger", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		var r toolv1.Receipt
		write := func(context.Context, pgx.Tx) (*pgx.Batch, error) {
			r.Outcome = "applied"
			var batch pgx.Batch
			batch.Queue("insert into effects (operation) values ('op-1')")
			return &batch, nil
		}
		for range 2 {
			_, err := ops.DoBatch(t.Context(), pool, operation("op-1"), &r, write)
			require.NoError(t, err)
		}
		require.Equal(t, 1, count(t, pool, "effects"))
	})

	t.Run("a statement of the batch that fails leaves nothing", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		_, err := ops.DoBatch(t.Context(), pool, operation("op-1"), &toolv1.Receipt{},
			func(context.Context, pgx.Tx) (*pgx.Batch, error) {
				var batch pgx.Batch
				batch.Queue("insert into effects (operation) values ('op-1')")
				batch.Queue("insert into effects (operation) values (null)")
				return &batch, nil
			})
		require.ErrorContains(t, err, "null value")
		_, claimed := fault.As(err)
		require.False(t, claimed, "the server said that nothing was written")
		require.Zero(t, count(t, pool, "effects"))
		require.Zero(t, count(t, pool, "operations"))
	})
}

func TestDoPipelined(t *testing.T) {
	t.Parallel()
	asks := func(found *int, missing *error) *pgx.Batch {
		var first pgx.Batch
		first.Queue("select count(*) from effects").QueryRow(func(row pgx.Row) error { return row.Scan(found) })
		first.Queue("select id from effects where operation = 'nobody'").QueryRow(func(row pgx.Row) error {
			*missing = row.Scan(new(int))
			return nil
		})
		return &first
	}

	t.Run("what is asked first is answered before the write, and not on a replay", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		for _, id := range []string{"op-1", ""} {
			found, missing := -1, error(nil)
			var r toolv1.Receipt
			write := func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
				require.GreaterOrEqual(t, found, 0)
				require.ErrorIs(t, missing, pgx.ErrNoRows)
				return nil, effect(id, &r)(ctx, tx)
			}
			replayed, err := ops.DoPipelined(t.Context(), pool, operation(id), &r, asks(&found, &missing), write)
			require.NoError(t, err)
			require.False(t, replayed)
		}
		found, missing := -1, error(nil)
		var again toolv1.Receipt
		replayed, err := ops.DoPipelined(t.Context(), pool, operation("op-1"), &again, asks(&found, &missing), nil)
		require.NoError(t, err)
		require.True(t, replayed)
		require.Equal(t, "applied", again.GetOutcome())
		require.Equal(t, -1, found)
		require.Equal(t, 2, count(t, pool, "effects"))
	})

	t.Run("a replay answers although what is asked first fails now", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		var first, again toolv1.Receipt
		_, err := ops.Do(t.Context(), pool, operation("op-1"), &first, effect("op-1", &first))
		require.NoError(t, err)
		var fails pgx.Batch
		fails.Queue("select 1 / count(*) from effects where operation = 'nobody'")
		replayed, err := ops.DoPipelined(t.Context(), pool, operation("op-1"), &again, &fails, nil)
		require.NoError(t, err)
		require.True(t, replayed)
		require.Equal(t, first.GetPosition(), again.GetPosition())

		_, err = ops.DoPipelined(t.Context(), pool, operation("op-2"), &again, &fails, nil)
		require.ErrorContains(t, err, "division by zero")
		require.Equal(t, 1, count(t, pool, "operations"))
	})

	t.Run("a write neither ends its transaction nor begins another one", func(t *testing.T) {
		t.Parallel()
		pool := pgtest.Pool(t, "tracker", migrations)
		var r toolv1.Receipt
		_, err := ops.Do(t.Context(), pool, operation("op-1"), &r, func(ctx context.Context, tx pgx.Tx) error {
			_, nested := tx.Begin(ctx)
			require.Error(t, nested)
			require.Error(t, tx.Commit(ctx))
			require.Error(t, tx.Rollback(ctx))
			return effect("op-1", &r)(ctx, tx)
		})
		require.NoError(t, err)
		require.Equal(t, 1, count(t, pool, "effects"))
	})
}

func TestSweep(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "tracker", migrations)
	const old = 12_000
	_, err := pool.Exec(t.Context(), `insert into operations (operation_id, tool, digest, created_at)
select 'old-' || n, 'create_item', '', now() - interval '31 days' from generate_series(1, $1) n`, old)
	require.NoError(t, err)
	var r toolv1.Receipt
	_, err = ops.Do(t.Context(), pool, operation("fresh"), &r, effect("fresh", &r))
	require.NoError(t, err)

	n, err := ops.Sweep(t.Context(), pool, 30*24*time.Hour)
	require.NoError(t, err)
	require.EqualValues(t, old, n)
	require.Equal(t, 1, count(t, pool, "operations"))

	_, err = ops.Sweep(t.Context(), pool, 0)
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
}

func TestRetainForgetsAtOnceAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "tracker", migrations)
	_, err := pool.Exec(t.Context(), `insert into operations (operation_id, tool, digest, created_at)
values ('old', 'create_item', '', now() - interval '31 days'), ('young', 'create_item', '', now() - interval '29 days')`)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- ops.Retain(ctx, pool, slog.New(slog.DiscardHandler)) }()
	require.Eventually(t, func() bool { return count(t, pool, "operations") == 1 }, 30*time.Second, 5*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
}

func TestDigest(t *testing.T) {
	t.Parallel()
	fields := map[string]any{}
	for i := range 20 {
		fields[fmt.Sprint(i)] = i
	}
	first, err := structpb.NewStruct(fields)
	require.NoError(t, err)
	second, err := structpb.NewStruct(fields)
	require.NoError(t, err)
	require.Equal(t, ops.Digest(first), ops.Digest(second), "the order of a map must not tell")
	require.NotEqual(t, ops.Digest(first), ops.Digest(structpb.NewNullValue()))
}
