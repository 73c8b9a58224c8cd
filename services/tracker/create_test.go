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
	"github.com/bullpenhq/bullpen/libs/rpc"
)

func create(ctx context.Context, b bundle, req *trackerv1.CreateWorkItemRequest) (*trackerv1.CreateWorkItemResponse, error) {
	if req.GetProject() == "" {
		req.Project = "OPS"
	}
	return b.client.CreateWorkItem(ctx, req)
}

func TestAFiledItemHasEverythingThatWasSaidOfIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	settle(operator(t.Context()), t, b, &trackerv1.WriteProjectRequest{Project: "OPS", TagsAdd: []*trackerv1.NewLabel{{Slug: "tls", Label: "TLS"}}})
	declare(t, b, &trackerv1.FieldDeclaration{Slug: "cost", Name: "Cost", Type: "number"}, &trackerv1.FieldDeclaration{Slug: "owner", Name: "Owner", Type: "people"})
	res, err := create(seat(t.Context(), "designer"), b, &trackerv1.CreateWorkItemRequest{
		Title: "Renew the certificate", Type: "bug", Priority: "high", Status: "in_progress", Due: "2026-05-01", Start: "2026-04-01T09:00:00Z",
		EstimateMinutes: proto.Int32(90), Points: proto.Float64(2.5), Labels: []string{"TLS", "tls"}, Unit: "Design", Body: "All of it",
		Fields: values(t, map[string]any{"cost": 12, "owner": "The Designer"}),
	})
	require.NoError(t, err)
	i := got(t, b, res.GetKey())
	require.Equal(t, "bug", i.GetType())
	require.Equal(t, "high", i.GetPriority())
	require.Equal(t, "active", i.GetStatusGroup())
	require.Equal(t, "2026-05-01", i.GetDue())
	require.Equal(t, "2026-04-01T09:00:00Z", i.GetStart())
	require.Equal(t, int32(90), i.GetEstimateMinutes())
	require.InDelta(t, 2.5, i.GetPoints(), 0)
	require.Equal(t, []string{"tls"}, i.GetLabels())
	require.Equal(t, "design", i.GetFiledUnit())
	require.Equal(t, "design", i.GetRoutingUnit())
	require.Equal(t, map[string]any{"cost": 12.0, "owner": "designer"}, i.GetFields().AsMap(), "who a name is, is looked up")
	require.Equal(t, int32(1), i.GetBodyVersion())
	require.NotEmpty(t, i.GetRank())
	require.Equal(t, []string{"designer"}, i.GetWatchers(), "the reporter watches")
	require.Equal(t, []string{"nobody has it yet: it waits for triage in OPS"}, res.GetWarnings())
	first := rows(t, b, res.GetKey())[0]
	require.Equal(t, "created", first.GetKind())
	told := first.GetFields().AsMap()
	require.Equal(t, map[string]any{"from": "0 bytes", "to": "9 bytes"}, told["body"])
	require.Equal(t, map[string]any{"from": "", "to": "cost=12, owner=designer"}, told["fields"])
	require.Equal(t, map[string]any{"from": "", "to": "tls"}, told["tags"])
}

func TestWithoutAnAssigneeItGoesToTheProjectsDefaultAndElseWaitsForTriage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Empty(t, file(t, b, "Nobody's").GetAssignee())
	settle(operator(t.Context()), t, b, &trackerv1.WriteProjectRequest{Project: "OPS", DefaultAssignee: proto.String("designer")})
	res := file(t, b, "The default's")
	require.Equal(t, "designer", res.GetAssignee())
	require.Empty(t, res.GetWarnings())
	require.ElementsMatch(t, []string{"ops-lead", "designer"}, got(t, b, res.GetKey()).GetWatchers(), "reporter and assignee watch")
	_, err := b.pool.Exec(t.Context(), `update projects set default_assignee = 'gone'`)
	require.NoError(t, err)
	require.Empty(t, file(t, b, "Of somebody who left").GetAssignee())
	_, err = b.client.WriteProject(person(t.Context(), "ines"), &trackerv1.WriteProjectRequest{Project: "OPS", Archived: proto.Bool(true)})
	require.NoError(t, err)
	_, err = create(operator(t.Context()), b, &trackerv1.CreateWorkItemRequest{Title: "Too late"})
	require.Contains(t, refusal(t, err, fault.Invalid, "project").Message, "archived")
}

func TestAnOpenItemOfTheSameTitleIsNamedInsteadOfFilingAnother(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Renew  the\tCertificate ").GetKey()
	_, err := create(operator(t.Context()), b, &trackerv1.CreateWorkItemRequest{Title: "renew the CERTIFICATE"})
	f := refusal(t, err, fault.Exists, "title")
	require.Equal(t, "TITLE_EXISTS", f.Reason)
	require.Equal(t, key, f.Facts["key"])
	require.Contains(t, f.Message, key)
	require.Contains(t, f.Message, "even_if_exists")
	_, err = create(operator(t.Context()), b, &trackerv1.CreateWorkItemRequest{Title: "Renew the certificate", Project: "SHOP"})
	require.NoError(t, err, "another project's is another item")
	second, err := create(operator(t.Context()), b, &trackerv1.CreateWorkItemRequest{Title: "Renew the certificate", EvenIfExists: true})
	require.NoError(t, err)
	for _, k := range []string{key, second.GetKey()} {
		change(t, b, &trackerv1.UpdateWorkItemRequest{Item: k, Status: proto.String("done")})
	}
	third, err := create(operator(t.Context()), b, &trackerv1.CreateWorkItemRequest{Title: "Renew the certificate"})
	require.NoError(t, err, "what is finished is in nobody's way")
	trash(t, b, third.GetKey(), false)
	_, err = create(operator(t.Context()), b, &trackerv1.CreateWorkItemRequest{Title: "Renew the certificate"})
	require.NoError(t, err, "nor is what is in the trash")
}

func TestOf64WhoFileTheSameTitleAtOnceExactlyOneDoes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	errs := together(64, func(n int) error {
		_, err := create(token(t.Context(), fmt.Sprint("worker-", n)), b, &trackerv1.CreateWorkItemRequest{Title: strings.Repeat(" ", n%3) + "The same"})
		return err
	})
	require.Equal(t, 1, only(t, errs, fault.Exists))
}

func TestWhatTheProjectDoesNotDeclareIsRefusedBeforeAnythingIsFiled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	settle(operator(t.Context()), t, b, &trackerv1.WriteProjectRequest{Project: "OPS", TagsAdd: []*trackerv1.NewLabel{{Slug: "backend", Label: "Backend"}}})
	declare(t, b, &trackerv1.FieldDeclaration{Slug: "cost", Name: "Cost", Type: "number"},
		&trackerv1.FieldDeclaration{Slug: "cause", Name: "Cause", Type: "text", AppliesTo: []string{"bug"}, Required: true})
	ctx := operator(t.Context())
	for _, wrong := range []struct {
		req   *trackerv1.CreateWorkItemRequest
		field string
		says  string
	}{
		{&trackerv1.CreateWorkItemRequest{Type: "bugg"}, "type", "bug"},
		{&trackerv1.CreateWorkItemRequest{Labels: []string{"backedn"}}, "labels", "backend"},
		{&trackerv1.CreateWorkItemRequest{Labels: []string{"new one"}, LabelsCreateMissing: true, Type: "bug"}, "fields.cause", "cause"},
		{&trackerv1.CreateWorkItemRequest{Fields: values(t, map[string]any{"cots": 1})}, "fields.cots", "cost"},
		{&trackerv1.CreateWorkItemRequest{Fields: values(t, map[string]any{"cost": "much"})}, "fields.cost", "number"},
		{&trackerv1.CreateWorkItemRequest{Unit: "nowhere"}, "unit", "operations"},
		{&trackerv1.CreateWorkItemRequest{WaitingOn: []string{"OPS-99"}}, "waiting_on", "OPS-99"},
		{&trackerv1.CreateWorkItemRequest{Start: "2026-02-30"}, "start", "2026-02-30"},
		{&trackerv1.CreateWorkItemRequest{Ask: "nobody-here"}, "ask", "ops-lead"},
	} {
		wrong.req.Title = "Never filed"
		_, err := create(ctx, b, wrong.req)
		require.Contains(t, refusal(t, err, fault.Invalid, wrong.field).Message, wrong.says)
	}
	list, err := b.client.ListWorkItems(ctx, &trackerv1.ListWorkItemsRequest{Project: "OPS"})
	require.NoError(t, err)
	require.Zero(t, list.GetTotal())
	require.Len(t, describe(t, b, "OPS").GetLabels(), 1, "a label is declared after everything else is checked")
	res, err := create(ctx, b, &trackerv1.CreateWorkItemRequest{
		Title: "Filed", Type: "bug", Labels: []string{"Backend", "New One", "another"}, LabelsCreateMissing: true, Fields: values(t, map[string]any{"cause": "age"}),
	})
	require.NoError(t, err)
	require.Equal(t, []string{"another", "new-one"}, res.GetLabelsCreated())
	require.Equal(t, []string{"backend", "new-one", "another"}, got(t, b, res.GetKey()).GetLabels())
	require.Len(t, describe(t, b, "OPS").GetLabels(), 3)
}

func TestAnItemThatWaitsIsBlockedFromItsBirth(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := file(t, b, "First").GetKey()
	res, err := create(operator(t.Context()), b, &trackerv1.CreateWorkItemRequest{Title: "Second", WaitingOn: []string{first}})
	require.NoError(t, err)
	require.True(t, got(t, b, res.GetKey()).GetBlocked())
	require.Equal(t, []string{first}, waits(t, b, res.GetKey()))
	require.Len(t, rows(t, b, res.GetKey()), 1, "the edge is part of the filing")
	require.Equal(t, first, claim(seat(t.Context(), "ops-lead"), t, b, &trackerv1.ClaimWorkItemRequest{}).GetItem().GetKey())
	require.Nil(t, claim(seat(t.Context(), "ops-lead"), t, b, &trackerv1.ClaimWorkItemRequest{}).GetItem(), "what waits is not ready")
	blocked := claim(seat(t.Context(), "ops-lead"), t, b, &trackerv1.ClaimWorkItemRequest{Item: res.GetKey()})
	require.Len(t, blocked.GetWarnings(), 1)
	change(t, b, &trackerv1.UpdateWorkItemRequest{Item: first, Status: proto.String("done")})
	claim(seat(t.Context(), "ops-lead"), t, b, &trackerv1.ClaimWorkItemRequest{Item: res.GetKey(), Release: true})
	require.Equal(t, res.GetKey(), claim(seat(t.Context(), "ops-lead"), t, b, &trackerv1.ClaimWorkItemRequest{}).GetItem().GetKey())
}

func TestAnItemFiledAsAQuestionWaitsForItsAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	res, err := create(seat(t.Context(), "ops-lead"), b, &trackerv1.CreateWorkItemRequest{Title: "Which colour?", Ask: "ines", Decision: choice()})
	require.NoError(t, err)
	require.Equal(t, "ines", res.GetAsked())
	require.NotEmpty(t, res.GetCommentId())
	require.Len(t, res.GetDecision().GetOptions(), len(choice().GetOptions()))
	i := whole(t, b, res.GetKey())
	require.Equal(t, int32(1), i.GetItem().GetOpenAsks())
	require.Contains(t, i.GetItem().GetWatchers(), "ines", "who is asked watches")
	require.Equal(t, "Which colour?", i.GetComments()[0].GetBody(), "the title is the question")
	require.True(t, i.GetComments()[0].GetAsk().GetOpen())
	require.Len(t, i.GetHistory(), 1, "one record")
	require.Equal(t, res.GetCommentId(), i.GetHistory()[0].GetCommentId())
	require.True(t, i.GetHistory()[0].GetNotified())
	answer, err := b.client.CommentOnWorkItem(person(t.Context(), "ines"), &trackerv1.CommentOnWorkItemRequest{
		Item: res.GetKey(), Choice: choice().GetOptions()[0].GetId(),
	})
	require.NoError(t, err)
	require.Equal(t, res.GetCommentId(), answer.GetAnswered())
	_, err = create(operator(t.Context()), b, &trackerv1.CreateWorkItemRequest{Title: "x", Decision: choice()})
	require.Contains(t, refusal(t, err, fault.Invalid, "").Message, "ask")
}

func TestARepeatedFilingIsTheSameItem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := rpc.WithOperation(operator(t.Context()), "create-1")
	first, err := create(ctx, b, &trackerv1.CreateWorkItemRequest{Title: "Once", Labels: []string{"a"}, LabelsCreateMissing: true})
	require.NoError(t, err)
	again, err := create(ctx, b, &trackerv1.CreateWorkItemRequest{Title: "Once", Labels: []string{"a"}, LabelsCreateMissing: true})
	require.NoError(t, err, "a repetition is answered from the ledger, not told that the item exists")
	require.True(t, proto.Equal(first, again))
}

func TestEveryLimitOfAFilingHoldsAndOneOverItIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := operator(t.Context())
	many := func(n int) (texts []string) {
		for i := range n {
			texts = append(texts, fmt.Sprint("label-", i))
		}
		return texts
	}
	res, err := create(ctx, b, &trackerv1.CreateWorkItemRequest{
		Title: strings.Repeat("é", 128), Body: strings.Repeat("x", 65536), EstimateMinutes: proto.Int32(525600), Points: proto.Float64(1e6),
		Labels: many(40), LabelsCreateMissing: true,
	})
	require.NoError(t, err)
	require.Equal(t, int32(65536), got(t, b, res.GetKey()).GetBodyBytes())
	for field, req := range map[string]*trackerv1.CreateWorkItemRequest{
		"title":            {Title: strings.Repeat("é", 128) + "x"},
		"body":             {Title: "x", Body: strings.Repeat("x", 65537)},
		"estimate_minutes": {Title: "x", EstimateMinutes: proto.Int32(525601)},
		"points":           {Title: "x", Points: proto.Float64(1e6 + 1)},
		"labels":           {Title: "x", Labels: many(41), LabelsCreateMissing: true},
		"labels[0]":        {Title: "x", Labels: []string{strings.Repeat("l", 65)}, LabelsCreateMissing: true},
		"priority":         {Title: "x", Priority: "highest"},
		"due":              {Title: "x", Due: "tomorrow"},
	} {
		_, err := create(ctx, b, req)
		refusal(t, err, fault.Invalid, field)
	}
	hostile := "\u202Eevil \U0001F600 '; drop table items; -- <script> %s \\"
	res, err = create(ctx, b, &trackerv1.CreateWorkItemRequest{Title: hostile, Body: hostile})
	require.NoError(t, err)
	require.Equal(t, hostile, got(t, b, res.GetKey()).GetTitle())
	for _, req := range []*trackerv1.CreateWorkItemRequest{{Title: "nul \x00"}, {Title: "x", Body: "\x00"}, {Title: "x", Fields: values(t, map[string]any{"a": "\x00"})}} {
		_, err = create(ctx, b, req)
		require.Equal(t, fault.Invalid, rpc.FromError(err).Class, "%v", err)
	}
}
