package api

import (
	"context"
	"slices"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/convert"
	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
	"github.com/bullpenhq/bullpen/services/tracker/internal/worktype"
)

// GetWorkCatalogue implements the contract.
func (h *Handler) GetWorkCatalogue(ctx context.Context, req *trackerv1.GetWorkCatalogueRequest) (*trackerv1.GetWorkCatalogueResponse, error) {
	_, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.notBefore(ctx, req.GetMinPosition()); err != nil {
		return nil, err
	}
	w, err := h.Store.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	res := &trackerv1.GetWorkCatalogueResponse{PolicyVersion: w.Version(), TypesVersion: w.TypesVersion, FieldsVersion: w.FieldsVersion}
	for _, t := range worktype.Effective(w.Declared) {
		if req.GetArchived() || !t.Archived {
			res.Types = append(res.Types, convert.Type(t))
		}
	}
	for _, d := range w.Fields {
		wanted := len(req.GetFields()) == 0 || slices.Contains(req.GetFields(), d.Slug) || slices.Contains(req.GetFields(), d.ID)
		if wanted && (req.GetArchived() || !d.Archived) && (by.Kind != "agent" || !d.HideFromAgents) {
			res.Fields = append(res.Fields, convert.Declaration(d))
		}
	}
	return res, fits(res, "name some of the fields in `fields`, by slug or id")
}

// WriteWorkCatalogue implements the contract.
func (h *Handler) WriteWorkCatalogue(ctx context.Context, req *trackerv1.WriteWorkCatalogueRequest) (*trackerv1.WriteWorkCatalogueResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	if !by.Person() {
		return nil, fault.New(fault.Forbidden, "only a person may change what all projects' work is made of; write_project declares fields for one project")
	}
	edit := store.CatalogueEdit{Act: store.Act{By: by, At: h.now(), Org: o}}
	if len(req.GetTypes()) > 0 || slices.Contains(req.GetClear(), "types") {
		types := convert.TypesFromProto(req.GetTypes())
		edit.Types = &types
	}
	if edit.Fields, err = declarations(req.GetFields(), req.GetClear()); err != nil {
		return nil, err
	}
	if edit.Types != nil && len(*edit.Types) > 0 && slices.Contains(req.GetClear(), "types") {
		return nil, fault.New(fault.Invalid, "give types or name it in clear, not both").WithField("clear")
	}
	res := &trackerv1.WriteWorkCatalogueResponse{}
	err = h.Store.UpdateWorkspace(ctx, operation(ctx, "write_work_catalogue", req), res, edit, func(w store.Workspace, at ops.Position) {
		res.Outcome, res.Version = settled(at), w.Version()
		if at != (ops.Position{}) {
			res.Position = at.String()
		}
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// declarations answers a list of fields that takes the place of another one, nil when none was given.
func declarations(fields []*trackerv1.FieldDeclaration, clear []string) (*[]field.Declaration, error) {
	cleared := slices.Contains(clear, "fields")
	if cleared && len(fields) > 0 {
		return nil, fault.New(fault.Invalid, "give fields or name it in clear, not both").WithField("clear")
	}
	if !cleared && len(fields) == 0 {
		return nil, nil
	}
	declared := convert.DeclarationsFromProto(fields)
	return &declared, nil
}

// settled is the outcome of a write that no search shows, and that therefore waits for none.
func settled(at ops.Position) string {
	if at == (ops.Position{}) {
		return unchanged
	}
	return applied
}
