package tracker_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// clock is a time that a test moves.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC).UnixMicro())
	return c
}

func (c *clock) now() time.Time           { return time.UnixMicro(c.at.Load()).UTC() }
func (c *clock) advance(by time.Duration) { c.at.Add(by.Microseconds()) }

func person(ctx context.Context, handle string) context.Context {
	return rpc.As(ctx, &rpc.Principal{Kind: rpc.KindPerson, Id: "token-of-" + handle, Seat: handle})
}

func token(ctx context.Context, name string) context.Context {
	return rpc.As(ctx, &rpc.Principal{Kind: rpc.KindOperator, Id: name, DisplayName: name})
}

func claim(ctx context.Context, t *testing.T, b bundle, req *trackerv1.ClaimWorkItemRequest) *trackerv1.ClaimWorkItemResponse {
	t.Helper()
	res, err := b.client.ClaimWorkItem(ctx, req)
	require.NoError(t, err)
	return res
}

func TestOf64CallersExactlyOneClaimsAnItem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Wanted").GetKey()
	const callers = 64
	var group sync.WaitGroup
	var won atomic.Int32
	errs := make([]error, callers)
	for n := range callers {
		group.Go(func() {
			res, err := b.client.ClaimWorkItem(token(t.Context(), fmt.Sprint("worker-", n)), &trackerv1.ClaimWorkItemRequest{Item: key})
			if errs[n] = err; err == nil && res.GetItem().GetClaim().GetHolder() == fmt.Sprint("worker-", n) {
				won.Add(1)
			}
		})
	}
	group.Wait()
	require.Equal(t, int32(1), won.Load())
	got, err := b.client.GetWorkItem(operator(t.Context()), &trackerv1.GetWorkItemRequest{Item: key})
	require.NoError(t, err)
	holder := got.GetItem().GetClaim().GetHolder()
	refused := 0
	for _, err := range errs {
		if err != nil {
			f := refusal(t, err, fault.Conflict, "item")
			require.Equal(t, holder, f.Facts["holder"])
			require.Contains(t, f.Message, holder)
			require.Contains(t, f.Message, f.Facts["until"])
			refused++
		}
	}
	require.Equal(t, callers-1, refused)
	require.Equal(t, int32(1), got.GetItem().GetVersion(), "a claim changes no version")
	require.Empty(t, got.GetItem().GetAssignee(), "and no assignee")
	require.Len(t, got.GetHistory(), 2)
	require.Equal(t, "claimed", got.GetHistory()[0].GetKind())
	require.Equal(t, holder, got.GetHistory()[0].GetActor())
}

func TestManyCallersOfTheNextReadyItemNeverGetTheSame(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const items, callers = 40, 64
	for n := range items {
		file(t, b, fmt.Sprint("Ready ", n))
	}
	var group sync.WaitGroup
	got, failed := make([]*trackerv1.ClaimWorkItemResponse, callers), make([]error, callers)
	for n := range callers {
		group.Go(func() {
			// Some workers share a token: it is the call that wins, not the name.
			got[n], failed[n] = b.client.ClaimWorkItem(token(t.Context(), fmt.Sprint("worker-", n%8)), &trackerv1.ClaimWorkItemRequest{Project: "OPS"})
		})
	}
	group.Wait()
	seen := map[string]bool{}
	empty := 0
	for n, res := range got {
		require.NoError(t, failed[n])
		if res.GetItem() == nil {
			require.Equal(t, "unchanged", res.GetOutcome())
			require.Len(t, res.GetWarnings(), 1)
			empty++
			continue
		}
		require.False(t, seen[res.GetItem().GetKey()], res.GetItem().GetKey())
		seen[res.GetItem().GetKey()] = true
	}
	require.Len(t, seen, items)
	require.Equal(t, callers-items, empty)
}

func TestTheNextItemIsTheMostUrgentThenTheOneDueFirstThenTheOldest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	create := func(req *trackerv1.CreateWorkItemRequest) string {
		res, err := b.client.CreateWorkItem(seat(t.Context(), "ops-lead"), req)
		require.NoError(t, err)
		return res.GetKey()
	}
	plain := create(&trackerv1.CreateWorkItemRequest{Title: "plain"})
	younger := create(&trackerv1.CreateWorkItemRequest{Title: "younger"})
	later := create(&trackerv1.CreateWorkItemRequest{Title: "later", Priority: "high", Due: "2026-05-01"})
	sooner := create(&trackerv1.CreateWorkItemRequest{Title: "sooner", Priority: "high", Due: "2026-04-01"})
	undated := create(&trackerv1.CreateWorkItemRequest{Title: "undated", Priority: "high"})
	urgent := create(&trackerv1.CreateWorkItemRequest{Title: "urgent", Priority: "urgent"})
	mine := create(&trackerv1.CreateWorkItemRequest{Title: "mine", Priority: "urgent", Assignee: "ops-lead"})
	create(&trackerv1.CreateWorkItemRequest{Title: "designer's", Priority: "urgent", Assignee: "designer"})
	create(&trackerv1.CreateWorkItemRequest{Title: "done", Priority: "urgent", Status: "done"})
	for _, key := range []string{urgent, mine, sooner, later, undated, plain, younger} {
		require.Equal(t, key, claim(seat(t.Context(), "ops-lead"), t, b, &trackerv1.ClaimWorkItemRequest{}).GetItem().GetKey())
	}
	require.Nil(t, claim(seat(t.Context(), "ops-lead"), t, b, &trackerv1.ClaimWorkItemRequest{}).GetItem())
	_, err := b.client.ClaimWorkItem(seat(t.Context(), "designer"), &trackerv1.ClaimWorkItemRequest{})
	refusal(t, err, fault.Invalid, "project")
	_, err = b.client.ClaimWorkItem(seat(t.Context(), "designer"), &trackerv1.ClaimWorkItemRequest{Project: "NOPE"})
	refusal(t, err, fault.Invalid, "project")
}

func TestAClaimLapsesByTimeUnlessItsHolderWrites(t *testing.T) {
	t.Parallel()
	now := newClock()
	b := setupAt(t, now.now)
	key := file(t, b, "Lapsing").GetKey()
	ops, designer := seat(t.Context(), "ops-lead"), seat(t.Context(), "designer")
	res := claim(ops, t, b, &trackerv1.ClaimWorkItemRequest{Item: key, Minutes: 10})
	require.Equal(t, now.now().Add(10*time.Minute), res.GetExpireTime().AsTime())
	require.Equal(t, "applied", res.GetOutcome())
	require.NotEmpty(t, res.GetPosition())
	now.advance(9 * time.Minute)
	_, err := b.client.UpdateWorkItem(ops, &trackerv1.UpdateWorkItemRequest{Item: key, Status: proto.String("in_progress")})
	require.NoError(t, err)
	now.advance(29 * time.Minute)
	_, err = b.client.ClaimWorkItem(designer, &trackerv1.ClaimWorkItemRequest{Item: key})
	require.Equal(t, "ITEM_CLAIMED", refusal(t, err, fault.Conflict, "item").Reason)
	_, err = b.client.CommentOnWorkItem(ops, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "Still on it"})
	require.NoError(t, err)
	now.advance(29 * time.Minute)
	_, err = b.client.ClaimWorkItem(designer, &trackerv1.ClaimWorkItemRequest{Item: key})
	require.Equal(t, "ITEM_CLAIMED", refusal(t, err, fault.Conflict, "item").Reason)
	now.advance(time.Minute)
	got, err := b.client.GetWorkItem(operator(t.Context()), &trackerv1.GetWorkItemRequest{Item: key})
	require.NoError(t, err)
	require.Nil(t, got.GetItem().GetClaim(), "what has lapsed is nobody's")
	require.Equal(t, "designer", claim(designer, t, b, &trackerv1.ClaimWorkItemRequest{Item: key}).GetItem().GetClaim().GetHolder())
}

func TestClaimingAgainRenewsAndReleasingGivesBack(t *testing.T) {
	t.Parallel()
	now := newClock()
	b := setupAt(t, now.now)
	key := file(t, b, "Mine").GetKey()
	ops, designer := seat(t.Context(), "ops-lead"), seat(t.Context(), "designer")
	first := claim(ops, t, b, &trackerv1.ClaimWorkItemRequest{Item: key, Minutes: 60})
	same := claim(ops, t, b, &trackerv1.ClaimWorkItemRequest{Item: key, Minutes: 60})
	require.Equal(t, "unchanged", same.GetOutcome(), "at the same moment there is nothing to renew")
	now.advance(time.Minute)
	renewed := claim(ops, t, b, &trackerv1.ClaimWorkItemRequest{Item: key, Minutes: 60})
	require.Equal(t, first.GetExpireTime().AsTime().Add(time.Minute), renewed.GetExpireTime().AsTime())
	_, err := b.client.ClaimWorkItem(designer, &trackerv1.ClaimWorkItemRequest{Item: key, Release: true})
	refusal(t, err, fault.Conflict, "item")
	released := claim(ops, t, b, &trackerv1.ClaimWorkItemRequest{Item: key, Release: true})
	require.Equal(t, "applied", released.GetOutcome())
	require.Nil(t, released.GetItem().GetClaim())
	require.Nil(t, released.GetExpireTime())
	again := claim(ops, t, b, &trackerv1.ClaimWorkItemRequest{Item: key, Release: true})
	require.Equal(t, "unchanged", again.GetOutcome())
	require.Empty(t, again.GetPosition())
	claim(designer, t, b, &trackerv1.ClaimWorkItemRequest{Item: key})
	require.Equal(t, "applied", claim(person(t.Context(), "ines"), t, b, &trackerv1.ClaimWorkItemRequest{Item: key, Release: true}).GetOutcome(),
		"a person frees what somebody left behind")
	got, err := b.client.GetWorkItem(operator(t.Context()), &trackerv1.GetWorkItemRequest{Item: key})
	require.NoError(t, err)
	var kinds []string
	for _, c := range got.GetHistory() {
		kinds = append(kinds, c.GetKind())
	}
	require.Equal(t, []string{"released", "claimed", "released", "claimed", "claimed", "created"}, kinds)
	_, err = b.client.ClaimWorkItem(ops, &trackerv1.ClaimWorkItemRequest{Release: true})
	require.Contains(t, refusal(t, err, fault.Invalid, "").Message, "release needs item")
	_, err = b.client.ClaimWorkItem(ops, &trackerv1.ClaimWorkItemRequest{Item: key, Minutes: 1441})
	refusal(t, err, fault.Invalid, "minutes")
	_, err = b.client.ClaimWorkItem(ops, &trackerv1.ClaimWorkItemRequest{Item: key, Project: "OPS"})
	require.Contains(t, refusal(t, err, fault.Invalid, "").Message, "item or project")
}

func TestWhatIsFinishedRemovedOrSomebodyElsesIsNotClaimed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ops := seat(t.Context(), "ops-lead")
	for _, status := range []string{"done", "cancelled", "closed"} {
		key := file(t, b, "To be "+status).GetKey()
		claim(ops, t, b, &trackerv1.ClaimWorkItemRequest{Item: key})
		_, err := b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{Item: key, Status: &status})
		require.NoError(t, err)
		_, err = b.client.ClaimWorkItem(ops, &trackerv1.ClaimWorkItemRequest{Item: key})
		require.Equal(t, "ITEM_FINISHED", refusal(t, err, fault.Conflict, "item").Reason)
	}
	key := file(t, b, "Designer's").GetKey()
	_, err := b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{Item: key, Assignee: proto.String("designer")})
	require.NoError(t, err)
	_, err = b.client.ClaimWorkItem(ops, &trackerv1.ClaimWorkItemRequest{Item: key})
	f := refusal(t, err, fault.Conflict, "item")
	require.Equal(t, "ITEM_ASSIGNED", f.Reason)
	require.Contains(t, f.Message, "designer")
	claim(seat(t.Context(), "designer"), t, b, &trackerv1.ClaimWorkItemRequest{Item: key})
	_, err = b.client.ClaimWorkItem(ops, &trackerv1.ClaimWorkItemRequest{Item: "OPS-77"})
	refusal(t, err, fault.NotFound, "item")
	_, err = b.pool.Exec(t.Context(), `update tracker.items set removed_at = now(), removed_by = 'x', removed_kind = 'human', removed_with = id where title = 'Designer''s'`)
	require.NoError(t, err)
	_, err = b.client.ClaimWorkItem(seat(t.Context(), "designer"), &trackerv1.ClaimWorkItemRequest{Item: key})
	require.Equal(t, "ITEM_REMOVED", refusal(t, err, fault.Invalid, "item").Reason)
}

func TestAClaimShowsTheWholeItem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	declare(t, b, &trackerv1.FieldDeclaration{Slug: "cost", Name: "Cost", Type: "number"})
	first := file(t, b, "First").GetKey()
	res, err := create(operator(t.Context()), b, &trackerv1.CreateWorkItemRequest{
		Title: "Second", Body: strings.Repeat("x", 5000), WaitingOn: []string{first}, Fields: values(t, map[string]any{"cost": 3}),
	})
	require.NoError(t, err)
	shown := claim(seat(t.Context(), "ops-lead"), t, b, &trackerv1.ClaimWorkItemRequest{Item: res.GetKey()}).GetItem()
	require.Equal(t, map[string]any{"cost": 3.0}, shown.GetFields().AsMap())
	require.Equal(t, first, shown.GetWaitingOn()[0].GetItem())
	require.True(t, shown.GetBlocked())
	require.Equal(t, "ops-lead", shown.GetClaim().GetHolder())
	require.Equal(t, int32(5000), shown.GetBodyBytes())
	require.Less(t, len(shown.GetBody()), 4100, "a long description is shortened")
}

func TestARepeatedClaimIsTheSameClaim(t *testing.T) {
	t.Parallel()
	b := setup(t)
	file(t, b, "One")
	file(t, b, "Two")
	ctx := rpc.WithOperation(seat(t.Context(), "ops-lead"), "claim-1")
	first := claim(ctx, t, b, &trackerv1.ClaimWorkItemRequest{})
	again := claim(ctx, t, b, &trackerv1.ClaimWorkItemRequest{})
	require.Equal(t, first.GetItem().GetKey(), again.GetItem().GetKey())
	require.Equal(t, first.GetPosition(), again.GetPosition())
}

func TestAGestureOfItsHolderRenewsAClaimAsAnyChangeDoes(t *testing.T) {
	t.Parallel()
	now := newClock()
	b := setupAt(t, now.now)
	key := file(t, b, "Moving").GetKey()
	ops := seat(t.Context(), "ops-lead")
	claim(ops, t, b, &trackerv1.ClaimWorkItemRequest{Item: key, Minutes: 10})
	now.advance(9 * time.Minute)
	_, err := b.client.MoveWorkItem(ops, &trackerv1.MoveWorkItemRequest{Item: key, Project: "SHOP"})
	require.NoError(t, err)
	require.Equal(t, now.now().Add(30*time.Minute), got(t, b, key).GetClaim().GetExpireTime().AsTime())
}
