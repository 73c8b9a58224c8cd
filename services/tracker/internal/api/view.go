package api

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/query"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// Limits of a view's query.
const (
	maxViewParams = 32
	maxViewBytes  = 32 << 10
)

// builtins are the views that every container has, in its scope. They have no id.
func builtins(container string) []*trackerv1.WorkView {
	view := func(kind, name string, params query.Params) *trackerv1.WorkView {
		return &trackerv1.WorkView{Container: container, Name: name, Type: kind, Params: structOf(query.Merge(scopeOf(container), params))}
	}
	return []*trackerv1.WorkView{
		view("list", "List", query.Params{}),
		view("board", "Board", query.Params{"group_by": "status"}),
		view("calendar", "Calendar", query.Params{"due": "any", "sort": "due"}),
		view("timeline", "Timeline", query.Params{"sort": "start"}),
		view("table", "Table", query.Params{}),
		view("trash", "Trash", query.Params{"removed": "true"}),
	}
}

// ListWorkViews implements the contract.
func (h *Handler) ListWorkViews(ctx context.Context, req *trackerv1.ListWorkViewsRequest) (*trackerv1.ListWorkViewsResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.notBefore(ctx, req.GetMinPosition()); err != nil {
		return nil, err
	}
	container, err := h.container(ctx, o, req.GetContainer())
	if err != nil {
		return nil, err
	}
	viewer := by.Name
	if req.GetViewer() != "" {
		if viewer, err = h.colleague(ctx, o, "viewer", req.GetViewer()); err != nil {
			return nil, err
		}
		if viewer != by.Seat && by.Kind != "operator" && by.Kind != "system" {
			return nil, fault.New(fault.Forbidden, "what %s keeps for themselves is shown to them and to operators alone: leave viewer out", viewer).WithField("viewer")
		}
	}
	views, err := h.Store.Views(ctx, container, viewer)
	if err != nil {
		return nil, err
	}
	res := &trackerv1.ListWorkViewsResponse{Views: builtins(container)}
	for _, v := range views {
		res.Views = append(res.Views, &trackerv1.WorkView{
			Id: v.ID.String(), Container: v.Container, Name: v.Name, Type: v.Type, Params: structOf(v.Params), Owner: v.Owner, Protected: v.Protected,
			Default: v.First, Icon: v.Icon, Version: v.Version, Author: v.Author, UpdateTime: timestamppb.New(v.UpdatedAt),
		})
	}
	return res, fits(res, "the views of this container are too large together: save some with shorter queries, or in other containers")
}

// SaveWorkView implements the contract.
func (h *Handler) SaveWorkView(ctx context.Context, req *trackerv1.SaveWorkViewRequest) (*trackerv1.SaveWorkViewResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	v := store.View{Name: strings.TrimSpace(req.GetName()), Type: req.GetType(), Protected: req.GetProtected(), First: req.GetDefault(), Icon: req.GetIcon()}
	if v.Name == "" {
		return nil, fault.New(fault.Invalid, "name must say something").WithField("name")
	}
	if req.GetId() != "" {
		if v.ID, err = uuid.Parse(req.GetId()); err != nil {
			return nil, fault.New(fault.NotFound, "there is no view %q; list_work_views shows those there are", req.GetId()).WithField("id")
		}
	}
	if v.Container, err = h.container(ctx, o, req.GetContainer()); err != nil {
		return nil, err
	}
	if req.GetOwner() != "" {
		if v.Owner, err = h.colleague(ctx, o, "owner", req.GetOwner()); err != nil {
			return nil, err
		}
		if v.First && v.Container != "person:"+v.Owner {
			return nil, fault.New(fault.Invalid, "a view of %s alone cannot be the first that everybody sees: leave out owner or default", v.Owner).WithField("default")
		}
	}
	if v.Params, err = h.viewQuery(ctx, o, by, v.Container, req.GetParams()); err != nil {
		return nil, err
	}
	res := &trackerv1.SaveWorkViewResponse{}
	err = h.Store.SaveView(ctx, operation(ctx, "save_work_view", req), res, v, h.act(o, by), func(v store.View, at ops.Position) {
		res.Outcome, res.Version, res.Id = unchanged, v.Version, v.ID.String()
		if at.Sequence != 0 {
			res.Outcome, res.Position = applied, at.String()
		}
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// viewQuery reads the query of a view as it is saved, so that nothing is kept that cannot be asked.
func (h *Handler) viewQuery(ctx context.Context, o *org.Org, by item.Actor, container string, given *structpb.Struct) (query.Params, error) {
	if n := len(given.GetFields()); n > maxViewParams {
		return nil, fault.New(fault.Invalid, "params has %d keys, and a view keeps %d at most", n, maxViewParams).WithField("params")
	}
	for _, key := range slices.Sorted(maps.Keys(given.GetFields())) {
		if slices.Contains([]string{"view", "cursor", "read_level", "min_position"}, key) || strings.HasPrefix(key, "max_lag_") {
			return nil, fault.New(fault.Invalid, "params.%s: a view says what to list, and %s is said with each call", key, key).WithField("params." + key)
		}
	}
	params, err := saved(given)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	if len(raw) > maxViewBytes {
		return nil, fault.New(fault.Invalid, "params is %d bytes long, and a view keeps %d at most", len(raw), maxViewBytes).WithField("params")
	}
	q, err := query.Parse(query.Merge(scopeOf(container), params))
	if err == nil {
		err = (&resolver{Handler: h, org: o, by: by}).resolve(ctx, q)
	}
	if f, ok := fault.As(err); ok && f.Class == fault.Invalid {
		return nil, f.WithField("params." + f.Field)
	}
	return params, err
}

// viewParams answers the query of a saved view, in its container.
func (h *Handler) viewParams(ctx context.Context, by item.Actor, text string) (query.Params, error) {
	missing := fault.New(fault.Invalid, "view names no saved view: there is no %q; list_work_views shows their ids", text).WithField("view")
	id, err := uuid.Parse(text)
	if err != nil {
		return nil, missing
	}
	v, err := h.Store.ViewByID(ctx, id)
	if err != nil && fault.ClassOf(err) == fault.NotFound {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	if v.Owner != "" && v.Owner != by.Seat && v.Author != by.Name && by.Kind != "operator" && by.Kind != "system" {
		return nil, missing
	}
	return query.Merge(scopeOf(v.Container), v.Params), nil
}

// container answers where views hang, with its name resolved.
func (h *Handler) container(ctx context.Context, o *org.Org, text string) (string, error) {
	kind, name, _ := strings.Cut(strings.TrimSpace(text), ":")
	switch kind {
	case "workspace":
		if name == "" {
			return kind, nil
		}
	case "project":
		if p, ok := o.Project(name); ok {
			return "project:" + p.Key, nil
		}
		f, _ := fault.As(o.NoProject(name))
		return "", f.WithField("container")
	case "unit":
		if u, ok := o.Unit(name); ok {
			return "unit:" + u.ID, nil
		}
		return "", o.NoUnit("container", name)
	case "person":
		handle, err := h.colleague(ctx, o, "container", name)
		return "person:" + handle, err
	}
	return "", store.NoContainer(text)
}

// scopeOf is what a container narrows its views to, unless they say otherwise.
func scopeOf(container string) query.Params {
	switch kind, name, _ := strings.Cut(container, ":"); kind {
	case "project":
		return query.Params{"container": container}
	case "unit":
		return query.Params{"unit": name}
	case "person":
		return query.Params{"assignee": name}
	default:
		return query.Params{"container": "workspace"}
	}
}

func structOf(params query.Params) *structpb.Struct {
	s := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for key, value := range params {
		s.Fields[key] = structpb.NewStringValue(value)
	}
	return s
}
