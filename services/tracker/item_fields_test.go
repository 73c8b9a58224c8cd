package tracker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

// values are custom fields as arguments give them.
func values(t *testing.T, fields map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(fields)
	require.NoError(t, err)
	return s
}

// ofEveryType declares a field of each type.
func ofEveryType(t *testing.T, b bundle) {
	t.Helper()
	declare(t, b,
		&trackerv1.FieldDeclaration{Slug: "note", Name: "Note", Type: "text"},
		&trackerv1.FieldDeclaration{Slug: "story", Name: "Story", Type: "textarea"},
		&trackerv1.FieldDeclaration{Slug: "cost", Name: "Cost", Type: "number", Unit: "EUR", Precision: proto.Int32(2), Min: proto.Float64(0)},
		&trackerv1.FieldDeclaration{Slug: "day", Name: "Day", Type: "date"},
		&trackerv1.FieldDeclaration{Slug: "at", Name: "At", Type: "date", Time: true},
		&trackerv1.FieldDeclaration{Slug: "severity", Name: "Severity", Type: "dropdown", Options: manyOptions(3)},
		&trackerv1.FieldDeclaration{Slug: "areas", Name: "Areas", Type: "labels", Options: manyOptions(3)},
		&trackerv1.FieldDeclaration{Slug: "paid", Name: "Paid", Type: "checkbox"},
		&trackerv1.FieldDeclaration{Slug: "link", Name: "Link", Type: "url"},
		&trackerv1.FieldDeclaration{Slug: "mail", Name: "Mail", Type: "email"},
		&trackerv1.FieldDeclaration{Slug: "ready", Name: "Ready", Type: "progress"},
		&trackerv1.FieldDeclaration{Slug: "about", Name: "About", Type: "relationship"},
		&trackerv1.FieldDeclaration{Slug: "owner", Name: "Owner", Type: "people"})
}

func fieldsOf(ctx context.Context, t *testing.T, b bundle, key string) map[string]any {
	t.Helper()
	res, err := b.client.GetWorkItem(ctx, &trackerv1.GetWorkItemRequest{Item: key})
	require.NoError(t, err)
	return res.GetItem().GetFields().AsMap()
}

func TestCustomFieldsReadBackAsTheyWereGivenInTheirStoredForms(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ofEveryType(t, b)
	other := file(t, b, "Other")
	res, err := b.client.CreateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.CreateWorkItemRequest{Title: "All of them", Fields: values(t, map[string]any{
		"note": "مرحبا 👍", "story": "a\nb", "cost": 12.25, "day": "2026-03-01T23:30:00-05:00", "at": "2026-03-01T10:00:00+01:00", "severity": "Option number 2",
		"areas": []any{"option-1", "option-0"}, "paid": false, "link": "https://example.com", "mail": "ana@example.com", "ready": 40, "about": other.GetKey(),
		"owner": "the designer",
	})})
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(res.GetWarnings()), "2026-03-02", "cut to the company's day, with a warning")
	require.Equal(t, map[string]any{
		"note": "مرحبا 👍", "story": "a\nb", "cost": 12.25, "day": "2026-03-02", "at": "2026-03-01T09:00:00Z", "severity": "option-2",
		"areas": []any{"option-1", "option-0"}, "paid": false, "link": "https://example.com", "mail": "ana@example.com", "ready": 40.0, "about": other.GetId(),
		"owner": "designer",
	}, fieldsOf(operator(t.Context()), t, b, res.GetKey()))
	_, err = b.client.UpdateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.UpdateWorkItemRequest{Item: res.GetKey(), Fields: values(t, map[string]any{
		"story": nil, "cost": nil, "day": nil, "at": nil, "areas": nil, "paid": nil, "link": nil, "mail": nil, "ready": nil, "about": nil, "owner": nil, "severity": "option-0",
	})})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"note": "مرحبا 👍", "severity": "option-0"}, fieldsOf(operator(t.Context()), t, b, res.GetKey()), "null clears")
}

func TestARenamedOptionIsReadUnderItsNewName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ofEveryType(t, b)
	res, err := b.client.CreateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.CreateWorkItemRequest{Title: "x", Fields: values(t, map[string]any{"severity": "option-1"})})
	require.NoError(t, err)
	fields := catalogue(t, b, false).GetFields()
	for _, f := range fields {
		if f.GetSlug() == "severity" {
			f.Slug, f.Options[1].Slug = "impact", "grave"
		}
	}
	declare(t, b, fields...)
	require.Equal(t, map[string]any{"impact": "grave"}, fieldsOf(operator(t.Context()), t, b, res.GetKey()))
}

func TestAWrongValueIsRefusedByItsFieldAndWritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ofEveryType(t, b)
	key := file(t, b, "x").GetKey()
	for slug, value := range map[string]any{
		"note": 3, "cost": 1.005, "day": "soon", "at": "2026-03-01", "severity": "option-9", "areas": []any{1}, "paid": "true", "link": "/x", "mail": "Ana <a@b.c>",
		"ready": 101, "about": "OPS-99", "owner": "bob", "nope": 1,
	} {
		_, err := b.client.UpdateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.UpdateWorkItemRequest{
			Item: key, Title: proto.String("changed"), Fields: values(t, map[string]any{"ready": 1, slug: value}),
		})
		refusal(t, err, fault.Invalid, "fields."+slug)
	}
	res, err := b.client.GetWorkItem(operator(t.Context()), &trackerv1.GetWorkItemRequest{Item: key})
	require.NoError(t, err)
	require.Equal(t, "x", res.GetItem().GetTitle())
	require.Empty(t, res.GetItem().GetFields().AsMap())
}

func TestRequiredFieldsAreDemandedOfNewItemsAndCannotBeCleared(t *testing.T) {
	t.Parallel()
	b := setup(t)
	declare(t, b, &trackerv1.FieldDeclaration{Slug: "cost", Name: "Cost", Type: "number", Required: true},
		&trackerv1.FieldDeclaration{Slug: "steps", Name: "Steps", Type: "text", Required: true, AppliesTo: []string{"bug"}})
	ctx := seat(t.Context(), "ops-lead")
	_, err := b.client.CreateWorkItem(ctx, &trackerv1.CreateWorkItemRequest{Title: "x"})
	require.Contains(t, refusal(t, err, fault.Invalid, "fields.cost").Message, "cost")
	_, err = b.client.CreateWorkItem(ctx, &trackerv1.CreateWorkItemRequest{Title: "x", Type: "bug", Fields: values(t, map[string]any{"cost": 1})})
	refusal(t, err, fault.Invalid, "fields.steps")
	res, err := b.client.CreateWorkItem(ctx, &trackerv1.CreateWorkItemRequest{Title: "x", Fields: values(t, map[string]any{"cost": 1})})
	require.NoError(t, err)
	_, err = b.client.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{Item: res.GetKey(), Fields: values(t, map[string]any{"cost": nil})})
	require.Contains(t, refusal(t, err, fault.Invalid, "fields.cost").Message, "cannot be cleared")
	_, err = b.client.CreateWorkItem(ctx, &trackerv1.CreateWorkItemRequest{Title: "part", Parent: res.GetKey()})
	require.NoError(t, err, "of subtasks they are not demanded unless required_in_subtasks says so")
}

func TestAnAgentCannotSetWhatIsHiddenFromIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	declare(t, b, &trackerv1.FieldDeclaration{Slug: "salary", Name: "Salary", Type: "number", HideFromAgents: true})
	key := file(t, b, "x").GetKey()
	edit := &trackerv1.UpdateWorkItemRequest{Item: key, Fields: values(t, map[string]any{"salary": 1})}
	_, err := b.client.UpdateWorkItem(seat(t.Context(), "ops-lead"), edit)
	refusal(t, err, fault.Invalid, "fields.salary")
	_, err = b.client.UpdateWorkItem(person(t.Context(), "ines"), edit)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"salary": 1.0}, fieldsOf(person(t.Context(), "ines"), t, b, key))
	require.Empty(t, fieldsOf(seat(t.Context(), "ops-lead"), t, b, key))
}

func TestArchivedTypesTakeNoNewWorkAndKeepWhatTheyHave(t *testing.T) {
	t.Parallel()
	b := setup(t)
	types := func(declared ...*trackerv1.WorkType) {
		_, err := b.client.WriteWorkCatalogue(operator(t.Context()), &trackerv1.WriteWorkCatalogueRequest{Types: declared})
		require.NoError(t, err)
	}
	types(&trackerv1.WorkType{Slug: "incident", Label: "Incident"})
	ctx := seat(t.Context(), "ops-lead")
	res, err := b.client.CreateWorkItem(ctx, &trackerv1.CreateWorkItemRequest{Title: "x", Type: "Incident"})
	require.NoError(t, err)
	types(&trackerv1.WorkType{Slug: "incident", Label: "Incident", Archived: true})
	_, err = b.client.CreateWorkItem(ctx, &trackerv1.CreateWorkItemRequest{Title: "y", Type: "incident"})
	require.Contains(t, refusal(t, err, fault.Invalid, "type").Message, "takes no new work")
	_, err = b.client.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{Item: res.GetKey(), Title: proto.String("still mine")})
	require.NoError(t, err)
}

func TestLabelsCreateMissingDeclaresOnlyAfterAllOtherChecks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := seat(t.Context(), "ops-lead")
	_, err := b.client.CreateWorkItem(ctx, &trackerv1.CreateWorkItemRequest{Title: "x", Labels: []string{"backend"}})
	require.Contains(t, refusal(t, err, fault.Invalid, "labels").Message, "labels_create_missing")
	_, err = b.client.CreateWorkItem(ctx, &trackerv1.CreateWorkItemRequest{
		Title: "x", Labels: []string{"backend"}, LabelsCreateMissing: true, Fields: values(t, map[string]any{"nope": 1}),
	})
	refusal(t, err, fault.Invalid, "fields.nope")
	require.Empty(t, describe(t, b, "OPS").GetLabels(), "what is refused declares nothing")
	res, err := b.client.CreateWorkItem(ctx, &trackerv1.CreateWorkItemRequest{Title: "x", Labels: []string{"Back End", "back-end"}, LabelsCreateMissing: true})
	require.NoError(t, err)
	require.Equal(t, []string{"back-end"}, res.GetLabelsCreated())
	require.Equal(t, "Back End", describe(t, b, "OPS").GetLabels()[0].GetLabel())
	_, err = b.client.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{
		Item: res.GetKey(), Labels: []string{"bak-end"},
	})
	require.Contains(t, refusal(t, err, fault.Invalid, "labels").Message, "back-end")
}

func TestManyCallersDeclareTheSameMissingLabelsAndAllOfThemLand(t *testing.T) {
	t.Parallel()
	b := setup(t)
	keys := make([]string, 16)
	for n := range keys {
		keys[n] = file(t, b, fmt.Sprint("item ", n)).GetKey()
	}
	var group sync.WaitGroup
	errs := make([]error, 2*len(keys))
	for n, key := range keys {
		labels := []string{fmt.Sprint("l", n%4), fmt.Sprint("l", (n+1)%4), fmt.Sprint("l", (n+2)%4)}
		group.Go(func() {
			_, errs[n] = b.client.UpdateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.UpdateWorkItemRequest{Item: key, Labels: labels, LabelsCreateMissing: true})
		})
		group.Go(func() {
			_, errs[len(keys)+n] = b.client.CreateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.CreateWorkItemRequest{
				Title: fmt.Sprint("new ", n), Labels: labels, LabelsCreateMissing: true,
			})
		})
	}
	group.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, describe(t, b, "OPS").GetLabels(), 4)
}
