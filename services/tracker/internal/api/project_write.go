package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/label"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// WriteProject implements the contract. The labels are written first and stand whatever becomes of the rest, which then says so.
func (h *Handler) WriteProject(ctx context.Context, req *trackerv1.WriteProjectRequest) (*trackerv1.WriteProjectResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	key, err := projectKey(o, by, req.GetProject())
	if err != nil {
		return nil, err
	}
	if err := mayWrite(o, by, key, req); err != nil {
		return nil, err
	}
	act := store.Act{By: by, At: h.now(), Org: o}
	labels, err := labelEdit(req)
	if err != nil {
		return nil, err
	}
	policy, err := h.projectEdit(ctx, o, req)
	if err != nil {
		return nil, err
	}
	whole := operation(ctx, "write_project", req)
	tags, rest := &trackerv1.WriteProjectResponse{}, &trackerv1.WriteProjectResponse{}
	if labels != nil {
		err := h.Store.UpdateLabels(ctx, half(whole, "tags"), tags, store.LabelEdit{Project: key, Edit: *labels, Act: act},
			func(out label.Edited, version int32, at ops.Position) {
				tags.Version, tags.Tags = version, receipt(at, out.Warnings)
			})
		if err != nil {
			return nil, err
		}
	}
	if policy != nil {
		policy.Project, policy.Act = key, act
		err := h.Store.UpdateProject(ctx, half(whole, "policy"), rest, *policy, func(version int32, at ops.Position) {
			rest.Version, rest.Policy = version, receipt(at, nil)
		})
		if err != nil {
			return nil, landedFirst(tags.GetTags(), err)
		}
	}
	if labels == nil && policy == nil {
		return nil, fault.New(fault.Invalid, "nothing is to be written: give tags_add, tags_rename, tags_archive, fields, default_assignee, target_date or archived")
	}
	return joined(tags, rest), nil
}

// half names the write that one half of a call is, so that repeating the call repeats neither.
func half(whole ops.Operation, part string) ops.Operation {
	if whole.ID != "" {
		sum := sha256.Sum256([]byte(whole.ID))
		whole.ID = part + ":" + hex.EncodeToString(sum[:])
	}
	return whole
}

func receipt(at ops.Position, warnings []string) *trackerv1.ProjectHalf {
	r := &trackerv1.ProjectHalf{Outcome: settled(at), Warnings: warnings}
	if at != (ops.Position{}) {
		r.Position = at.String()
	}
	return r
}

// joined answers both halves with the least certain outcome and the latest place.
func joined(tags, policy *trackerv1.WriteProjectResponse) *trackerv1.WriteProjectResponse {
	res := &trackerv1.WriteProjectResponse{
		Outcome: unchanged, Version: max(tags.GetVersion(), policy.GetVersion()), Tags: tags.GetTags(), Policy: policy.GetPolicy(),
	}
	for _, half := range []*trackerv1.ProjectHalf{res.GetTags(), res.GetPolicy()} {
		if half.GetOutcome() == applied {
			res.Outcome, res.Position = applied, half.GetPosition()
		}
	}
	return res
}

// landedFirst says in a refusal of the second half that the first one stands.
func landedFirst(tags *trackerv1.ProjectHalf, err error) error {
	if tags.GetOutcome() != applied {
		return err
	}
	f, ok := fault.As(err)
	if !ok {
		f = fault.New(fault.Unavailable, "the project could not be written").WithCause(err)
	}
	c := *f
	c.Message = fmt.Sprintf("%s (the labels stand, at %s; only the rest was not written)", f.Message, tags.GetPosition())
	return c.WithFact("landed", "tags").WithFact("landed_position", tags.GetPosition())
}

// mayWrite refuses what the caller may not change. Labels are anybody's to declare; the rest is the lead's, or a person's; whether the
// project takes work at all is a person's.
func mayWrite(o *org.Org, by item.Actor, key string, req *trackerv1.WriteProjectRequest) error {
	if by.Person() {
		return nil
	}
	if req.Archived != nil {
		return fault.New(fault.Forbidden, "only a person may say whether project %s takes work: ask one", key).WithField("archived")
	}
	p, _ := o.Project(key)
	if o.Leads(by.Seat, p.Unit) {
		return nil
	}
	for _, part := range []struct {
		name  string
		given bool
	}{
		{"tags_rename", len(req.GetTagsRename()) > 0},
		{"tags_archive", len(req.GetTagsArchive()) > 0},
		{"fields", len(req.GetFields())+len(req.GetClear()) > 0},
		{"default_assignee", req.DefaultAssignee != nil},
		{"target_date", req.TargetDate != nil},
	} {
		if part.given {
			return fault.New(fault.Forbidden, "%s of project %s is for its lead%s or a person: any seat may declare labels with tags_add", part.name, key, named(p.Lead)).
				WithField(part.name)
		}
	}
	return nil
}

func named(lead string) string {
	if lead == "" {
		return ""
	}
	return " " + lead
}

// labelEdit answers what is to become of the labels, nil for nothing.
func labelEdit(req *trackerv1.WriteProjectRequest) (*label.Edit, error) {
	if len(req.GetTagsAdd())+len(req.GetTagsRename())+len(req.GetTagsArchive()) == 0 {
		return nil, nil
	}
	e := &label.Edit{Archive: req.GetTagsArchive()}
	for n, t := range req.GetTagsAdd() {
		path := fmt.Sprintf("tags_add[%d]", n)
		l, err := label.New(path+".slug", t.GetSlug(), t.GetLabel())
		if err != nil {
			return nil, err
		}
		if err := l.Paint(path+".color", t.GetColor()); err != nil {
			return nil, err
		}
		l.Description = t.GetDescription()
		e.Add = append(e.Add, l)
	}
	for _, r := range req.GetTagsRename() {
		e.Rename = append(e.Rename, label.Rename{Slug: r.GetSlug(), Label: r.GetLabel()})
	}
	return e, nil
}

// projectEdit answers what is to become of the rest, nil for nothing.
func (h *Handler) projectEdit(ctx context.Context, o *org.Org, req *trackerv1.WriteProjectRequest) (*store.ProjectEdit, error) {
	fields, err := declarations(req.GetFields(), req.GetClear())
	if err != nil {
		return nil, err
	}
	e := &store.ProjectEdit{Fields: fields, Archived: req.Archived}
	if req.DefaultAssignee != nil {
		who := req.GetDefaultAssignee()
		if who != "" {
			if who, err = h.colleague(ctx, o, "default_assignee", who); err != nil {
				return nil, err
			}
		}
		e.DefaultAssignee = &who
	}
	if req.TargetDate != nil {
		var day *time.Time
		if text := req.GetTargetDate(); text != "" {
			parsed, err := time.Parse(time.DateOnly, text)
			if err != nil {
				return nil, fault.New(fault.Invalid, "target_date must be a day of the calendar such as 2026-03-01, not %q", text).WithField("target_date")
			}
			day = &parsed
		}
		e.TargetDate = &day
	}
	if e.Fields == nil && e.Archived == nil && e.DefaultAssignee == nil && e.TargetDate == nil {
		return nil, nil
	}
	return e, nil
}
