package convert

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
	"github.com/bullpenhq/bullpen/services/tracker/internal/label"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
	"github.com/bullpenhq/bullpen/services/tracker/internal/worktype"
)

// Project answers a project with its counts. resolved says that the company's chart still names its unit.
func Project(p store.Project, resolved bool) *trackerv1.Project {
	out := &trackerv1.Project{
		Key:             p.Key,
		Name:            p.Name,
		Purpose:         p.Purpose,
		Unit:            p.Unit,
		Lead:            p.Lead,
		DefaultAssignee: p.DefaultAssignee,
		Archived:        p.Archived,
		TaskCounts:      &trackerv1.TaskCounts{Todo: p.Todo, Active: p.Active, Done: p.Done, Closed: p.Closed},
		UnitResolved:    resolved,
	}
	if p.TargetDate != nil {
		out.TargetDate = p.TargetDate.Format(time.DateOnly)
	}
	if c := p.LastChange; c != nil {
		out.LastChange = &trackerv1.LastChange{ChangeTime: timestamppb.New(c.At), Actor: c.By, ActorKind: c.ByKind}
	}
	return out
}

// Type answers a kind of work.
func Type(t worktype.Type) *trackerv1.WorkType {
	return &trackerv1.WorkType{Slug: t.Slug, Label: t.Label, Description: t.Description, Archived: t.Archived, Builtin: t.Builtin}
}

// TypesFromProto reads declared kinds of work.
func TypesFromProto(in []*trackerv1.WorkType) []worktype.Type {
	out := make([]worktype.Type, 0, len(in))
	for _, t := range in {
		out = append(out, worktype.Type{Slug: t.GetSlug(), Label: t.GetLabel(), Description: t.GetDescription(), Archived: t.GetArchived()})
	}
	return out
}

// Label answers a label.
func Label(l label.Label) *trackerv1.Label {
	return &trackerv1.Label{Slug: l.Slug, Label: l.Label, Color: l.Color, Description: l.Description, Archived: l.Archived}
}

// Declaration answers a custom field, its options included.
func Declaration(d field.Declaration) *trackerv1.FieldDeclaration {
	out := &trackerv1.FieldDeclaration{
		Id: d.ID, Slug: d.Slug, Name: d.Name, Type: d.Type, Description: d.Description, Unit: d.Unit, Precision: d.Precision, Min: d.Min, Max: d.Max,
		Time: d.Time, Multi: d.Multi, Progress: d.Progress, AppliesTo: d.AppliesTo, Required: d.Required, RequiredInSubtasks: d.RequiredInSubtasks,
		HideFromAgents: d.HideFromAgents, Pinned: d.Pinned, Archived: d.Archived, Author: d.Author, CreateTime: timestamppb.New(d.CreatedAt),
	}
	for _, o := range d.Options {
		out.Options = append(out.Options, &trackerv1.FieldOption{Id: o.ID, Slug: o.Slug, Name: o.Name, Color: o.Color, Archived: o.Archived})
	}
	return out
}

// DeclarationsFromProto reads custom fields. Who declared them, and when, is not theirs to say.
func DeclarationsFromProto(in []*trackerv1.FieldDeclaration) []field.Declaration {
	out := make([]field.Declaration, 0, len(in))
	for _, d := range in {
		declared := field.Declaration{
			ID: d.GetId(), Slug: d.GetSlug(), Name: d.GetName(), Type: d.GetType(), Description: d.GetDescription(), Unit: d.GetUnit(),
			Precision: d.Precision, Min: d.Min, Max: d.Max, Time: d.GetTime(), Multi: d.GetMulti(), Progress: d.GetProgress(), AppliesTo: d.GetAppliesTo(),
			Required: d.GetRequired(), RequiredInSubtasks: d.GetRequiredInSubtasks(), HideFromAgents: d.GetHideFromAgents(), Pinned: d.GetPinned(),
			Archived: d.GetArchived(),
		}
		for _, o := range d.GetOptions() {
			declared.Options = append(declared.Options, field.Option{ID: o.GetId(), Slug: o.GetSlug(), Name: o.GetName(), Color: o.GetColor(), Archived: o.GetArchived()})
		}
		out = append(out, declared)
	}
	return out
}
