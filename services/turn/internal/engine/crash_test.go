package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/doubles/modeldouble"
	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/turn/internal/events"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
	"github.com/bullpenhq/bullpen/services/turn/internal/model"
	"github.com/bullpenhq/bullpen/services/turn/internal/store"
)

// mortal answers a store that reaches the database a number of times and never again, as a worker that dies there does. dead
// is closed at its first failure.
func mortal(t *testing.T, b *bundle, lives int64) (s *store.Store, dead chan struct{}) {
	t.Helper()
	config := b.pool.Config()
	dead = make(chan struct{})
	var left atomic.Int64
	left.Store(lives)
	config.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) {
		switch n := left.Add(-1); {
		case n >= 0:
			return true, nil
		case n == -1:
			close(dead)
		}
		return true, errors.New("the worker is dead")
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return store.New(pool, events.Encoders(), nil), dead
}

func providers(url string) map[string]*companyv1.LlmProvider {
	return map[string]*companyv1.LlmProvider{
		"anthropic": {Key: "default", Type: "anthropic", Model: "m", BaseUrl: url, ApiKeys: []string{"sk-secret-key"}},
		"openai":    {Key: "default", Type: "openai", Model: "m", BaseUrl: url + "/v1", ApiKeys: []string{"sk-secret-key"}},
	}
}

func double(t testing.TB, scenario string) *modeldouble.Server {
	t.Helper()
	s, err := modeldouble.Start(modeldouble.Options{Scenario: scenario})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

const busy = `
rules:
  - rounds:
      - calls:
          - {tool: create_work_item, args: {title: first}}
          - {tool: create_work_item, args: {title: second}}
          - {tool: get_work_item, args: {title: OPS-1}}
      - call: {tool: reply, args: {body: "Filed."}}
      - submit: {summary: done}
`

// TestCrash kills a worker at each access to the database in turn and lets another one go on.
func TestCrash(t *testing.T) {
	t.Parallel()
	for vendor := range providers("") {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			finished := false
			for lives := int64(1); !finished; lives++ {
				require.Less(t, lives, int64(80), "the turn never ends by itself")
				t.Run(fmt.Sprintf("dies after %d accesses", lives), func(t *testing.T) { finished = crashAt(t, vendor, lives) })
			}
		})
	}
}

// crashAt answers whether the turn had ended before the worker died.
func crashAt(t *testing.T, vendor string, lives int64) (finished bool) {
	model := double(t, busy)
	b := setup(t, newCompany(providers(model.URL())[vendor]))
	b.options.LeaseTTL = 300 * time.Millisecond
	b.options.DrainTimeout = 0
	b.options.Poll = time.Hour
	b.post(t, letter("ada", "slack:1", "please file it"))
	doomed, dead := mortal(t, b, lives)
	w := b.start(t, "doomed", doomed)
	select {
	case <-dead:
	case <-time.After(patience):
		t.Fatal("the worker does not die")
	}
	w.stop()
	atCrash := 0
	turns, err := b.store.ListTurns(t.Context(), store.TurnFilter{Limit: 10})
	require.NoError(t, err)
	if len(turns) > 0 {
		atCrash = len(b.journal(t, turns[0].ID).Rounds)
		finished = !turns[0].Running
	}
	billedBefore := len(model.Bills())

	b.options.DrainTimeout, b.options.Poll = 5*time.Second, 20*time.Millisecond
	b.start(t, "healthy", nil)
	turn := b.ended(t, 1)[0]
	require.Equal(t, "delivered", turn.Outcome, turn.Summary)
	require.Equal(t, []string{
		"create_work_item done", "create_work_item done", "get_work_item done", "reply done", "submit_work done",
	}, states(b.journal(t, turn.ID)))

	require.Equal(t, 3-atCrash, len(model.Bills())-billedBefore, "a journaled answer is never paid for again")
	require.LessOrEqual(t, len(model.Bills()), 4, "at most the one answer that was not kept yet was paid for in vain")
	writes := map[string]bool{}
	for _, call := range b.registry.asked() {
		if call.GetOperationId() != "" {
			writes[call.GetOperationId()] = true
		}
	}
	require.Len(t, writes, 3, "a write keeps its operation over workers")
	effects := map[string]int{}
	for _, effect := range b.registry.did() {
		effects[effect]++
	}
	require.Equal(t, 1, effects[`create_work_item {"title":"first"}`])
	require.Equal(t, 1, effects[`create_work_item {"title":"second"}`])
	require.Equal(t, 1, effects[`reply {"body":"Filed."}`])

	mail, err := b.store.ListMail(t.Context(), "ada", "done", 10)
	require.NoError(t, err)
	require.Len(t, mail, 1)
	facts := b.facts(t)
	require.Equal(t, "TurnStarted", facts[0])
	require.Equal(t, "TurnCompleted", facts[len(facts)-1])
	require.Len(t, facts, int(turn.Resumes)+2)
	return finished
}

func TestCallInDoubt(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]string{
		"post.message": "post.message unknown", // may have posted
		"look_up":      "look_up done",         // changes nothing
		"reply":        "reply done",           // the ledger makes it one
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			b := setup(t, newCompany())
			b.options.LeaseTTL = 300 * time.Millisecond
			b.options.DrainTimeout = 0
			reached := make(chan struct{})
			var called atomic.Bool
			b.registry.before = func(ctx context.Context, _ *toolregistryv1.CallToolRequest) error {
				if called.Swap(true) {
					return nil
				}
				close(reached)
				<-ctx.Done()
				return ctx.Err()
			}
			var seen string
			b.models = stub{ask: func(_ context.Context, r model.Request) (model.Answer, error) {
				if len(r.Rounds) == 0 {
					return calls("get_work_item", `{"title": broken`, tool, `{}`), nil
				}
				seen = r.Rounds[0].Results[1].Text
				return calls("submit_work", `{"outcome":"blocked","summary":"x","evidence":"y"}`), nil
			}}
			b.post(t, letter("ada", "slack:1", "hello"))
			w := b.start(t, "doomed", nil)
			<-reached
			w.stop()
			b.start(t, "healthy", nil)
			turn := b.ended(t, 1)[0]
			require.Equal(t, want, states(b.journal(t, turn.ID))[1])
			require.EqualValues(t, 1, turn.Resumes)
			if want == "post.message unknown" {
				require.Contains(t, seen, "may or may not have happened")
				require.Len(t, b.registry.asked(), 1)
			}
		})
	}
}

func TestRestoresTheAudit(t *testing.T) {
	t.Parallel()
	b := setup(t, newCompany())
	b.options.DrainTimeout = 0
	asking := make(chan struct{}, 1)
	var resumed atomic.Bool
	b.models = stub{ask: func(ctx context.Context, r model.Request) (model.Answer, error) {
		switch {
		case len(r.Rounds) == 0:
			return calls("create_work_item", `{"title":"x"}`), nil
		case !resumed.Swap(true):
			asking <- struct{}{}
			<-ctx.Done()
			return model.Answer{}, ctx.Err()
		default:
			return calls("submit_work", `{"outcome":"blocked","summary":"x","evidence":"y"}`), nil
		}
	}}
	b.post(t, letter("ada", "slack:1", "hello"))
	w := b.start(t, "doomed", nil)
	<-asking
	w.stop()
	b.start(t, "healthy", nil)
	turn := b.ended(t, 1)[0]
	require.Eventually(t, func() bool {
		b.registry.mu.Lock()
		defer b.registry.mu.Unlock()
		return len(b.registry.restored) == 1
	}, patience, 5*time.Millisecond)
	record := b.registry.restored[0]
	require.Equal(t, []string{turn.ID, "create_work_item", "ok", "seat:ada"},
		[]string{record.GetTurnId(), record.GetTool(), record.GetStatus(), record.GetPrincipal()})
}

func TestCallsThatARegistryLostWhenItDiedAreRestoredOnceItIsBack(t *testing.T) {
	t.Parallel()
	b := setup(t, newCompany(scripted(filing)))
	b.start(t, "n1", nil)
	b.post(t, letter("ada", "slack:1", "it is broken"))
	first := b.ended(t, 1)[0]

	// The next call finds nobody, as after a kill; the one after it does.
	var refused atomic.Bool
	b.registry.mu.Lock()
	b.registry.before = func(context.Context, *toolregistryv1.CallToolRequest) error {
		if refused.Swap(true) {
			return nil
		}
		return fault.New(fault.Unavailable, "connection refused")
	}
	b.registry.mu.Unlock()
	b.post(t, letter("ada", "slack:2", "it is broken"))
	b.ended(t, 2)
	require.Eventually(t, func() bool {
		b.registry.mu.Lock()
		defer b.registry.mu.Unlock()
		return slices.ContainsFunc(b.registry.restored, func(r *toolregistryv1.CallRecord) bool { return r.GetTurnId() == first.ID })
	}, patience, 5*time.Millisecond)
}

func TestFence(t *testing.T) {
	t.Parallel()
	b := setup(t, newCompany())
	ctx := t.Context()
	old, err := b.store.Acquire(ctx, "old", []string{"ada"}, time.Minute, 1)
	require.NoError(t, err)
	fence := store.Fence{Seat: "ada", Epoch: old["ada"]}
	mail := letter("ada", "slack:1", "hello")
	b.post(t, mail)
	turn := journal.Turn{
		ID: mail.DeliveryID, WorkKey: "w", Seat: "ada", MailIDs: []string{mail.DeliveryID}, Base: []byte("{}"), Opening: "hi",
		StartAt: time.Now(), ReceiveAt: time.Now(),
	}
	require.NoError(t, b.store.Begin(ctx, fence, turn, nil))
	round := journal.Round{Number: 1, Stop: journal.StopCalls, Calls: []journal.Call{{ID: "1", Tool: "reply", Args: "{}"}}}

	_, err = b.pool.Exec(ctx, `update seats set expires_at = clock_timestamp()`)
	require.NoError(t, err)
	none, err := b.store.Acquire(ctx, "new", []string{"ada"}, time.Minute, 1)
	require.NoError(t, err)
	require.Len(t, none, 1)
	require.ErrorIs(t, b.store.Answered(ctx, fence, turn.ID, round, true, false), store.ErrFenced, "a lapsed lease writes nothing")
	current := store.Fence{Seat: "ada", Epoch: none["ada"]}
	require.ErrorIs(t, b.store.Answered(ctx, current, turn.ID, round, true, false), store.ErrFenced, "the turn is not taken up yet")
	_, found, err := b.store.TakeUp(ctx, current, time.Now())
	require.NoError(t, err)
	require.True(t, found)
	require.NoError(t, b.store.Answered(ctx, current, turn.ID, round, true, false))
	settle := store.Settle{Round: 1, Ordinal: 0, State: journal.Done, At: time.Now()}
	require.ErrorIs(t, b.store.Settled(ctx, fence, turn.ID, settle, false), store.ErrFenced)
	require.ErrorIs(t, b.store.HoldSeat(ctx, fence, "x"), store.ErrFenced)
	_, err = b.store.End(ctx, fence, turn.ID, store.Ending{Outcome: "failed", At: time.Now()})
	require.ErrorIs(t, err, store.ErrFenced)
	require.NoError(t, b.store.Settled(ctx, current, turn.ID, settle, false))
	require.ErrorIs(t, b.store.Settled(ctx, current, turn.ID, settle, false), store.ErrFenced, "a call ends once")
	held, _, err := b.store.Beat(ctx, "old", time.Minute)
	require.NoError(t, err)
	require.Empty(t, held, "a lapsed lease is not renewed")
}
