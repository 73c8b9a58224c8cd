package store_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/approval"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/events"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/store"
)

func openApprovals(t *testing.T) (*store.Approvals, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.Pool(t, "toolregistry", store.Migrations)
	return store.NewApprovals(pool, events.EncodeApproval, func() {}, func() time.Time { return noon }), pool
}

func question(seat, operation string) *approval.Approval {
	return &approval.Approval{
		ID: uuid.Must(uuid.NewV7()), State: approval.Waiting,
		Asker: approval.Asker{Seat: seat, DisplayName: "Ada", TurnID: "t1", WorkKey: "w1", ConversationKey: "c1", RevisionID: "r1"},
		Tool:  "create_order", Source: "mcp:shop", Digest: "d", Arguments: `{"token":"sk-secret"}`, Shown: `{"token":"[REDACTED:key]"}`,
		CallID: "call-1", OperationID: operation, Repeatable: true, Rule: "orders", Reason: "Orders need a person.",
		CreatedAt: noon, ExpiresAt: noon.Add(time.Hour),
	}
}

// facts answers what the outbox tells of an approval, in order.
func facts(ctx context.Context, t require.TestingT, pool *pgxpool.Pool, id uuid.UUID) (told []string) {
	rows, err := pool.Query(ctx, `select payload from outbox where topic = $1 order by id`, events.ApprovalTopic)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var payload []byte
		require.NoError(t, rows.Scan(&payload))
		var event toolregistryv1.ApprovalEvent
		require.NoError(t, proto.Unmarshal(payload, &event))
		switch {
		case event.GetApprovalRequested().GetApproval().GetApprovalId() == id.String():
			told = append(told, "requested")
		case event.GetApprovalSettled().GetApproval().GetApprovalId() == id.String():
			told = append(told, event.GetApprovalSettled().GetApproval().GetState())
		}
	}
	require.NoError(t, rows.Err())
	return told
}

func TestTheSameCallNeverAsksTwice(t *testing.T) {
	t.Parallel()
	s, pool := openApprovals(t)
	first := question("ada", "op-1")
	kept, asked, err := s.Ask(t.Context(), first)
	require.NoError(t, err)
	require.True(t, asked)
	require.Equal(t, first, kept)
	again, asked, err := s.Ask(t.Context(), question("ada", "op-1"))
	require.NoError(t, err)
	require.False(t, asked)
	require.Equal(t, first.ID, again.ID)
	require.Equal(t, first.Arguments, again.Arguments, "what will be sent is kept to the letter")
	other := question("ada", "op-1")
	other.Arguments = `{}`
	_, _, err = s.Ask(t.Context(), other)
	require.Equal(t, fault.Conflict, fault.ClassOf(err))
	require.Equal(t, []string{"requested"}, facts(t.Context(), t, pool, first.ID))
}

func TestOfConcurrentAnswersOneWins(t *testing.T) {
	t.Parallel()
	s, pool := openApprovals(t)
	a := question("ada", "op-1")
	_, _, err := s.Ask(t.Context(), a)
	require.NoError(t, err)
	var answers sync.WaitGroup
	errs := make([]error, 12)
	for i := range errs {
		answers.Go(func() {
			_, errs[i] = s.Change(t.Context(), a.ID, func(a *approval.Approval) error {
				by := fmt.Sprintf("operator:%d", i)
				if i%2 == 0 {
					return a.Deny(by, "", noon)
				}
				return a.Approve(by, "", "n1", uuid.NewString(), noon)
			})
		})
	}
	answers.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		require.Equal(t, fault.AlreadyAnswered, fault.ClassOf(err))
	}
	require.Equal(t, 1, won)
	require.LessOrEqual(t, len(facts(t.Context(), t, pool, a.ID)), 2)
}

func TestApprovalsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	s, _ := openApprovals(t)
	var all []uuid.UUID
	for i := range 5 {
		a := question([]string{"ada", "bo"}[i%2], fmt.Sprintf("op-%d", i))
		a.CreatedAt = noon.Add(time.Duration(i/2) * time.Second)
		_, _, err := s.Ask(t.Context(), a)
		require.NoError(t, err)
		all = append([]uuid.UUID{a.ID}, all...)
	}
	var after store.After
	var listed []uuid.UUID
	for more := true; more; {
		var page []*approval.Approval
		var err error
		page, more, err = s.List(t.Context(), "waiting", "", after, 2)
		require.NoError(t, err)
		for _, a := range page {
			listed = append(listed, a.ID)
		}
		last := page[len(page)-1]
		after = store.After{StartedAt: last.CreatedAt, ID: last.ID}
	}
	require.Equal(t, all, listed)
	bos, more, err := s.List(t.Context(), "", "bo", store.After{}, 10)
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, bos, 2)
	none, _, err := s.List(t.Context(), "denied", "", store.After{}, 10)
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestOnlyWhatIsOverIsForgotten(t *testing.T) {
	t.Parallel()
	s, _ := openApprovals(t)
	waiting, running, over := question("ada", "1"), question("ada", "2"), question("ada", "3")
	for _, a := range []*approval.Approval{waiting, running, over} {
		_, _, err := s.Ask(t.Context(), a)
		require.NoError(t, err)
	}
	_, err := s.Change(t.Context(), running.ID, func(a *approval.Approval) error { return a.Approve("operator:a", "", "n1", "x", noon) })
	require.NoError(t, err)
	_, err = s.Change(t.Context(), over.ID, func(a *approval.Approval) error { return a.Deny("operator:a", "", noon) })
	require.NoError(t, err)
	n, err := s.Delete(t.Context(), noon.Add(time.Hour), 10)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	_, err = s.Get(t.Context(), over.ID)
	require.Equal(t, fault.NotFound, fault.ClassOf(err))
}

// Whatever is done to an approval in whatever order, the store agrees with the noun, one fact is told when the question is asked
// and one when it is over, and what was asked never changes.
func TestTheStoreFollowsTheNounThroughAnyHistory(t *testing.T) {
	t.Parallel()
	s, pool := openApprovals(t)
	ctx := t.Context()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		model := question("ada", fmt.Sprintf("op-%d", n))
		_, _, err := s.Ask(ctx, model)
		require.NoError(t, err)
		now, over := noon, false
		runners := rapid.SampledFrom([]string{"n1/a", "n2/b"})
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 20, 31, 1800}).Draw(t, "seconds")) * time.Second)
			runner := runners.Draw(t, "runner")
			verbs := map[string]func(*approval.Approval) error{
				"approve": func(a *approval.Approval) error { return a.Approve("operator:a", "fine", runner, "audit", now) },
				"deny":    func(a *approval.Approval) error { return a.Deny("operator:b", "no", now) },
				"cancel":  func(a *approval.Approval) error { return a.Cancel("operator:c", now) },
				"expire":  func(a *approval.Approval) error { return a.Expire(now) },
				"renew":   func(a *approval.Approval) error { return a.Renew(runner, now) },
				"take":    func(a *approval.Approval) error { return a.Take(runner, now) },
				"settle": func(a *approval.Approval) error {
					return a.Settle(runner, approval.Call{
						Status: approval.Unknown, Result: "r", RefusalClass: "unavailable", Outcome: "unknown", Reached: []string{"slack"},
					})
				},
			}
			verb := verbs[rapid.SampledFrom([]string{"approve", "deny", "cancel", "expire", "renew", "take", "settle"}).Draw(t, "verb")]
			next := *model
			want := verb(&next)
			_, got := s.Change(ctx, model.ID, verb)
			require.Equal(t, fault.ClassOf(want), fault.ClassOf(got))
			if want == nil {
				require.False(t, over, "what is over does not move")
				*model, over = next, next.Over()
			}
			kept, err := s.Get(ctx, model.ID)
			require.NoError(t, err)
			for _, at := range []*time.Time{&kept.CreatedAt, &kept.ExpiresAt, &kept.DecidedAt, &kept.RunUntil} {
				if !at.IsZero() {
					*at = at.UTC()
				}
			}
			require.Equal(t, model, kept, "what was asked never changes either")
			lapsed, orphaned, err := s.Due(ctx, now, 1000)
			require.NoError(t, err)
			require.Equal(t, kept.Lapsed(now), slices.Contains(lapsed, kept.ID))
			require.Equal(t, kept.Call.Status == approval.Running && !now.Before(kept.RunUntil), slices.Contains(orphaned, kept.ID))
		}
		told := []string{"requested"}
		if over {
			told = append(told, string(model.State))
		}
		require.Equal(t, told, facts(ctx, t, pool, model.ID))
		_, err = pool.Exec(ctx, `truncate outbox, approvals`)
		require.NoError(t, err)
	})
}
