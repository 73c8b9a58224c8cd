package api

import (
	"context"
	"maps"
	"slices"
	"sync"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// ListTools implements the RPC of that name.
func (h *Handler) ListTools(ctx context.Context, req *toolregistryv1.ListToolsRequest) (*toolregistryv1.ListToolsResponse, error) {
	from, seat, company, err := h.asked(ctx, req.GetSeat(), "tools")
	if err != nil {
		return nil, err
	}
	seen := h.Seats.Surface(ctx, company, seat)
	own := from.GetKind() == rpc.KindSeat || from.GetKind() == rpc.KindService && from.GetId() == turnService
	all := h.lists.of(company, view{seat, own}, seen, func(tool *surface.Tool) bool {
		return own && tool.Change == surface.Held || h.Door.Hides(company, seat, tool)
	})
	if seat == "" {
		all = withSeatServers(all, h.Seats.Seen())
	}
	all = h.withoutLoader(company, all)
	if known := req.GetKnownDigest(); known != "" && known == all.GetDigest() {
		return &toolregistryv1.ListToolsResponse{Digest: known, Unchanged: true}, nil
	}
	return only(all, req.GetSource()), nil
}

// seatOf settles whose catalogue is asked for; empty is the company's.
func seatOf(from *rpc.Principal, asked string) (string, error) {
	if from.GetKind() != rpc.KindSeat {
		return asked, nil
	}
	if from.GetIssuer() != turnService {
		return "", fault.New(fault.Forbidden, "A seat's call is signed by the turn service; this one is signed by %q.", from.GetIssuer())
	}
	if asked != "" && asked != from.GetSeat() {
		return "", fault.New(fault.Forbidden, "A seat sees its own tools; leave `seat` out.").WithField("seat")
	}
	return from.GetSeat(), nil
}

// maxLists bounds the answers that are kept.
const maxLists = 1024

// lists keeps each surface's answer, so that a list costs no conversion until the surface changes. Answers are shared: nobody
// changes one.
type lists struct {
	mu   sync.Mutex
	kept map[view]list
}

// view is whose catalogue is looked at, and whether that is done to use it: what waits for an operator is shown to operators only.
type view struct {
	seat string
	own  bool
}

type list struct {
	company  *companyv1.Company
	surface  *surface.Surface
	response *toolregistryv1.ListToolsResponse
}

func (l *lists) of(
	company *companyv1.Company, from view, seen *surface.Surface, hidden func(*surface.Tool) bool,
) *toolregistryv1.ListToolsResponse {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept, ok := l.kept[from]; ok && kept.surface == seen && kept.company == company {
		return kept.response
	}
	if l.kept == nil || len(l.kept) >= maxLists {
		l.kept = map[view]list{}
	}
	response := surfaceToProto(seen, from.seat, hidden)
	l.kept[from] = list{company, seen, response}
	return response
}

// surfaceToProto answers a list without what the policy hides from the seat; the digest tells two lists apart that differ in it.
func surfaceToProto(seen *surface.Surface, seat string, hidden func(*surface.Tool) bool) *toolregistryv1.ListToolsResponse {
	response := &toolregistryv1.ListToolsResponse{Digest: seen.Digest()}
	for _, tool := range seen.Tools() {
		switch {
		case seat != "" && !slices.Contains(tool.Audiences, catalogue.Seat):
		case hidden(tool):
			response.Digest = surface.Digest(response.GetDigest(), "without "+tool.Name)
		default:
			response.Tools = append(response.Tools, ToolToProto(tool))
		}
	}
	for _, m := range seen.Missing() {
		response.MissingServers = append(response.MissingServers, &toolregistryv1.MissingServer{Server: m.Server, State: m.State, Reason: m.Reason})
	}
	return response
}

// withSeatServers adds what servers of single seats bring, as far as somebody has asked for it already: the company's list shows
// a template's tools once, whoever runs it.
func withSeatServers(all *toolregistryv1.ListToolsResponse, known []*surface.Surface) *toolregistryv1.ListToolsResponse {
	tools, digest := slices.Clone(all.GetTools()), all.GetDigest()
	shown := map[string]bool{}
	for _, seen := range known {
		brings := map[string]bool{}
		for _, tool := range seen.Tools() {
			if tool.Own && !shown[tool.Source] {
				brings[tool.Source] = true
				tools = append(tools, ToolToProto(tool))
				digest = surface.Digest(digest, tool.Digest)
			}
		}
		maps.Copy(shown, brings)
	}
	if len(shown) == 0 {
		return all
	}
	return &toolregistryv1.ListToolsResponse{Tools: tools, Digest: digest, MissingServers: all.GetMissingServers()}
}

// only narrows a list to one source.
func only(all *toolregistryv1.ListToolsResponse, source string) *toolregistryv1.ListToolsResponse {
	if source == "" {
		return all
	}
	some := &toolregistryv1.ListToolsResponse{Digest: all.GetDigest()}
	for _, tool := range all.GetTools() {
		if tool.GetSource() == source {
			some.Tools = append(some.Tools, tool)
		}
	}
	for _, missing := range all.GetMissingServers() {
		if surface.Source(missing.GetServer()) == source {
			some.MissingServers = append(some.MissingServers, missing)
		}
	}
	return some
}
