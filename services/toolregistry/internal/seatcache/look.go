package seatcache

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/sighting"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// look asks mcphost what servers bring, and judges definitions where there is something new to judge.
func (c *Cache) look(ctx context.Context, company *companyv1.Company, seat string, seen bool, was basis) (now basis, believed time.Duration, err error) {
	now = basis{revision: company.GetRevisionId()}
	if len(company.GetMcpServers()) == 0 {
		return now, settledFor, nil
	}
	request := &mcphostv1.ListServerToolsRequest{Seat: seat}
	if now.revision == was.revision {
		request.KnownDigest = was.digest
	}
	if !seen {
		request.Wait = durationpb.New(startWait)
	}
	answer, err := c.options.Host.ListServerTools(ctx, request)
	if err != nil {
		return now, 0, errHost{err}
	}
	if now.acceptances, err = c.options.Memory.Acceptances(ctx); err != nil {
		return now, 0, err
	}
	now.digest = answer.GetDigest()
	same := request.GetKnownDigest() != "" && now.digest == request.GetKnownDigest()
	if same {
		now.servers = slices.Clone(was.servers)
	} else {
		now.servers = c.read(company, answer)
	}
	if same && now.acceptances == was.acceptances {
		return now, believedFor(now.servers), nil
	}
	err = c.judge(ctx, company, seat, now.servers)
	if err == nil {
		c.tell(ctx, seat, was.servers, now.servers)
	}
	return now, believedFor(now.servers), err
}

// tell says once which tools are no longer what they were.
func (c *Cache) tell(ctx context.Context, seat string, was, now []surface.Server) {
	told := map[string]bool{}
	for _, server := range was {
		for digest := range server.Changed {
			told[server.Name+" "+digest] = true
		}
	}
	for _, server := range now {
		for _, d := range server.Tools {
			if server.Changed[d.Digest] && !told[server.Name+" "+d.Digest] {
				c.options.Log.WarnContext(ctx, "tool_definition_changed", "server", server.Name, "tool", d.Raw, "seat", seat, "digest", d.Digest, "held", server.Hold)
			}
		}
	}
}

// judge marks the definitions that are not known.
func (c *Cache) judge(ctx context.Context, company *companyv1.Company, seat string, servers []surface.Server) error {
	var listings []sighting.Listing
	instance := func(server surface.Server) string {
		if server.Own {
			return seat
		}
		return ""
	}
	for _, server := range servers {
		if server.State != surface.Ready {
			continue
		}
		listing := sighting.Listing{Server: server.Name, Seat: instance(server)}
		for _, d := range server.Tools {
			if d.Raw != "" {
				listing.Tools = append(listing.Tools, sighting.Tool{Name: d.Raw, Digest: d.Digest, Definition: d.Reviewed})
			}
		}
		listings = append(listings, listing)
	}
	changed, err := c.options.Memory.JudgeTools(ctx, listings)
	if err != nil {
		return err
	}
	for i := range servers {
		servers[i].Changed, servers[i].Hold = map[string]bool{}, company.GetToolPolicy().GetHoldChangedTools()
	}
	for entry := range changed {
		for i := range servers {
			if servers[i].Name == entry.Server && instance(servers[i]) == entry.Seat {
				servers[i].Changed[entry.Digest] = true
			}
		}
	}
	return nil
}

// believedFor answers how long what servers bring is taken for what they bring.
func believedFor(servers []surface.Server) time.Duration {
	for _, server := range servers {
		switch server.State {
		case "spawn", "initialise", "shutdown":
			return startingFor
		}
	}
	return settledFor
}

// read joins what mcphost says of each server with the operator's word on its tools.
func (c *Cache) read(company *companyv1.Company, answer *mcphostv1.ListServerToolsResponse) []surface.Server {
	overrides := map[string]map[string]surface.Hints{}
	for _, declared := range company.GetMcpServers() {
		overrides[declared.GetName()] = hintsOf(declared)
	}
	var servers []surface.Server
	for _, s := range answer.GetServers() {
		servers = append(servers, surface.Server{
			Name: s.GetServer(), Own: s.GetOwn(), State: s.GetState(), Reason: s.GetReason(), Prefix: s.GetToolPrefix(),
			Surfaces: s.GetSurfaces(), Tools: c.reader.Read(s.GetToolsJson()), Overrides: overrides[s.GetServer()],
		})
	}
	return servers
}

func hintsOf(server *companyv1.McpServer) map[string]surface.Hints {
	hints := map[string]surface.Hints{}
	for name, a := range server.GetToolAnnotations() {
		hints[name] = surface.Hints{ReadOnly: a.ReadOnly, Destructive: a.Destructive, Idempotent: a.Idempotent, OpenWorld: a.OpenWorld}
	}
	return hints
}

// errHost is a look that failed at mcphost.
type errHost struct{ error }

// Unwrap answers what mcphost said.
func (e errHost) Unwrap() error { return e.error }

// unreachable answers every server as missing. Tools that cannot be judged are not shown: one of them may have to be held.
func unreachable(company *companyv1.Company, err error) []surface.Server {
	reason := "whether its tools have changed cannot be looked up now"
	if _, atHost := errors.AsType[errHost](err); atHost {
		reason = "the service that runs MCP servers cannot be reached"
	}
	var servers []surface.Server
	for _, declared := range company.GetMcpServers() {
		servers = append(servers, surface.Server{Name: declared.GetName(), State: "not_reported", Reason: reason})
	}
	return servers
}
