package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/services/turn/internal/model"
)

func (b *bundle) holders(t testing.TB) map[string]int {
	t.Helper()
	rows, err := b.pool.Query(t.Context(), `select holder, count(*) from seats where expires_at > clock_timestamp() group by 1`)
	require.NoError(t, err)
	held := map[string]int{}
	for rows.Next() {
		var (
			holder string
			n      int
		)
		require.NoError(t, rows.Scan(&holder, &n))
		held[holder] = n
	}
	require.NoError(t, rows.Err())
	return held
}

func TestWorkersShareTheSeats(t *testing.T) {
	t.Parallel()
	c := newCompany(scripted(filing))
	c.Seats = nil
	for i := range 7 {
		c.Seats = append(c.Seats, &companyv1.Seat{Handle: fmt.Sprintf("seat-%d", i), Name: "S", Kind: "agent"})
	}
	b := setup(t, c)
	b.options.LeaseTTL = 600 * time.Millisecond
	share := func(want ...int) func() bool {
		return func() bool {
			held := b.holders(t)
			for i, n := range want {
				if got := held[fmt.Sprintf("n%d", i+1)]; n < 0 && got == 0 || n >= 0 && got != n {
					return false
				}
			}
			return true
		}
	}
	b.start(t, "n1", nil)
	require.Eventually(t, share(7), patience, 5*time.Millisecond)
	second := b.start(t, "n2", nil)
	require.Eventually(t, share(4, 3), patience, 5*time.Millisecond, "the first gives up its surplus")
	for i := range 7 {
		b.post(t, letter(fmt.Sprintf("seat-%d", i), "slack:1", "it is broken"))
	}
	for _, turn := range b.ended(t, 7) {
		require.Equal(t, "delivered", turn.Outcome)
		require.Zero(t, turn.Resumes)
	}
	second.stop()
	require.Eventually(t, share(7, 0), patience, 5*time.Millisecond, "who stops gives its seats back at once")
}

func TestTheSeatsOfADeadWorkerAreTakenLongBeforeItsLeasesEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, newCompany(scripted(filing)))
	b.options.LeaseTTL, b.grace = time.Hour, time.Millisecond
	_, _, err := b.store.Beat(t.Context(), "dead", time.Hour)
	require.NoError(t, err)
	taken, err := b.store.Acquire(t.Context(), "dead", []string{"ada"}, time.Hour, 1)
	require.NoError(t, err)
	require.Len(t, taken, 1)
	b.start(t, "alive", nil)
	b.post(t, letter("ada", "slack:1", "it is broken"))
	require.Equal(t, "delivered", b.ended(t, 1)[0].Outcome)
}

func TestDrain(t *testing.T) {
	t.Parallel()

	t.Run("lets a running turn end and begins nothing new", func(t *testing.T) {
		t.Parallel()
		b := setup(t, newCompany())
		asked, answer := make(chan struct{}, 1), make(chan struct{})
		b.models = stub{ask: func(context.Context, model.Request) (model.Answer, error) {
			asked <- struct{}{}
			<-answer
			return calls("submit_work", `{"outcome":"blocked","summary":"x","evidence":"y"}`), nil
		}}
		b.post(t, letter("ada", "slack:1", "one"))
		w := b.start(t, "n1", nil)
		<-asked
		b.post(t, letter("ada", "slack:2", "two"))
		go func() { close(answer) }()
		w.stop()
		require.Len(t, b.ended(t, 1), 1)
		waiting, err := b.store.ListMail(t.Context(), "ada", "ready", 10)
		require.NoError(t, err)
		require.Len(t, waiting, 1)
		require.Empty(t, b.holders(t), "the leases are given back at once")
	})

	t.Run("stops a long turn at its next commit, for another worker to go on", func(t *testing.T) {
		t.Parallel()
		b := setup(t, newCompany())
		b.options.DrainTimeout = 50 * time.Millisecond
		var finish atomic.Bool
		begun := make(chan struct{}, 1000)
		b.models = stub{ask: func(ctx context.Context, r model.Request) (model.Answer, error) {
			if finish.Load() {
				return calls("submit_work", `{"outcome":"blocked","summary":"x","evidence":"y"}`), nil
			}
			begun <- struct{}{}
			timer := time.NewTimer(20 * time.Millisecond)
			defer timer.Stop()
			<-timer.C
			return calls("get_work_item", fmt.Sprintf(`{"title":"%d"}`, len(r.Rounds))), nil
		}}
		c := newCompany()
		c.TurnEngine.MaxToolRounds = 1000
		b.office.put(c)
		b.post(t, letter("ada", "slack:1", "one"))
		w := b.start(t, "n1", nil)
		<-begun
		w.stop()
		finish.Store(true)
		b.start(t, "n2", nil)
		turn := b.ended(t, 1)[0]
		require.EqualValues(t, 1, turn.Resumes)
		for _, call := range b.journal(t, turn.ID).Calls() {
			require.Equal(t, "done", string(call.State))
		}
		require.Len(t, b.registry.asked(), int(turn.Rounds)-1, "no step was lost and none made twice")
	})

	t.Run("gives up a model that is silent, for another worker to ask again", func(t *testing.T) {
		t.Parallel()
		b := setup(t, newCompany())
		b.options.DrainTimeout = 2 * time.Second
		var speaks atomic.Bool
		asked := make(chan struct{}, 1)
		b.models = stub{ask: func(ctx context.Context, _ model.Request) (model.Answer, error) {
			if speaks.Load() {
				return calls("submit_work", `{"outcome":"blocked","summary":"x","evidence":"y"}`), nil
			}
			asked <- struct{}{}
			<-ctx.Done()
			return model.Answer{}, ctx.Err()
		}}
		b.post(t, letter("ada", "slack:1", "one"))
		w := b.start(t, "n1", nil)
		<-asked
		began := time.Now()
		w.stop()
		require.Less(t, time.Since(began), 2*b.options.DrainTimeout, "whoever waits for the process has hardly more patience")
		require.Empty(t, b.holders(t), "the lease is given back")
		speaks.Store(true)
		b.start(t, "n2", nil)
		require.EqualValues(t, 1, b.ended(t, 1)[0].Resumes)
	})
}

func TestCoalescingWindow(t *testing.T) {
	t.Parallel()
	c := newCompany(scripted(filing))
	c.Mail.CoalesceWindowSeconds = 1
	b := setup(t, c)
	w := b.start(t, "n1", nil)
	b.post(t, letter("ada", "slack:1", "it is broken"))
	w.Wake("ada")
	b.post(t, letter("ada", "slack:1", "really"))
	w.Wake("ada")
	turn := b.ended(t, 1)[0]
	require.Len(t, turn.MailIDs, 2)
}

func TestConcurrencyCap(t *testing.T) {
	t.Parallel()
	b := setup(t, newCompany())
	b.options.MaxConcurrent = 1
	var running, most atomic.Int32
	b.models = stub{ask: func(context.Context, model.Request) (model.Answer, error) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		return calls("submit_work", `{"outcome":"blocked","summary":"x","evidence":"y"}`), nil
	}}
	for _, seat := range []string{"ada", "bo"} {
		for i := range 5 {
			b.post(t, letter(seat, fmt.Sprintf("slack:%d", i), "x"))
		}
	}
	b.start(t, "n1", nil)
	b.ended(t, 10)
	require.EqualValues(t, 1, most.Load())
}

// TestASeatThatCouldNotBeGivenBackIsTakenUpAgain has the database refuse an answer, so that the worker lets go of its seat, and
// then the release, too. The lease is the process's own still, which renews it: nobody else could ever take it.
func TestASeatThatCouldNotBeGivenBackIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, newCompany(scripted(filing)))
	_, err := b.pool.Exec(t.Context(), `
create sequence refusals;
create function refuse() returns trigger language plpgsql as $$
begin
    perform nextval('refusals');
    raise exception 'not now';
end $$;
create trigger away before insert on rounds for each row execute function refuse();
create trigger away before update on seats for each row when (new.holder = '') execute function refuse();`)
	require.NoError(t, err)
	b.start(t, "n1", nil)
	b.post(t, letter("ada", "slack:1", "it is broken"))
	require.Eventually(t, func() bool {
		var refusals int
		require.NoError(t, b.pool.QueryRow(t.Context(), `select last_value from refusals`).Scan(&refusals))
		return refusals >= 2
	}, patience, 5*time.Millisecond, "the answer and the release are refused")
	_, err = b.pool.Exec(t.Context(), `drop trigger away on rounds; drop trigger away on seats`)
	require.NoError(t, err)
	turn := b.ended(t, 1)[0]
	require.Equal(t, "delivered", turn.Outcome)
	require.Equal(t, int32(1), turn.Resumes)
}
