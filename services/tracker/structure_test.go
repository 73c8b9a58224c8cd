package tracker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// add files an item of OPS as an operator and answers its key.
func add(t *testing.T, b bundle, title, parent string) string {
	t.Helper()
	return addTo(t, b, "OPS", title, parent)
}

func addTo(t *testing.T, b bundle, project, title, parent string) string {
	t.Helper()
	res, err := b.client.CreateWorkItem(operator(t.Context()), &trackerv1.CreateWorkItemRequest{Title: title, Project: project, Parent: parent})
	require.NoError(t, err)
	return res.GetKey()
}

func got(t *testing.T, b bundle, key string) *trackerv1.WorkItem {
	t.Helper()
	res, err := b.client.GetWorkItem(operator(t.Context()), &trackerv1.GetWorkItemRequest{Item: key})
	require.NoError(t, err)
	return res.GetItem()
}

// keyOf is the key of the item that something is part of; empty at the top.
func parentKey(t *testing.T, b bundle, key string) string {
	t.Helper()
	if parent := got(t, b, key).GetParent(); parent != "" {
		return got(t, b, parent).GetKey()
	}
	return ""
}

func trash(t *testing.T, b bundle, key string, subtree bool) *trackerv1.RemoveWorkItemResponse {
	t.Helper()
	res, err := b.client.RemoveWorkItem(operator(t.Context()), &trackerv1.RemoveWorkItemRequest{Item: key, Subtree: subtree})
	require.NoError(t, err)
	return res
}

func restore(t *testing.T, b bundle, key string) *trackerv1.RestoreWorkItemResponse {
	t.Helper()
	res, err := b.client.RestoreWorkItem(operator(t.Context()), &trackerv1.RestoreWorkItemRequest{Item: key})
	require.NoError(t, err)
	return res
}

func finish(t *testing.T, b bundle, key, status string) {
	t.Helper()
	_, err := b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{Item: key, Status: proto.String(status)})
	require.NoError(t, err)
}

// sound proves what must hold after whatever happened: counts equal a recount, trees are whole and inside one project, history ends where
// the item is, and nothing has two places in one order.
func sound(t *testing.T, b bundle) {
	t.Helper()
	for name, query := range map[string]string{
		"counts equal a recount": `select count(*) from (select project, sum(todo) n0, sum(active) n1, sum(done) n2, sum(closed) n3 from tallies group by 1) t
			full join (select project, count(*) filter (where status_group = 0) n0, count(*) filter (where status_group = 1) n1,
				count(*) filter (where status_group = 2) n2, count(*) filter (where status_group = 3) n3 from items where removed_at is null group by 1) i using (project)
			where (coalesce(t.n0, 0), coalesce(t.n1, 0), coalesce(t.n2, 0), coalesce(t.n3, 0)) <> (coalesce(i.n0, 0), coalesce(i.n1, 0), coalesce(i.n2, 0), coalesce(i.n3, 0))`,
		"depths follow from parents": `select count(*) from items i left join items p on p.id = i.parent where i.depth <> coalesce(p.depth, 0) + 1`,
		"a tree is in one project":   `select count(*) from items i join items p on p.id = i.parent where i.project <> p.project`,
		"no item is part of itself": `with recursive up (id, parent, n) as (select id, parent, 1 from items
			union all select up.id, p.parent, n + 1 from up join items p on p.id = up.parent where n < 20) select count(*) from up where n >= 20`,
		"history ends where the item is": `select count(*) from items i where version <> (select h.version from history h where h.item_id = i.id order by position desc limit 1)`,
		"every version has one row of history": `select count(*) from (select item_id, version from history where item_id is not null and kind not in ('comment', 'relations', 'placed', 'claimed', 'released')
			group by 1, 2 having count(*) > 1) twice`,
		"edges know whether their ends are open": `select count(*) from relations r left join items f on f.id = r.from_id left join items t on t.id = r.to_id
			where r.kind = 'waiting_on' and r.cleared_at is null and (r.from_open <> coalesce(f.status_group < 2 and f.removed_at is null, false)
				or r.to_open <> coalesce(t.status_group < 2 and t.removed_at is null, false))`,
		"no two items have one place": `select count(*) from (select project, rank from items group by 1, 2 having count(*) > 1) twice`,
	} {
		var wrong int
		require.NoError(t, b.pool.QueryRow(t.Context(), query).Scan(&wrong), name)
		require.Zero(t, wrong, name)
	}
}

func TestAnItemWithOpenSubtasksIsNotRemovedWithoutThemNamingHowMany(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := add(t, b, "top", "")
	child := add(t, b, "child", top)
	done := add(t, b, "done", top)
	add(t, b, "grandchild", child)
	finish(t, b, done, "done")
	_, err := b.client.RemoveWorkItem(operator(t.Context()), &trackerv1.RemoveWorkItemRequest{Item: top})
	f := refusal(t, err, fault.Invalid, "subtree")
	require.Contains(t, f.Message, "2 open subtasks")
	require.Nil(t, got(t, b, top).GetRemoval())
	finish(t, b, child, "done")
	finish(t, b, "OPS-4", "cancelled")
	res := trash(t, b, top, false)
	require.Equal(t, int32(1), res.GetRemoved())
	require.Equal(t, "applied", res.GetOutcome())
	require.Nil(t, got(t, b, child).GetRemoval(), "what is finished stays where it is")
	require.Equal(t, "unchanged", trash(t, b, top, true).GetOutcome(), "it is in the trash already")
	sound(t, b)
}

func TestARestorationBringsBackExactlyWhatThatRemovalTookAlong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := add(t, b, "top", "")
	child := add(t, b, "child", top)
	earlier := add(t, b, "earlier", top)
	grandchild := add(t, b, "grandchild", child)
	trash(t, b, earlier, false)
	require.Equal(t, int32(3), trash(t, b, top, true).GetRemoved())
	for _, key := range []string{top, child, grandchild, earlier} {
		require.NotNil(t, got(t, b, key).GetRemoval(), key)
	}
	sound(t, b)
	_, err := b.client.RestoreWorkItem(operator(t.Context()), &trackerv1.RestoreWorkItemRequest{Item: child})
	require.Contains(t, refusal(t, err, fault.Invalid, "item").Message, top, "what was taken along comes back with what took it")
	res := restore(t, b, top)
	require.Equal(t, int32(3), res.GetRestored())
	require.Empty(t, res.GetWarnings())
	require.NotNil(t, got(t, b, earlier).GetRemoval(), "it went by itself")
	require.Nil(t, got(t, b, grandchild).GetRemoval())
	require.Equal(t, child, parentKey(t, b, grandchild))
	_, err = b.client.RestoreWorkItem(operator(t.Context()), &trackerv1.RestoreWorkItemRequest{Item: top})
	refusal(t, err, fault.Invalid, "item")
	_, err = b.client.RestoreWorkItem(operator(t.Context()), &trackerv1.RestoreWorkItemRequest{Item: "OPS-99"})
	refusal(t, err, fault.NotFound, "item")
	restore(t, b, earlier)
	sound(t, b)
}

func TestAnItemWhoseParentIsInTheTrashComesBackAtTheTopWithAWarning(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := add(t, b, "top", "")
	child := add(t, b, "child", top)
	grandchild := add(t, b, "grandchild", child)
	trash(t, b, child, true)
	trash(t, b, top, false)
	res := restore(t, b, child)
	require.Len(t, res.GetWarnings(), 1)
	require.Contains(t, res.GetWarnings()[0], top)
	require.Empty(t, got(t, b, child).GetParent())
	require.Equal(t, int32(2), got(t, b, grandchild).GetDepth())
	restore(t, b, top)
	require.Empty(t, parentKey(t, b, child), "it does not go back by itself")
	sound(t, b)
}

func TestARemovedItemIsFrozen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	gone, other := add(t, b, "gone", ""), add(t, b, "other", "")
	trash(t, b, gone, false)
	ctx := operator(t.Context())
	frozen := func(err error, field string) {
		t.Helper()
		require.Equal(t, item.ReasonRemoved, refusal(t, err, fault.Invalid, field).Reason)
	}
	_, err := b.client.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{Item: gone, Title: proto.String("x")})
	frozen(err, "item")
	_, err = b.client.CommentOnWorkItem(ctx, &trackerv1.CommentOnWorkItemRequest{Item: gone, Body: "x"})
	frozen(err, "item")
	_, err = b.client.MergeWorkItem(ctx, &trackerv1.MergeWorkItemRequest{Item: gone, Into: other})
	frozen(err, "item")
	_, err = b.client.MergeWorkItem(ctx, &trackerv1.MergeWorkItemRequest{Item: other, Into: gone})
	frozen(err, "into")
	_, err = b.client.MoveWorkItem(ctx, &trackerv1.MoveWorkItemRequest{Item: gone, Project: "SHOP"})
	frozen(err, "item")
	_, err = b.client.PlaceWorkItem(ctx, &trackerv1.PlaceWorkItemRequest{Item: gone, IfMatch: 2, Before: other})
	frozen(err, "item")
	_, err = b.client.CreateWorkItem(ctx, &trackerv1.CreateWorkItemRequest{Title: "x", Project: "OPS", Parent: gone})
	frozen(err, "parent")
	sound(t, b)
}

func TestAMergeLinksMovesDirectSubtasksAndCancels(t *testing.T) {
	t.Parallel()
	b := setup(t)
	duplicate, survivor := add(t, b, "duplicate", ""), add(t, b, "survivor", add(t, b, "above", ""))
	child := add(t, b, "child", duplicate)
	grandchild := add(t, b, "grandchild", child)
	trashed := add(t, b, "trashed", duplicate)
	trash(t, b, trashed, false)
	res, err := b.client.MergeWorkItem(seat(t.Context(), "designer"), &trackerv1.MergeWorkItemRequest{Item: duplicate, Into: survivor})
	require.NoError(t, err)
	require.Equal(t, "applied", res.GetOutcome())
	require.Equal(t, survivor, res.GetMergedInto())
	require.Equal(t, int32(1), res.GetSubtasksMoved())
	require.Equal(t, "cancelled", res.GetStatus())
	require.Equal(t, survivor, parentKey(t, b, child))
	require.Equal(t, child, parentKey(t, b, grandchild))
	require.Equal(t, int32(4), got(t, b, grandchild).GetDepth())
	require.Equal(t, survivor, got(t, b, duplicate).GetDuplicateOf())
	require.Equal(t, duplicate, parentKey(t, b, trashed), "what is in the trash stays where it was")
	again, err := b.client.MergeWorkItem(seat(t.Context(), "designer"), &trackerv1.MergeWorkItemRequest{Item: duplicate, Into: survivor})
	require.NoError(t, err)
	require.Equal(t, "unchanged", again.GetOutcome())
	require.Equal(t, res.GetVersion(), again.GetVersion())
	sound(t, b)
}

func TestAMergeThatLeadsNowhereIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	merge := func(key, into string, subtasks *bool) error {
		_, err := b.client.MergeWorkItem(operator(t.Context()), &trackerv1.MergeWorkItemRequest{Item: key, Into: into, MoveSubtasks: subtasks})
		return err
	}
	top := add(t, b, "top", "")
	child := add(t, b, "child", top)
	add(t, b, "second", top)
	shop := addTo(t, b, "SHOP", "elsewhere", "")
	refusal(t, merge(top, top, nil), fault.Invalid, "into")
	refusal(t, merge(top, "OPS-99", nil), fault.Invalid, "into")
	refusal(t, merge("OPS-99", top, nil), fault.NotFound, "item")
	refusal(t, merge(top, child, nil), fault.Invalid, "into")
	refusal(t, merge(top, shop, nil), fault.Invalid, "move_subtasks")
	require.NoError(t, merge(top, shop, proto.Bool(false)), "without its subtasks it may")
	require.Equal(t, top, parentKey(t, b, child))
	other := add(t, b, "other", "")
	require.Equal(t, shop, refusal(t, merge(top, other, nil), fault.Conflict, "item").Facts["merged_into"])
	refusal(t, merge(other, top, nil), fault.Conflict, "into")
	sound(t, b)
}

func TestAMoveTakesTheSubtreeAndOldKeysResolveForEver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := add(t, b, "top", "")
	child := add(t, b, "child", top)
	addTo(t, b, "SHOP", "first", "")
	move := func(key, to string) *trackerv1.MoveWorkItemResponse {
		res, err := b.client.MoveWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.MoveWorkItemRequest{Item: key, Project: to})
		require.NoError(t, err)
		return res
	}
	res := move(top, "shop")
	require.Equal(t, "SHOP-2", res.GetKey())
	require.Equal(t, top, res.GetMovedFrom())
	require.Equal(t, "SHOP", res.GetProject())
	require.Equal(t, int32(1), res.GetSubtasksMoved())
	require.Equal(t, "SHOP-3", got(t, b, strings.ToLower(child)).GetKey())
	require.Equal(t, "unchanged", func() string {
		res, err := b.client.MoveWorkItem(operator(t.Context()), &trackerv1.MoveWorkItemRequest{Item: top, Project: "SHOP"})
		require.NoError(t, err)
		return res.GetOutcome()
	}())
	require.Equal(t, "shop", got(t, b, top).GetRoutingUnit())
	require.Equal(t, "operations", got(t, b, top).GetFiledUnit(), "where it was filed is a record")
	_, err := b.client.MoveWorkItem(operator(t.Context()), &trackerv1.MoveWorkItemRequest{Item: "SHOP-2", Project: "OPS"})
	require.NoError(t, err)
	for _, key := range []string{"OPS-1", "SHOP-2", "OPS-3"} {
		require.Equal(t, "OPS-3", got(t, b, key).GetKey(), key)
	}
	require.Equal(t, []string{"SHOP-2", "OPS-1"}, got(t, b, "OPS-3").GetFormerKeys())
	require.Equal(t, "OPS-5", add(t, b, "next", ""), "a key is never given twice")
	sound(t, b)
}

func TestAMoveIsRefusedForWhatDoesNotMove(t *testing.T) {
	t.Parallel()
	b := setup(t)
	move := func(ctx context.Context, key, to string) error {
		_, err := b.client.MoveWorkItem(ctx, &trackerv1.MoveWorkItemRequest{Item: key, Project: to})
		return err
	}
	top := add(t, b, "top", "")
	child := add(t, b, "child", top)
	refusal(t, move(seat(t.Context(), "designer"), top, "SHOP"), fault.Forbidden, "item")
	refusal(t, move(operator(t.Context()), child, "SHOP"), fault.Invalid, "item")
	refusal(t, move(operator(t.Context()), top, "NOPE"), fault.Invalid, "project")
	trash(t, b, child, false)
	require.Contains(t, refusal(t, move(operator(t.Context()), top, "SHOP"), fault.Invalid, "item").Message, child, "a trashed descendant is named")
	restore(t, b, child)
	_, err := b.pool.Exec(t.Context(), `update projects set archived = true where key = 'SHOP'`)
	require.NoError(t, err)
	require.Contains(t, refusal(t, move(operator(t.Context()), top, "SHOP"), fault.Invalid, "project").Message, "archived")
	shop := got(t, b, top)
	require.Equal(t, "OPS", shop.GetProject())
	sound(t, b)
}

func TestAMoveDeclaresTheLabelsInTheTarget(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := add(t, b, "top", "")
	child := add(t, b, "child", top)
	_, err := b.pool.Exec(t.Context(), `insert into labels (project, slug, label, name, author, created_at) values
		('OPS', 'red', 'Red', 'red', 'x', now()), ('OPS', 'paper', 'Paper work', 'paper-work', 'x', now()), ('SHOP', 'red', 'Rot', 'rot', 'x', now())`)
	require.NoError(t, err)
	_, err = b.pool.Exec(t.Context(), `update items set labels = case when number = 1 then '{red}'::text[] else '{paper}' end`)
	require.NoError(t, err)
	labels := func() (all string) {
		require.NoError(t, b.pool.QueryRow(t.Context(), `select string_agg(slug || '=' || label, ' ' order by slug) from labels where project = 'SHOP'`).Scan(&all))
		return all
	}
	move := func() error {
		_, err := b.client.MoveWorkItem(operator(t.Context()), &trackerv1.MoveWorkItemRequest{Item: top, Project: "SHOP"})
		return err
	}
	_, err = b.pool.Exec(t.Context(), `insert into labels (project, slug, label, name, author, created_at) values ('SHOP', 'files', 'paper work', 'paper-work', 'x', now())`)
	require.NoError(t, err)
	f := refusal(t, move(), fault.Invalid, "project")
	require.Contains(t, f.Message, "paper", "a label that the target gives another slug stops it, naming both")
	require.Contains(t, f.Message, "files")
	_, err = b.pool.Exec(t.Context(), `delete from labels where slug = 'files'`)
	require.NoError(t, err)
	_, err = b.pool.Exec(t.Context(), `insert into labels (project, slug, label, name, author, created_at) select 'SHOP', 'l' || n, 'l' || n, 'l' || n, 'x', now() from generate_series(1, 511) n`)
	require.NoError(t, err)
	require.Contains(t, refusal(t, move(), fault.Invalid, "project").Message, "512")
	_, err = b.pool.Exec(t.Context(), `delete from labels where slug like 'l%'`)
	require.NoError(t, err)
	require.NoError(t, move())
	require.Equal(t, "paper=Paper work red=Rot", labels(), "what is there already serves")
	require.Equal(t, []string{"paper"}, got(t, b, child).GetLabels())
}

func TestDepthAndDescendantsAreLimited(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := add(t, b, "top", "")
	_, err := b.pool.Exec(t.Context(), `insert into items (id, project, number, type, title, status, status_group, reporter, reporter_kind, parent, depth, created_at, updated_at,
			status_entered_at, rank)
		select gen_random_uuid(), 'OPS', n + 1, 'task', 't' || n, 'todo', 0, 'x', 'human', i.id, 2, now(), now(), now(), 'm' || lpad(to_hex(n + 1), 8, '0') || 'V'
		from items i, generate_series(1, $1) n`, item.MaxDescendants-1)
	require.NoError(t, err)
	_, err = b.pool.Exec(t.Context(), `select setval(numbers_of('OPS'), 5000, false)`)
	require.NoError(t, err)
	last := add(t, b, "the last", top)
	_, err = b.client.CreateWorkItem(operator(t.Context()), &trackerv1.CreateWorkItemRequest{Title: "one more", Project: "OPS", Parent: top})
	require.Contains(t, refusal(t, err, fault.Invalid, "parent").Message, "1000")
	_, err = b.client.CreateWorkItem(operator(t.Context()), &trackerv1.CreateWorkItemRequest{Title: "one more", Project: "OPS", Parent: last})
	require.Contains(t, refusal(t, err, fault.Invalid, "parent").Message, top, "the topmost item is what is full")
	// A thousand descendants go into the trash, out of it and to another project in one call each.
	_, err = b.pool.Exec(t.Context(), `insert into history (position, item_id, project, kind, actor, actor_kind, version, reassignments, created_at)
		select nextval('positions'), id, project, 'created', 'x', 'human', 1, 0, now() from items i where not exists (select from history where item_id = i.id)`)
	require.NoError(t, err)
	_, err = b.pool.Exec(t.Context(), `update tallies set todo = 0; insert into tallies (project, shard, todo) values ('OPS', 99, 1001)`)
	require.NoError(t, err)
	require.Equal(t, int32(1001), trash(t, b, top, true).GetRemoved())
	require.Equal(t, int32(1001), restore(t, b, top).GetRestored())
	moved, err := b.client.MoveWorkItem(operator(t.Context()), &trackerv1.MoveWorkItemRequest{Item: top, Project: "SHOP"})
	require.NoError(t, err)
	require.Equal(t, int32(1000), moved.GetSubtasksMoved())
	require.Equal(t, "SHOP", got(t, b, last).GetProject())
	sound(t, b)
}

func TestPlacementPutsAnItemBesideItsNeighbourAndKeepsItsVersion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range 5 {
		add(t, b, fmt.Sprint("item ", n+1), "")
	}
	place := func(key, before, after string) *trackerv1.PlaceWorkItemResponse {
		t.Helper()
		res, err := b.client.PlaceWorkItem(operator(t.Context()), &trackerv1.PlaceWorkItemRequest{Item: key, IfMatch: 1, Before: before, After: after})
		require.NoError(t, err)
		require.Equal(t, int32(1), res.GetVersion())
		require.True(t, res.GetPlaced())
		require.Empty(t, res.GetUnplaced())
		return res
	}
	place("OPS-5", "OPS-1", "")
	place("OPS-1", "", "OPS-3")
	require.Equal(t, "unchanged", place("OPS-1", "", "OPS-3").GetOutcome(), "it stands there")
	place("OPS-2", "", "OPS-4")
	require.Equal(t, []string{"OPS-5", "OPS-3", "OPS-1", "OPS-4", "OPS-2"}, order(t, b))
	require.Equal(t, "OPS-6", add(t, b, "new", ""))
	require.Equal(t, "OPS-6", order(t, b)[5], "a new item stands at the end")
	before := got(t, b, "OPS-2")
	_, err := b.client.PlaceWorkItem(operator(t.Context()), &trackerv1.PlaceWorkItemRequest{Item: "OPS-2", IfMatch: 2, Before: "OPS-1"})
	require.Equal(t, "1", refusal(t, err, fault.StaleVersion, "if_match").Facts["current_version"])
	require.Equal(t, before.GetUpdateTime().AsTime(), got(t, b, "OPS-2").GetUpdateTime().AsTime(), "a drag is no change of the item")
	sound(t, b)
}

func order(t *testing.T, b bundle) []string {
	t.Helper()
	var keys []string
	require.NoError(t, b.pool.QueryRow(t.Context(), `select array_agg(project || '-' || number order by rank) from items where project = 'OPS'`).Scan(&keys))
	return keys
}

func TestALaneChangesFirstAndThePlaceIsSaidToBeMissed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	add(t, b, "one", "")
	add(t, b, "two", "")
	shop := addTo(t, b, "SHOP", "elsewhere", "")
	place := func(req *trackerv1.PlaceWorkItemRequest) (*trackerv1.PlaceWorkItemResponse, error) {
		return b.client.PlaceWorkItem(operator(t.Context()), req)
	}
	res, err := place(&trackerv1.PlaceWorkItemRequest{Item: "OPS-2", IfMatch: 1, Before: "OPS-1", Status: "in_progress"})
	require.NoError(t, err)
	require.Equal(t, int32(2), res.GetVersion(), "a new lane is a new version")
	require.Equal(t, "in_progress", res.GetStatus())
	require.True(t, res.GetPlaced())
	res, err = place(&trackerv1.PlaceWorkItemRequest{Item: "OPS-2", IfMatch: 2, After: shop, Status: "done"})
	require.NoError(t, err)
	require.Equal(t, "done", res.GetStatus())
	require.False(t, res.GetPlaced())
	require.Contains(t, res.GetUnplaced(), shop)
	res, err = place(&trackerv1.PlaceWorkItemRequest{Item: "OPS-2", IfMatch: 3, Status: "todo"})
	require.NoError(t, err)
	require.NotEmpty(t, res.GetUnplaced())
	_, err = place(&trackerv1.PlaceWorkItemRequest{Item: "OPS-2", IfMatch: 4, After: shop})
	refusal(t, err, fault.Invalid, "after")
	_, err = place(&trackerv1.PlaceWorkItemRequest{Item: "OPS-2", IfMatch: 4, Before: "OPS-2"})
	refusal(t, err, fault.Invalid, "before")
	_, err = place(&trackerv1.PlaceWorkItemRequest{Item: "OPS-2", IfMatch: 4, Before: "OPS-99"})
	refusal(t, err, fault.Invalid, "before")
	_, err = place(&trackerv1.PlaceWorkItemRequest{Item: "OPS-2", IfMatch: 4, Before: "OPS-1", After: "OPS-1"})
	refusal(t, err, fault.Invalid, "")
	require.Equal(t, []string{"OPS-2", "OPS-1"}, order(t, b))
	sound(t, b)
}

func TestAKeyThatGrewTooLongSpreadsItsNeighbours(t *testing.T) {
	t.Parallel()
	b := setup(t)
	add(t, b, "first", "")
	add(t, b, "second", "")
	add(t, b, "third", "")
	// The second and the third change places between the first and each other until their gap is as narrow as it gets.
	_, err := b.pool.Exec(t.Context(), `update items set rank = $1 where number = 1`, "m"+strings.Repeat("1", 62)+"1")
	require.NoError(t, err)
	_, err = b.pool.Exec(t.Context(), `update items set rank = $1 where number = 2`, "m"+strings.Repeat("1", 62)+"2")
	require.NoError(t, err)
	res, err := b.client.PlaceWorkItem(operator(t.Context()), &trackerv1.PlaceWorkItemRequest{Item: "OPS-3", IfMatch: 1, After: "OPS-1"})
	require.NoError(t, err)
	require.LessOrEqual(t, len(res.GetRank()), 64)
	require.Equal(t, []string{"OPS-1", "OPS-3", "OPS-2"}, order(t, b))
	var longest int
	require.NoError(t, b.pool.QueryRow(t.Context(), `select max(length(rank)) from items`).Scan(&longest))
	require.Less(t, longest, 16)
	require.Equal(t, "OPS-4", add(t, b, "new", ""))
	require.Equal(t, "OPS-4", order(t, b)[3])
	sound(t, b)
}
