package tracker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// together calls do from many callers at once and answers what each got.
func together(callers int, do func(n int) error) []error {
	errs := make([]error, callers)
	var group sync.WaitGroup
	for n := range callers {
		group.Go(func() { errs[n] = do(n) })
	}
	group.Wait()
	return errs
}

// only proves that whoever lost a race lost it for a reason that callers can act on; a deadlock would be none. It answers how many won.
func only(t *testing.T, errs []error, classes ...fault.Class) (won int) {
	t.Helper()
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		f := rpc.FromError(err)
		require.Contains(t, classes, f.Class, f.Message)
	}
	return won
}

var crowds = []int{2, 8, 64}

func TestManyCallersPlaceTheSameItemsAndEachHasItsOwnPlace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const items = 6
	for n := range items {
		add(t, b, fmt.Sprint("item ", n+1), "")
	}
	key := func() string { return fmt.Sprint("OPS-", rand.IntN(items)+1) }
	for _, callers := range crowds {
		errs := together(callers, func(int) error {
			req := &trackerv1.PlaceWorkItemRequest{Item: key(), IfMatch: 1, Before: key()}
			for req.GetBefore() == req.GetItem() {
				req.Before = key()
			}
			_, err := b.client.PlaceWorkItem(operator(t.Context()), req)
			return err
		})
		require.Equal(t, callers, only(t, errs))
		sound(t, b)
	}
}

func TestOfManyMergesOfOneItemExactlyOneWins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, callers := range crowds {
		duplicate := add(t, b, fmt.Sprint("duplicate for ", callers), "")
		child := add(t, b, fmt.Sprint("child for ", callers), duplicate)
		survivors := make([]string, callers)
		for n := range survivors {
			survivors[n] = add(t, b, fmt.Sprint("survivor ", n, " of ", callers), "")
		}
		errs := together(callers, func(n int) error {
			_, err := b.client.MergeWorkItem(operator(t.Context()), &trackerv1.MergeWorkItemRequest{Item: duplicate, Into: survivors[n]})
			return err
		})
		require.Equal(t, 1, only(t, errs, fault.Conflict))
		for n, err := range errs {
			if err == nil {
				require.Equal(t, survivors[n], got(t, b, duplicate).GetDuplicateOf())
				require.Equal(t, survivors[n], parentKey(t, b, child))
			}
		}
		one, other := add(t, b, fmt.Sprint("one of ", callers), ""), add(t, b, fmt.Sprint("other of ", callers), "")
		errs = together(callers, func(n int) error {
			req := &trackerv1.MergeWorkItemRequest{Item: one, Into: other}
			if n%2 == 1 {
				req.Item, req.Into = other, one
			}
			_, err := b.client.MergeWorkItem(operator(t.Context()), req)
			return err
		})
		require.Equal(t, callers/2, only(t, errs, fault.Conflict), "whoever asks for the same merge has it")
	}
	sound(t, b)
}

func TestManyCallersMoveAnItemToAndFroAndEveryKeyFindsIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := add(t, b, "top", "")
	child := add(t, b, "child", top)
	for _, callers := range crowds {
		errs := together(callers, func(n int) error {
			_, err := b.client.MoveWorkItem(operator(t.Context()), &trackerv1.MoveWorkItemRequest{Item: top, Project: []string{"OPS", "SHOP"}[n%2]})
			return err
		})
		require.Positive(t, only(t, errs, fault.Conflict))
		sound(t, b)
	}
	var keys []string
	require.NoError(t, b.pool.QueryRow(t.Context(), `select array_agg(key) from former_keys`).Scan(&keys))
	for _, key := range keys {
		i := got(t, b, key)
		require.Contains(t, []string{got(t, b, top).GetKey(), got(t, b, child).GetKey()}, i.GetKey())
	}
	var moves, rows int
	require.NoError(t, b.pool.QueryRow(t.Context(), `select (select count(*) from former_keys), (select count(*) from history where kind = 'moved')`).Scan(&moves, &rows))
	require.Equal(t, moves, rows)
}

func TestManyCallersRemoveAndRestoreAndEveryWinnerIsInHistory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := add(t, b, "top", "")
	add(t, b, "child", top)
	var mu sync.Mutex
	var removals, restorations int
	for _, callers := range crowds {
		errs := together(callers, func(n int) error {
			if n%2 == 0 {
				res, err := b.client.RemoveWorkItem(operator(t.Context()), &trackerv1.RemoveWorkItemRequest{Item: top, Subtree: true})
				mu.Lock()
				defer mu.Unlock()
				removals += int(res.GetRemoved())
				return err
			}
			res, err := b.client.RestoreWorkItem(operator(t.Context()), &trackerv1.RestoreWorkItemRequest{Item: top})
			mu.Lock()
			defer mu.Unlock()
			restorations += int(res.GetRestored())
			return err
		})
		require.Positive(t, only(t, errs, fault.Invalid))
		sound(t, b)
	}
	var removed, restored int
	require.NoError(t, b.pool.QueryRow(t.Context(), `select count(*) filter (where kind = 'removed'), count(*) filter (where kind = 'restored') from history`).Scan(&removed, &restored))
	require.Equal(t, removals, removed)
	require.Equal(t, restorations, restored)
}

func TestNobodyIsForgottenWhenTheLastBlockersFinishTogether(t *testing.T) {
	t.Parallel()
	b := setup(t)
	subscription, err := b.bus.Subscribe("bullpen.tracker.item.v1", "freed")
	require.NoError(t, err)
	freed := 0
	for _, callers := range crowds {
		blockers := make([]string, callers)
		for n := range blockers {
			blockers[n] = add(t, b, fmt.Sprint("blocker ", n, " of ", callers), "")
		}
		res, err := b.client.CreateWorkItem(operator(t.Context()), &trackerv1.CreateWorkItemRequest{
			Title: fmt.Sprint("waits for ", callers), Project: "OPS", Assignee: "designer", WaitingOn: blockers,
		})
		require.NoError(t, err)
		errs := together(callers, func(n int) error {
			_, err := b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{Item: blockers[n], Status: proto.String("done")})
			return err
		})
		require.Equal(t, callers, only(t, errs))
		require.False(t, got(t, b, res.GetKey()).GetBlocked())
	}
	last := addTo(t, b, "SHOP", "the last event", "")
	for ended := false; !ended; {
		messages, err := subscription.Fetch(t.Context(), 100)
		require.NoError(t, err)
		for _, m := range messages {
			e := &trackerv1.ItemEvent{}
			require.NoError(t, proto.Unmarshal(m.Value, e))
			ended = ended || e.GetItemCreated().GetItem().GetKey() == last
			for _, c := range e.GetItemUpdated().GetRouting().GetConcerns() {
				if c.GetReason() == "unblocked" {
					require.Equal(t, "designer", c.GetHandle())
					freed++
				}
			}
		}
		if freed == len(crowds) {
			break
		}
	}
	require.Equal(t, len(crowds), freed, "exactly one of those who finish tells it")
}

// Whatever many callers do to the same few items at once, nobody gets an error that says nothing, and everything fits together after.
func TestAnythingAtOnceLeavesEverythingSound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const items = 8
	ids := make([]string, items)
	for n := range ids {
		ids[n] = got(t, b, add(t, b, fmt.Sprint("item ", n+1), "")).GetId()
	}
	var mu sync.Mutex
	some := func() string {
		mu.Lock()
		defer mu.Unlock()
		return ids[rand.IntN(items)]
	}
	change := func() *trackerv1.SetChange {
		switch rand.IntN(4) {
		case 0:
			return adds(some())
		case 1:
			return takes(some())
		case 2:
			return &trackerv1.SetChange{Clear: true}
		default:
			one := some()
			other := some()
			if one == other {
				return replaces(one)
			}
			return replaces(one, other)
		}
	}
	gestures := []func(ctx context.Context, n int) error{
		func(ctx context.Context, _ int) error {
			_, err := b.client.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{Item: some(), WaitingOn: change()})
			return err
		},
		func(ctx context.Context, _ int) error {
			_, err := b.client.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{Item: some(), Blocking: change(), Linked: change()})
			return err
		},
		func(ctx context.Context, _ int) error {
			parent := []string{"", some()}[rand.IntN(2)]
			_, err := b.client.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{Item: some(), Parent: &parent, Status: proto.String([]string{"todo", "done"}[rand.IntN(2)])})
			return err
		},
		func(ctx context.Context, _ int) error {
			_, err := b.client.RemoveWorkItem(ctx, &trackerv1.RemoveWorkItemRequest{Item: some(), Subtree: true})
			return err
		},
		func(ctx context.Context, _ int) error {
			_, err := b.client.RestoreWorkItem(ctx, &trackerv1.RestoreWorkItemRequest{Item: some()})
			return err
		},
		func(ctx context.Context, _ int) error {
			_, err := b.client.MoveWorkItem(ctx, &trackerv1.MoveWorkItemRequest{Item: some(), Project: []string{"OPS", "SHOP"}[rand.IntN(2)]})
			return err
		},
		func(ctx context.Context, n int) error {
			_, err := b.client.CreateWorkItem(ctx, &trackerv1.CreateWorkItemRequest{Title: fmt.Sprint("new ", n), Project: "OPS", Parent: some(), WaitingOn: []string{some()}})
			return err
		},
		func(ctx context.Context, _ int) error {
			_, err := b.client.PlaceWorkItem(ctx, &trackerv1.PlaceWorkItemRequest{Item: some(), IfMatch: 1, Before: some(), Status: "in_progress"})
			return err
		},
	}
	gestures = append(gestures,
		func(ctx context.Context, _ int) error {
			_, err := b.client.MergeWorkItem(ctx, &trackerv1.MergeWorkItemRequest{Item: some(), Into: some()})
			return err
		},
		func(ctx context.Context, _ int) error {
			_, err := b.client.CommentOnWorkItem(ctx, &trackerv1.CommentOnWorkItemRequest{Item: some(), Body: "What now?"})
			return err
		},
		func(ctx context.Context, n int) error {
			going := some()
			res, err := b.client.GetWorkItem(ctx, &trackerv1.GetWorkItemRequest{Item: going})
			if err != nil {
				return err
			}
			if _, err := b.client.PurgeWorkItem(ctx, &trackerv1.PurgeWorkItemRequest{Item: going, ConfirmKey: res.GetItem().GetKey(), Reason: "x"}); err != nil {
				return err
			}
			next, err := b.client.CreateWorkItem(ctx, &trackerv1.CreateWorkItemRequest{Title: fmt.Sprint("instead ", n), Project: "OPS"})
			mu.Lock()
			defer mu.Unlock()
			for at, id := range ids {
				if id == going && err == nil {
					ids[at] = next.GetId()
				}
			}
			return err
		})
	for round := range 3 {
		for _, callers := range crowds {
			errs := together(callers, func(n int) error {
				return gestures[rand.IntN(len(gestures))](operator(t.Context()), round*100+n*1000+callers)
			})
			only(t, errs, fault.Invalid, fault.Conflict, fault.StaleVersion, fault.Exists, fault.NotFound)
			sound(t, b)
		}
	}
}
