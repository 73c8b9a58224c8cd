package tracker_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

func params(t *testing.T, values map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(values)
	require.NoError(t, err)
	return s
}

func saveView(t *testing.T, b bundle, req *trackerv1.SaveWorkViewRequest) *trackerv1.SaveWorkViewResponse {
	t.Helper()
	if req.GetType() == "" {
		req.Type = "list"
	}
	res, err := b.client.SaveWorkView(operator(t.Context()), req)
	require.NoError(t, err)
	return res
}

func views(t *testing.T, b bundle, container string) []*trackerv1.WorkView {
	t.Helper()
	res, err := b.client.ListWorkViews(operator(t.Context()), &trackerv1.ListWorkViewsRequest{Container: container})
	require.NoError(t, err)
	return res.GetViews()
}

func TestSixBuiltinViewsCarryNoIdAndTheirQueriesAreAnswered(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	put(t, b, &trackerv1.CreateWorkItemRequest{Title: "x", Due: "2026-12-01", Assignee: "ines"})
	for _, container := range []string{"workspace", "project:ops", "unit:Operations", "person:ines"} {
		shown := views(t, b, container)
		require.Len(t, shown, 6)
		var types []string
		for _, v := range shown {
			require.Empty(t, v.GetId())
			types = append(types, v.GetType())
			saved := saveViewParams(t, b, container, v)
			res := list(operator(t.Context()), t, b, &trackerv1.ListWorkItemsRequest{View: saved})
			require.Equal(t, v.GetType() != "trash", res.GetTotal() == 1, "%s of %s", v.GetType(), container)
		}
		require.Equal(t, []string{"list", "board", "calendar", "timeline", "table", "trash"}, types)
	}
}

// saveViewParams saves a copy of a view in a container where it disturbs nobody.
func saveViewParams(t *testing.T, b bundle, container string, v *trackerv1.WorkView) string {
	t.Helper()
	return saveView(t, b, &trackerv1.SaveWorkViewRequest{Container: "person:designer", Name: container + v.GetType(), Params: merged(v.GetParams(), container)}).GetId()
}

// merged keeps a view from being narrowed to the container it is copied to.
func merged(s *structpb.Struct, container string) *structpb.Struct {
	if !strings.HasPrefix(container, "person:") {
		s.Fields["assignee"] = structpb.NewStringValue("ines")
	}
	return s
}

func TestAViewIsASetOfDefaultsThatArgumentsOverride(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	low := put(t, b, &trackerv1.CreateWorkItemRequest{Title: "low", Priority: "low"})
	high := put(t, b, &trackerv1.CreateWorkItemRequest{Title: "high", Priority: "high", Assignee: "designer"})
	id := saveView(t, b, &trackerv1.SaveWorkViewRequest{Container: "project:OPS", Name: "Low ones", Params: params(t, map[string]any{"priority": "low", "sort": "created"})}).GetId()
	require.Equal(t, []string{low}, listKeys(t, b, &trackerv1.ListWorkItemsRequest{View: id}))
	require.Equal(t, []string{high}, listKeys(t, b, &trackerv1.ListWorkItemsRequest{View: id, Priority: []string{"high"}}))
	require.Empty(t, listKeys(t, b, &trackerv1.ListWorkItemsRequest{View: id, Project: "SHOP"}))
	require.Equal(t, []string{low}, listKeys(t, b, &trackerv1.ListWorkItemsRequest{View: id, Preset: "triage"}), "the preset's assignee holds where the view says none")
}

func TestAViewsQueryIsReadWhenItIsSaved(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	refused := func(values map[string]any, field string) string {
		_, err := b.client.SaveWorkView(operator(t.Context()), &trackerv1.SaveWorkViewRequest{Container: "workspace", Name: "x", Type: "list", Params: params(t, values)})
		return refusal(t, err, fault.Invalid, field).Message
	}
	require.Contains(t, refused(map[string]any{"asignee": "me"}, "params.asignee"), "did you mean assignee")
	require.Contains(t, refused(map[string]any{"due": "soon"}, "params.due"), "no date")
	require.Contains(t, refused(map[string]any{"assignee": "bob"}, "params.assignee"), "designer")
	require.Contains(t, refused(map[string]any{"f.team": "core"}, "params.f.team"), "team")
	refused(map[string]any{"due": []any{"today"}}, "params.due")
	for _, key := range []string{"view", "cursor", "read_level", "max_lag_seconds", "max_lag_seq", "min_position"} {
		require.Contains(t, refused(map[string]any{key: "x"}, "params."+key), "said with each call")
	}
	many := map[string]any{}
	for n := range 33 {
		many[fmt.Sprintf("f.a%d", n)] = "x"
	}
	require.Contains(t, refused(many, "params"), "32 at most")
	require.Contains(t, refused(map[string]any{"q": strings.Repeat("x", 32<<10)}, "params"), "32768 at most")
	saveView(t, b, &trackerv1.SaveWorkViewRequest{Container: "workspace", Name: strings.Repeat("n", 128), Params: params(t, map[string]any{
		"any": []any{map[string]any{"assignee": "me"}, map[string]any{"flag": "cycle"}}, "has_open_asks": true, "limit": 10,
	})})
	_, err := b.client.SaveWorkView(operator(t.Context()), &trackerv1.SaveWorkViewRequest{Container: "workspace", Name: strings.Repeat("n", 129), Type: "list"})
	refusal(t, err, fault.Invalid, "name")
	_, err = b.client.SaveWorkView(operator(t.Context()), &trackerv1.SaveWorkViewRequest{Container: "workspace", Name: " ", Type: "list"})
	refusal(t, err, fault.Invalid, "name")
	_, err = b.client.SaveWorkView(operator(t.Context()), &trackerv1.SaveWorkViewRequest{Container: "workspace", Name: "x", Type: "trash"})
	refusal(t, err, fault.Invalid, "type")
}

func TestAContainerIsTheWorkspaceAProjectAUnitOrAPerson(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	for given, stored := range map[string]string{
		"workspace": "workspace", "project:ops": "project:OPS", "unit:operations": "unit:operations", "unit:Design": "unit:design", "person:The Designer": "person:designer",
	} {
		saveView(t, b, &trackerv1.SaveWorkViewRequest{Container: given, Name: "mine"})
		shown := views(t, b, given)
		require.Equal(t, stored, shown[len(shown)-1].GetContainer())
	}
	for _, given := range []string{"galaxy", "project:NOPE", "project:", "unit:none", "person:bob", "workspace:x", "OPS"} {
		_, err := b.client.SaveWorkView(operator(t.Context()), &trackerv1.SaveWorkViewRequest{Container: given, Name: "x", Type: "list"})
		refusal(t, err, fault.Invalid, "container")
	}
}

func TestOnlyItsAuthorOrOwnerChangesAProtectedView(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	other := rpc.As(t.Context(), &rpc.Principal{Kind: rpc.KindOperator, Id: "t2", DisplayName: "other"})
	id := saveView(t, b, &trackerv1.SaveWorkViewRequest{Container: "workspace", Name: "Ours", Protected: true}).GetId()
	replace := &trackerv1.SaveWorkViewRequest{Id: id, Container: "workspace", Name: "Theirs", Type: "board"}
	_, err := b.client.SaveWorkView(other, replace)
	refusal(t, err, fault.Forbidden, "id")
	res, err := b.client.SaveWorkView(operator(t.Context()), replace)
	require.NoError(t, err)
	require.Equal(t, int32(2), res.GetVersion())
	require.Equal(t, "applied", res.GetOutcome())
	res, err = b.client.SaveWorkView(other, replace)
	require.NoError(t, err, "it is not protected any more")
	require.Equal(t, "unchanged", res.GetOutcome())
	_, err = b.client.SaveWorkView(other, &trackerv1.SaveWorkViewRequest{Id: "0193a3d0-5f1e-7c1c-9c55-0c6f2f3f6f10", Container: "workspace", Name: "x", Type: "list"})
	refusal(t, err, fault.NotFound, "id")

	own := saveView(t, b, &trackerv1.SaveWorkViewRequest{Container: "workspace", Name: "Hers", Owner: "The Designer"}).GetId()
	shown, err := b.client.ListWorkViews(operator(t.Context()), &trackerv1.ListWorkViewsRequest{Container: "workspace", Viewer: "designer"})
	require.NoError(t, err)
	require.Len(t, shown.GetViews(), 8)
	require.Len(t, views(t, b, "workspace"), 7, "what is somebody's alone is shown to nobody else")
	_, err = b.client.ListWorkItems(seat(t.Context(), "ops-lead"), &trackerv1.ListWorkItemsRequest{View: own})
	refusal(t, err, fault.Invalid, "view")
	_, err = b.client.SaveWorkView(operator(t.Context()), &trackerv1.SaveWorkViewRequest{Container: "workspace", Name: "x", Type: "list", Owner: "bob"})
	refusal(t, err, fault.Invalid, "owner")
	_, err = b.client.SaveWorkView(operator(t.Context()), &trackerv1.SaveWorkViewRequest{Container: "workspace", Name: "x", Type: "list", Owner: "ines", Default: true})
	refusal(t, err, fault.Invalid, "default")
}

func TestOneViewIsFirstInItsContainerHoweverManyAreMadeSoAtOnce(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	var group sync.WaitGroup
	errs := make([]error, 16)
	for n := range errs {
		group.Go(func() {
			_, errs[n] = b.client.SaveWorkView(operator(t.Context()), &trackerv1.SaveWorkViewRequest{Container: "project:OPS", Name: fmt.Sprint("view ", n), Type: "list", Default: true})
		})
	}
	group.Wait()
	first := 0
	for n, err := range errs {
		require.NoError(t, err, n)
	}
	for _, v := range views(t, b, "project:OPS") {
		if v.GetDefault() {
			first++
		}
	}
	require.Equal(t, 1, first)
	activity, err := b.client.TaskActivity(operator(t.Context()), &trackerv1.TaskActivityRequest{Project: "OPS", Kinds: []string{"view_saved"}})
	require.NoError(t, err)
	require.Len(t, activity.GetRows(), 16)
}

func TestTheSameSaveIsOneView(t *testing.T) {
	t.Parallel()
	b := listWorld(t)
	var ids [2]string
	for n := range ids {
		res, err := b.client.SaveWorkView(rpc.WithOperation(operator(t.Context()), "op-view"), &trackerv1.SaveWorkViewRequest{Container: "workspace", Name: "Once", Type: "list"})
		require.NoError(t, err)
		ids[n] = res.GetId()
	}
	require.Equal(t, ids[0], ids[1])
	require.Len(t, views(t, b, "workspace"), 7)
}
