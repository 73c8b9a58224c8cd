package tracker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

func activity(t *testing.T, b bundle, req *trackerv1.TaskActivityRequest) *trackerv1.TaskActivityResponse {
	t.Helper()
	res, err := b.client.TaskActivity(operator(t.Context()), req)
	require.NoError(t, err)
	return res
}

func kindsIn(res *trackerv1.TaskActivityResponse) []string {
	var kinds []string
	for _, r := range res.GetRows() {
		kinds = append(kinds, r.GetKind())
	}
	return kinds
}

// busy files two items and lets several colleagues change them.
func busy(t *testing.T, b bundle) (first, second *trackerv1.CreateWorkItemResponse) {
	t.Helper()
	first, second = file(t, b, "First"), file(t, b, "Second")
	change(t, b, &trackerv1.UpdateWorkItemRequest{Item: first.GetKey(), Status: proto.String("in_progress")})
	say(seat(t.Context(), "designer"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: first.GetKey(), Body: "The certificate is 100% ready, @ines"})
	_, err := b.client.UpdateWorkItem(member(t.Context(), "ines"), &trackerv1.UpdateWorkItemRequest{Item: second.GetKey(), Assignee: proto.String("designer")})
	require.NoError(t, err)
	return first, second
}

func TestActivityIsOfOneItemOrOneProjectTheLatestFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := busy(t, b)
	res := activity(t, b, &trackerv1.TaskActivityRequest{Item: "ops-1"})
	require.Equal(t, []string{"comment", "status", "created"}, kindsIn(res))
	require.False(t, res.GetMore())
	require.Empty(t, res.GetNextCursor(), "nothing follows the last page")
	row := res.GetRows()[0]
	require.Equal(t, "designer", row.GetActor())
	require.Equal(t, "The certificate is 100% ready, @ines", row.GetExcerpt())
	require.True(t, row.GetNotified())
	require.Equal(t, first.GetId(), row.GetItemId())
	require.Equal(t, "OPS", row.GetProject())
	require.Equal(t, "turn-1", row.GetTurnId())
	project := activity(t, b, &trackerv1.TaskActivityRequest{Project: "ops"})
	require.Equal(t, []string{"assignee", "comment", "status", "created", "created"}, kindsIn(project))
	require.Len(t, project.GetKeys(), 2)
	names := fmt.Sprint(project.GetKeys())
	for _, part := range []string{first.GetId(), first.GetKey(), second.GetId(), second.GetKey()} {
		require.Contains(t, names, part)
	}
	try := func(req *trackerv1.TaskActivityRequest) error {
		_, err := b.client.TaskActivity(operator(t.Context()), req)
		return err
	}
	refusal(t, try(&trackerv1.TaskActivityRequest{}), fault.Invalid, "")
	refusal(t, try(&trackerv1.TaskActivityRequest{Item: "OPS-1", Project: "OPS"}), fault.Invalid, "")
	refusal(t, try(&trackerv1.TaskActivityRequest{Item: "OPS-9"}), fault.NotFound, "item")
	refusal(t, try(&trackerv1.TaskActivityRequest{Project: "NOPE"}), fault.NotFound, "project")
	refusal(t, try(&trackerv1.TaskActivityRequest{Project: "OPS", Limit: 201}), fault.Invalid, "limit")
	refusal(t, try(&trackerv1.TaskActivityRequest{Project: "OPS", Kinds: []string{"created", "thought"}}), fault.Invalid, "kinds[1]")
	refusal(t, try(&trackerv1.TaskActivityRequest{Project: "OPS", ActorKinds: []string{"robot"}}), fault.Invalid, "actor_kinds[0]")
	refusal(t, try(&trackerv1.TaskActivityRequest{Project: "OPS", Assignee: "bob"}), fault.Invalid, "assignee")
	refusal(t, try(&trackerv1.TaskActivityRequest{Project: "OPS", Actor: "lead"}), fault.Invalid, "actor")
	refusal(t, try(&trackerv1.TaskActivityRequest{Project: "OPS", From: "yesterday"}), fault.Invalid, "from")
	refusal(t, try(&trackerv1.TaskActivityRequest{Project: "OPS", From: "2026-03-02", To: "2026-03-01"}), fault.Invalid, "from")
	refusal(t, try(&trackerv1.TaskActivityRequest{Project: "OPS", Since: "tracker@9:1"}), fault.Invalid, "since")
	refusal(t, try(&trackerv1.TaskActivityRequest{Project: "OPS", Cursor: "?"}), fault.Invalid, "cursor")
}

func TestEveryFilterOfActivityHolds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, _ := busy(t, b)
	for name, row := range map[string]struct {
		req  *trackerv1.TaskActivityRequest
		want []string
	}{
		"kinds":            {&trackerv1.TaskActivityRequest{Kinds: []string{"status", "comment"}}, []string{"comment", "status"}},
		"a token's name":   {&trackerv1.TaskActivityRequest{Actor: "ci"}, []string{"status"}},
		"a role's name":    {&trackerv1.TaskActivityRequest{Actor: "The Designer"}, []string{"comment"}},
		"a person":         {&trackerv1.TaskActivityRequest{Actor: "ines"}, []string{"assignee"}},
		"kinds of actors":  {&trackerv1.TaskActivityRequest{ActorKinds: []string{"human", "operator"}}, []string{"assignee", "status"}},
		"who has it now":   {&trackerv1.TaskActivityRequest{Assignee: "designer"}, []string{"assignee", "created"}},
		"since":            {&trackerv1.TaskActivityRequest{Since: first.GetPosition(), Kinds: []string{"created"}}, []string{"created"}},
		"from a day":       {&trackerv1.TaskActivityRequest{From: "2020-01-01"}, []string{"assignee", "comment", "status", "created", "created"}},
		"from the future":  {&trackerv1.TaskActivityRequest{From: "2120-01-01"}, nil},
		"to the past":      {&trackerv1.TaskActivityRequest{To: "2020-01-01"}, nil},
		"what was said":    {&trackerv1.TaskActivityRequest{Q: "CERTIFICATE is 100%", From: time.Now().AddDate(0, 0, -30).Format(time.DateOnly)}, []string{"comment"}},
		"what changed":     {&trackerv1.TaskActivityRequest{Q: "in_progress", Since: first.GetPosition()}, []string{"status"}},
		"a name of fields": {&trackerv1.TaskActivityRequest{Q: "status", Since: first.GetPosition()}, nil},
		"signs as such":    {&trackerv1.TaskActivityRequest{Q: "1__%", Since: first.GetPosition()}, nil},
	} {
		row.req.Project = "OPS"
		require.Equal(t, row.want, kindsIn(activity(t, b, row.req)), name)
	}
	quiet := activity(t, b, &trackerv1.TaskActivityRequest{Project: "OPS", Notified: proto.Bool(false)})
	loud := activity(t, b, &trackerv1.TaskActivityRequest{Project: "OPS", Notified: proto.Bool(true)})
	require.Equal(t, 5, int(quiet.GetCount()+loud.GetCount()))
	require.Contains(t, kindsIn(loud), "comment")
}

func TestATextIsSearchedInOneItemOrInTheLast90DaysOfAProject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, _ := busy(t, b)
	search := func(req *trackerv1.TaskActivityRequest) error {
		req.Q = "certificate"
		_, err := b.client.TaskActivity(operator(t.Context()), req)
		return err
	}
	refusal(t, search(&trackerv1.TaskActivityRequest{Project: "OPS"}), fault.Invalid, "q")
	refusal(t, search(&trackerv1.TaskActivityRequest{Project: "OPS", From: time.Now().AddDate(0, 0, -92).Format(time.DateOnly)}), fault.Invalid, "q")
	refusal(t, search(&trackerv1.TaskActivityRequest{Project: "OPS", To: "2120-01-01"}), fault.Invalid, "q")
	require.NoError(t, search(&trackerv1.TaskActivityRequest{Project: "OPS", From: time.Now().AddDate(0, 0, -89).Format(time.DateOnly)}))
	require.NoError(t, search(&trackerv1.TaskActivityRequest{Project: "OPS", Since: first.GetPosition()}))
	require.NoError(t, search(&trackerv1.TaskActivityRequest{Item: "OPS-1"}))
}

func TestActivityIsPagedWithoutLossOrRepetitionInBothDirections(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var want []string
	for n := range 11 {
		want = append(want, file(t, b, fmt.Sprint("Item ", n)).GetPosition())
	}
	for _, oldest := range []bool{true, false} {
		var got []string
		req := &trackerv1.TaskActivityRequest{Project: "OPS", OldestFirst: oldest, Limit: 4}
		for {
			res := activity(t, b, req)
			for _, r := range res.GetRows() {
				got = append(got, r.GetPosition())
			}
			req.Cursor = res.GetNextCursor()
			if !res.GetMore() {
				break
			}
			require.Equal(t, int32(4), res.GetCount())
		}
		if oldest {
			require.Equal(t, want, got)
			require.NotEmpty(t, req.GetCursor(), "who follows has where to go on")
			next := file(t, b, "Later").GetPosition()
			res := activity(t, b, req)
			require.Equal(t, int32(1), res.GetCount())
			require.Equal(t, next, res.GetRows()[0].GetPosition())
			req.Cursor = res.GetNextCursor()
			require.Zero(t, activity(t, b, req).GetCount())
			want = append(want, next)
			continue
		}
		require.Len(t, got, 12)
		for n := range got {
			require.Equal(t, want[11-n], got[n])
		}
	}
	cursor := activity(t, b, &trackerv1.TaskActivityRequest{Project: "OPS", Limit: 1}).GetNextCursor()
	for _, other := range []*trackerv1.TaskActivityRequest{
		{Project: "SHOP"}, {Item: "OPS-1"}, {Project: "OPS", OldestFirst: true}, {Project: "OPS", Kinds: []string{"created"}}, {Project: "OPS", Actor: "ci"},
	} {
		other.Cursor = cursor
		_, err := b.client.TaskActivity(operator(t.Context()), other)
		require.Equal(t, "CURSOR_MISMATCH", refusal(t, err, fault.Invalid, "cursor").Reason)
	}
}

func TestAFollowerSeesItsOwnWriteAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range 5 {
		res := file(t, b, fmt.Sprint("Item ", n))
		got := activity(t, b, &trackerv1.TaskActivityRequest{Item: res.GetKey(), OldestFirst: true, MinPosition: res.GetPosition()})
		require.Equal(t, int32(1), got.GetCount())
	}
}
