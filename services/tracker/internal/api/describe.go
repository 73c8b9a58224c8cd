package api

import (
	"context"
	"strings"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/services/tracker/internal/convert"
	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// statuses are where an item can stand, in the order of its life.
func statuses() []*trackerv1.StatusMeaning {
	meanings := []*trackerv1.StatusMeaning{
		{Status: "todo", Label: "To do", Meaning: "Nobody has begun"},
		{Status: "in_progress", Label: "In progress", Meaning: "Somebody works on it"},
		{Status: "in_review", Label: "In review", Meaning: "It is done as far as its assignee can tell, and somebody else looks at it"},
		{Status: "done", Label: "Done", Meaning: "It is finished"},
		{Status: "cancelled", Label: "Cancelled", Meaning: "It will not be done, or is a duplicate"},
		{Status: "closed", Label: "Closed", Meaning: "It is finished and settled: nothing more is expected"},
	}
	for _, m := range meanings {
		m.StatusGroup = item.GroupOf(m.GetStatus()).String()
	}
	return meanings
}

// DescribeProject implements the contract. Everything is shown but long lists: first the fields without their options, then the labels,
// then the options of one field after the other as far as there is room.
func (h *Handler) DescribeProject(ctx context.Context, req *trackerv1.DescribeProjectRequest) (*trackerv1.DescribeProjectResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.notBefore(ctx, req.GetMinPosition()); err != nil {
		return nil, err
	}
	key, err := projectKey(o, by, req.GetProject())
	if err != nil {
		return nil, err
	}
	p, c, err := h.Store.ProjectByKey(ctx, key)
	if err != nil {
		return nil, err
	}
	var scope field.Scope
	if text := req.GetForType(); text != "" {
		t, ok := c.Types.Find(text)
		if !ok {
			return nil, c.Types.None("for_type", text)
		}
		scope.Type = t.Slug
	}
	res := &trackerv1.DescribeProjectResponse{Project: convert.Project(p, resolved(o, p.Unit)), Statuses: statuses()}
	for _, t := range c.Types.Live() {
		res.Types = append(res.Types, convert.Type(t))
	}
	set := c.Fields(scope)
	if by.Kind == "agent" {
		set = set.ForAgents()
	}
	res.Shadowed = set.Shadowed()
	describeFields(res, set)
	describeLists(res, c, set)
	return res, fits(res, "name one type of work in for_type")
}

// projectKey answers the key of the project that a call is about, the seat's own unit's when it names none. The chart may no longer have it.
func projectKey(o *org.Org, by item.Actor, text string) (string, error) {
	if text == "" {
		return o.ProjectOf(by.Seat)
	}
	return strings.ToUpper(strings.TrimSpace(text)), nil
}

// describeFields shows the fields without their options.
func describeFields(res *trackerv1.DescribeProjectResponse, set field.Set) {
	for _, d := range set.Fields() {
		f := &trackerv1.ProjectField{Field: convert.Declaration(d), DeclaredAt: "workspace"}
		if set.Own(d.ID) {
			f.DeclaredAt = "project"
		}
		f.Field.Options = nil
		for _, o := range d.Options {
			if !o.Archived {
				f.OptionsTotal++
			}
		}
		res.Fields = append(res.Fields, f)
	}
}

// describeLists shows labels and options as far as they fit. A list of options is shown whole or not at all, as its beginning would be
// taken for all of it; labels are said to be cut.
func describeLists(res *trackerv1.DescribeProjectResponse, c store.Catalogue, set field.Set) {
	room := newRoom(res) - moreLabels
	full := false
	for _, l := range c.Labels {
		if l.Archived {
			continue
		}
		res.LabelsTotal++
		shown := convert.Label(l)
		if full = full || !room.take(shown); !full {
			res.Labels = append(res.Labels, shown)
		}
	}
	for n, d := range set.Fields() {
		whole := &trackerv1.ProjectField{Field: &trackerv1.FieldDeclaration{}}
		for _, o := range convert.Declaration(d).GetOptions() {
			if !o.GetArchived() {
				whole.Field.Options = append(whole.Field.Options, o)
			}
		}
		if len(whole.GetField().GetOptions()) > 0 && room.take(whole) {
			res.Fields[n].Field.Options = whole.GetField().GetOptions()
			res.Fields[n].OptionsShown = res.GetFields()[n].GetOptionsTotal()
		}
	}
}

// moreLabels is what the number of labels takes when it is known.
const moreLabels = 16
