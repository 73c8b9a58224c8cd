package tracker_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

func relate(t *testing.T, b bundle, req *trackerv1.UpdateWorkItemRequest) *trackerv1.UpdateWorkItemResponse {
	t.Helper()
	res, err := b.client.UpdateWorkItem(operator(t.Context()), req)
	require.NoError(t, err)
	return res
}

func adds(keys ...string) *trackerv1.SetChange     { return &trackerv1.SetChange{Add: keys} }
func takes(keys ...string) *trackerv1.SetChange    { return &trackerv1.SetChange{Remove: keys} }
func replaces(keys ...string) *trackerv1.SetChange { return &trackerv1.SetChange{Set: keys} }

func waits(t *testing.T, b bundle, key string) (keys []string) {
	t.Helper()
	for _, w := range got(t, b, key).GetWaitingOn() {
		keys = append(keys, w.GetItem())
	}
	return keys
}

// ties are an item's links, as kind and other end.
func ties(t *testing.T, b bundle, key string) (all []string) {
	t.Helper()
	res, err := b.client.GetWorkItem(operator(t.Context()), &trackerv1.GetWorkItemRequest{Item: key, Include: []string{"links"}})
	require.NoError(t, err)
	for _, l := range res.GetLinks() {
		all = append(all, l.GetKind()+" "+l.GetTo())
	}
	return all
}

// rows are an item's history, newest first, as kind and the names of what changed.
func rows(t *testing.T, b bundle, key string) (all []*trackerv1.Change) {
	t.Helper()
	res, err := b.client.GetWorkItem(operator(t.Context()), &trackerv1.GetWorkItemRequest{Item: key, Include: []string{"history"}})
	require.NoError(t, err)
	return res.GetHistory()
}

func TestAnItemIsBlockedWhileWhatItWaitsForIsOpen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := add(t, b, "first", ""), add(t, b, "second", "")
	res, err := b.client.CreateWorkItem(operator(t.Context()), &trackerv1.CreateWorkItemRequest{Title: "later", Project: "OPS", WaitingOn: []string{first, second}})
	require.NoError(t, err)
	later := res.GetKey()
	require.True(t, got(t, b, later).GetBlocked())
	require.Equal(t, []string{first, second}, waits(t, b, later))
	require.Equal(t, []string{"blocking " + later}, ties(t, b, first))
	finish(t, b, first, "cancelled")
	require.True(t, got(t, b, later).GetBlocked())
	trash(t, b, second, false)
	standing := got(t, b, later)
	require.False(t, standing.GetBlocked(), "nobody waits for ever for what is in the trash")
	require.True(t, standing.GetWaitingOn()[1].GetOneSidedFinal())
	require.Contains(t, standing.GetFlags(), "one_sided_final")
	restore(t, b, second)
	standing = got(t, b, later)
	require.True(t, standing.GetBlocked(), "it is back, and so is what waits for it")
	require.Empty(t, standing.GetFlags())
	relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: later, WaitingOn: takes(second)})
	require.False(t, got(t, b, later).GetBlocked())
}

func TestADependencyWritesTheEdgeAndItsMirror(t *testing.T) {
	t.Parallel()
	b := setup(t)
	later, first := add(t, b, "later", ""), add(t, b, "first", "")
	before := got(t, b, first)
	relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: later, WaitingOn: adds(first), DependencyNote: proto.String("needs its numbers")})
	edge, mirror := rows(t, b, later)[0], rows(t, b, first)[0]
	require.Equal(t, "relations", edge.GetKind())
	require.Equal(t, before.GetId(), edge.GetFields().GetFields()["waiting_on"].GetStructValue().GetFields()["to"].GetStringValue())
	require.Equal(t, "relations", mirror.GetKind())
	require.Equal(t, got(t, b, later).GetId(), mirror.GetFields().GetFields()["blocking"].GetStructValue().GetFields()["to"].GetStringValue())
	require.False(t, mirror.GetNotified(), "a mirror wakes nobody")
	require.Equal(t, before.GetVersion(), got(t, b, first).GetVersion(), "the other side is not changed")
	require.Equal(t, int32(2), got(t, b, later).GetVersion())
	res, err := b.client.GetWorkItem(operator(t.Context()), &trackerv1.GetWorkItemRequest{Item: later})
	require.NoError(t, err)
	require.Equal(t, "needs its numbers", res.GetLinks()[0].GetNote())
	require.Equal(t, "ci", res.GetLinks()[0].GetAuthor())
	relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: first, Blocking: takes(later)})
	require.Empty(t, ties(t, b, later))
	require.Equal(t, "relations", rows(t, b, later)[0].GetKind())
	var kept bool
	require.NoError(t, b.pool.QueryRow(t.Context(), `select cleared_at is not null from relations`).Scan(&kept))
	require.True(t, kept, "a cleared edge stays on the row")
	relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: first, Blocking: adds(later)})
	require.Equal(t, []string{first}, waits(t, b, later), "and can be drawn again from either side")
	require.Equal(t, "unchanged", relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: later, WaitingOn: replaces(first)}).GetOutcome())
	require.Equal(t, "unchanged", relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: first, WaitingOn: takes(later)}).GetOutcome())
	sound(t, b)
}

func TestASetIsReplacedOrEmptiedWhole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range 5 {
		add(t, b, fmt.Sprint("item ", n+1), "")
	}
	update := func(change *trackerv1.SetChange) error {
		_, err := b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{Item: "OPS-1", WaitingOn: change})
		return err
	}
	require.NoError(t, update(adds("OPS-2", "ops-3", "OPS-2")))
	require.Equal(t, []string{"OPS-2", "OPS-3"}, waits(t, b, "OPS-1"))
	require.NoError(t, update(replaces("OPS-3", "OPS-4")))
	require.Equal(t, []string{"OPS-3", "OPS-4"}, waits(t, b, "OPS-1"))
	require.NoError(t, update(&trackerv1.SetChange{Add: []string{"OPS-5"}, Remove: []string{"OPS-3"}}))
	require.Equal(t, []string{"OPS-4", "OPS-5"}, waits(t, b, "OPS-1"))
	require.NoError(t, update(&trackerv1.SetChange{Clear: true}))
	require.Empty(t, waits(t, b, "OPS-1"))
	refusal(t, update(&trackerv1.SetChange{}), fault.Invalid, "waiting_on")
	refusal(t, update(&trackerv1.SetChange{Add: []string{"OPS-2"}, Clear: true}), fault.Invalid, "waiting_on")
	sound(t, b)
}

func TestARelationThatCannotBeIsRefusedByItsArgument(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, gone := add(t, b, "one", ""), add(t, b, "gone", "")
	trash(t, b, gone, false)
	for argument, req := range map[string]func(key string) *trackerv1.UpdateWorkItemRequest{
		"waiting_on": func(key string) *trackerv1.UpdateWorkItemRequest {
			return &trackerv1.UpdateWorkItemRequest{WaitingOn: adds(key)}
		},
		"blocking": func(key string) *trackerv1.UpdateWorkItemRequest {
			return &trackerv1.UpdateWorkItemRequest{Blocking: adds(key)}
		},
		"linked": func(key string) *trackerv1.UpdateWorkItemRequest {
			return &trackerv1.UpdateWorkItemRequest{Linked: adds(key)}
		},
		"duplicate_of": func(key string) *trackerv1.UpdateWorkItemRequest {
			return &trackerv1.UpdateWorkItemRequest{DuplicateOf: &key}
		},
	} {
		for _, key := range []string{one, gone, "OPS-99", "no key", "0193a3d0-5f1e-7c1c-9c55-0c6f2f3f6f10"} {
			r := req(key)
			r.Item = one
			_, err := b.client.UpdateWorkItem(operator(t.Context()), r)
			refusal(t, err, fault.Invalid, argument)
		}
	}
	_, err := b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{Item: one, LinkedPages: adds("SHOP/Title")})
	refusal(t, err, fault.Invalid, "linked_pages")
	_, err = b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{Item: "OPS-99", Linked: adds(one)})
	refusal(t, err, fault.NotFound, "item")
	_, err = b.client.CreateWorkItem(operator(t.Context()), &trackerv1.CreateWorkItemRequest{Title: "x", Project: "OPS", WaitingOn: []string{"OPS-99"}})
	refusal(t, err, fault.Invalid, "waiting_on")
	require.Equal(t, int32(1), got(t, b, one).GetVersion())
	sound(t, b)
}

func TestLinksAreSeenFromBothSides(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := add(t, b, "one", ""), add(t, b, "two", "")
	const wiki = "0193a3d0-5f1e-7c1c-9c55-0c6f2f3f6f10"
	relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: one, Linked: adds(two), LinkedPages: adds(wiki), DuplicateOf: &two})
	require.ElementsMatch(t, []string{"linked " + two, "page " + wiki, "duplicates " + two}, ties(t, b, one))
	require.ElementsMatch(t, []string{"linked " + one, "duplicated_by " + one}, ties(t, b, two))
	require.Equal(t, two, got(t, b, one).GetDuplicateOf())
	require.Equal(t, "todo", got(t, b, one).GetStatus(), "the link alone closes nothing")
	require.Equal(t, "unchanged", relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: two, Linked: adds(one)}).GetOutcome(), "they are linked")
	relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: two, Linked: takes(one)})
	relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: one, DuplicateOf: proto.String(""), LinkedPages: &trackerv1.SetChange{Clear: true}})
	require.Empty(t, ties(t, b, one))
	require.Empty(t, got(t, b, one).GetDuplicateOf())
}

func TestCirclesAreTakenAndFlagged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two, three, outside := add(t, b, "one", ""), add(t, b, "two", ""), add(t, b, "three", ""), add(t, b, "outside", "")
	relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: one, WaitingOn: adds(two)})
	relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: two, WaitingOn: adds(three)})
	relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: outside, WaitingOn: adds(one)})
	require.Empty(t, got(t, b, one).GetFlags())
	relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: three, WaitingOn: adds(one)})
	for _, key := range []string{one, two, three} {
		require.Equal(t, []string{"cycle"}, got(t, b, key).GetFlags(), key)
	}
	require.Empty(t, got(t, b, outside).GetFlags(), "it waits for the circle and is not in it")
	finish(t, b, two, "done")
	require.Empty(t, got(t, b, one).GetFlags(), "what is finished waits for nothing")
}

// crowd files n items of OPS straight into the database.
func crowd(t *testing.T, b bundle, n int) {
	t.Helper()
	_, err := b.pool.Exec(t.Context(), `insert into items (id, project, number, type, title, status, status_group, reporter, reporter_kind, created_at, updated_at, status_entered_at, rank)
		select gen_random_uuid(), 'OPS', 1000 + n, 'task', 't' || n, 'todo', 0, 'x', 'human', now(), now(), now(), 'm' || lpad(to_hex(1000 + n), 8, '0') || 'V'
		from generate_series(1, $1) n`, n)
	require.NoError(t, err)
}

func crowdKeys(n int) (keys []string) {
	for at := range n {
		keys = append(keys, fmt.Sprint("OPS-", 1001+at))
	}
	return keys
}

func TestAnItemWaitsFor64AndHas128OtherRelations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := add(t, b, "one", "")
	crowd(t, b, item.MaxRelations+1)
	keys := crowdKeys(item.MaxRelations + 1)
	update := func(req *trackerv1.UpdateWorkItemRequest) error {
		req.Item = one
		_, err := b.client.UpdateWorkItem(operator(t.Context()), req)
		return err
	}
	require.NoError(t, update(&trackerv1.UpdateWorkItemRequest{WaitingOn: adds(keys[:item.MaxWaitingOn]...)}))
	require.Contains(t, refusal(t, update(&trackerv1.UpdateWorkItemRequest{WaitingOn: adds(keys[item.MaxWaitingOn])}), fault.Invalid, "waiting_on").Message, "64")
	require.NoError(t, update(&trackerv1.UpdateWorkItemRequest{WaitingOn: &trackerv1.SetChange{Add: keys[item.MaxWaitingOn : item.MaxWaitingOn+1], Remove: keys[:1]}}))
	require.NoError(t, update(&trackerv1.UpdateWorkItemRequest{Blocking: adds(keys[:item.MaxDependents]...)}))
	refusal(t, update(&trackerv1.UpdateWorkItemRequest{Blocking: adds(keys[item.MaxDependents])}), fault.Invalid, "blocking")
	require.NoError(t, update(&trackerv1.UpdateWorkItemRequest{Linked: adds(keys[:item.MaxRelations]...)}))
	require.Contains(t, refusal(t, update(&trackerv1.UpdateWorkItemRequest{Linked: adds(keys[item.MaxRelations])}), fault.Invalid, "linked").Message, "128")
	refusal(t, update(&trackerv1.UpdateWorkItemRequest{DuplicateOf: &keys[0]}), fault.Invalid, "duplicate_of")
	other := add(t, b, "other", "")
	_, err := b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{Item: other, Blocking: adds(one)})
	require.Contains(t, refusal(t, err, fault.Invalid, "blocking").Message, one, "the other one waits for 64 already")
}

func TestAFullBlockerIsOneSidedUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	b := setup(t)
	blocker, late := add(t, b, "blocker", ""), add(t, b, "late", "")
	crowd(t, b, item.MaxDependents)
	relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: blocker, Blocking: adds(crowdKeys(item.MaxDependents)...)})
	res := relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: late, WaitingOn: adds(blocker)})
	require.Len(t, res.GetWarnings(), 1)
	require.Contains(t, res.GetWarnings()[0], blocker)
	w := got(t, b, late).GetWaitingOn()[0]
	require.True(t, w.GetOneSidedFinal())
	require.True(t, w.GetOpen(), "it waits all the same")
	relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: blocker, Blocking: takes(crowdKeys(1)...)})
	w = got(t, b, late).GetWaitingOn()[0]
	require.False(t, w.GetOneSidedFinal())
	require.True(t, w.GetOneSided(), "there is room, and the mirror comes soon")
	require.Contains(t, got(t, b, late).GetFlags(), "one_sided")
}

func TestAPurgedBlockerBlocksNoMore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	blocker, later := add(t, b, "blocker", ""), add(t, b, "later", "")
	relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: later, WaitingOn: adds(blocker), Linked: adds(blocker)})
	_, err := b.client.PurgeWorkItem(operator(t.Context()), &trackerv1.PurgeWorkItemRequest{Item: blocker, ConfirmKey: blocker, Reason: "x"})
	require.NoError(t, err)
	standing := got(t, b, later)
	require.False(t, standing.GetBlocked())
	require.Len(t, standing.GetWaitingOn(), 1)
	require.Equal(t, blocker, standing.GetWaitingOn()[0].GetItem())
	require.True(t, standing.GetWaitingOn()[0].GetOneSidedFinal())
	require.Equal(t, []string{"waiting_on " + blocker}, ties(t, b, later))
	relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: later, WaitingOn: takes(blocker)})
	require.Empty(t, waits(t, b, later), "its edge can be taken away by the key it had")
}

func TestWhoHasWhatIsWaitedForIsToldAndWhoIsFreedIsToo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	subscription, err := b.bus.Subscribe("bullpen.tracker.item.v1", "edges")
	require.NoError(t, err)
	give := func(title, handle string) string {
		res, err := b.client.CreateWorkItem(operator(t.Context()), &trackerv1.CreateWorkItemRequest{Title: title, Project: "OPS", Assignee: handle})
		require.NoError(t, err)
		return res.GetKey()
	}
	blocker, later, both := give("blocker", "designer"), give("later", "ops-lead"), give("both", "ines")
	relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: later, WaitingOn: adds(blocker)})
	relate(t, b, &trackerv1.UpdateWorkItemRequest{Item: both, WaitingOn: adds(blocker, later)})
	finish(t, b, blocker, "done")
	finish(t, b, later, "done")
	concerns := map[string][]string{}
	for len(concerns["unblocked"]) < 2 {
		messages, err := subscription.Fetch(t.Context(), 10)
		require.NoError(t, err)
		for _, m := range messages {
			e := &trackerv1.ItemEvent{}
			require.NoError(t, proto.Unmarshal(m.Value, e))
			for _, c := range e.GetItemUpdated().GetRouting().GetConcerns() {
				concerns[c.GetReason()] = append(concerns[c.GetReason()], c.GetHandle()+" "+c.GetAboutKey())
			}
		}
	}
	require.ElementsMatch(t, []string{"designer " + blocker, "designer " + blocker, "ops-lead " + later}, concerns["blocking"])
	require.Equal(t, []string{"ops-lead " + later, "ines " + both}, concerns["unblocked"], "only who waits for nothing any more")
}

func TestAnItemGoesBelowAnotherOneOfItsProjectWithItsSubtree(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := add(t, b, "one", ""), add(t, b, "two", "")
	child := add(t, b, "child", one)
	leaf := add(t, b, "leaf", child)
	hang := func(ctx context.Context, key, parent string) error {
		_, err := b.client.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{Item: key, Parent: &parent})
		return err
	}
	require.NoError(t, hang(operator(t.Context()), one, two))
	require.Equal(t, "reparented", rows(t, b, one)[0].GetKind())
	require.Equal(t, int32(4), got(t, b, leaf).GetDepth())
	require.NoError(t, hang(operator(t.Context()), child, ""))
	require.Equal(t, int32(2), got(t, b, leaf).GetDepth())
	require.NoError(t, hang(operator(t.Context()), child, one))
	for _, below := range []string{two, one, child, leaf} {
		refusal(t, hang(operator(t.Context()), two, below), fault.Invalid, "parent")
	}
	shop := addTo(t, b, "SHOP", "elsewhere", "")
	require.Contains(t, refusal(t, hang(operator(t.Context()), one, shop), fault.Invalid, "parent").Message, "SHOP")
	deep := add(t, b, "deep", "")
	for range 4 {
		deep = add(t, b, "below "+deep, deep)
	}
	refusal(t, hang(operator(t.Context()), two, deep), fault.Invalid, "parent")
	sound(t, b)
}
