package api

import (
	"context"

	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/services/tracker/internal/convert"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// How many projects a list shows, to a seat and to anybody else.
const (
	seatProjects = 50
	allProjects  = 200
)

// ListProjects implements the contract. What does not fit an answer is left off its end, which says so.
func (h *Handler) ListProjects(ctx context.Context, req *trackerv1.ListProjectsRequest) (*trackerv1.ListProjectsResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.notBefore(ctx, req.GetMinPosition()); err != nil {
		return nil, err
	}
	filter := store.ProjectFilter{
		Q: req.GetQ(), Archived: req.GetArchived(), ArchivedOnly: req.GetArchivedOnly(), Sort: orDefault(req.GetSort(), "key"),
	}
	if text := req.GetUnit(); text != "" {
		// A unit that the chart no longer has is found by its id, and one that never was has no projects.
		if u, ok := o.Unit(text); ok {
			text = u.ID
		}
		filter.Unit = &text
	}
	limit := allProjects
	if by.Kind == "agent" {
		limit = seatProjects
	}
	listed, err := h.Store.ListProjects(ctx, filter, limit)
	if err != nil {
		return nil, err
	}
	res := &trackerv1.ListProjectsResponse{Total: listed.Total, Census: &trackerv1.ProjectCensus{Active: listed.Live, Archived: listed.Archived}}
	room := newRoom(res)
	for _, p := range listed.Projects {
		row := convert.Project(p, resolved(o, p.Unit))
		if !room.take(row) {
			break
		}
		res.Projects = append(res.Projects, row)
	}
	res.Truncated = len(res.GetProjects()) < int(listed.Total)
	return res, nil
}

// resolved reports whether the chart still has a unit.
func resolved(o *org.Org, unit string) bool {
	u, ok := o.Unit(unit)
	return ok && u.ID == unit
}

// room is what is left of the size of an answer, for lists that are shown as far as they fit.
type room int

// overhead is what a list costs for each member beside the member itself.
const overhead = 2

func newRoom(res proto.Message) room { return room(maxAnswerBytes - jsonBytes(res)) }

// take reports whether a part fits, and takes what it needs.
func (r *room) take(part proto.Message) bool {
	needs := room(jsonBytes(part) + overhead)
	if needs > *r {
		return false
	}
	*r -= needs
	return true
}
