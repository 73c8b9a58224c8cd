// Package fleet decides which instances of MCP servers run on this node, and finds the one that a call is for.
package fleet

import (
	"context"
	"log/slog"
	"time"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/server"
)

// Options are what a fleet needs.
type Options struct {
	Log *slog.Logger
	Now func() time.Time
}

// Fleet runs instances. Safe for concurrent use.
type Fleet struct {
	options  Options
	declared func() []*companyv1.McpServer
}

// View is a server as a seat sees it.
type View struct {
	Server   string
	Own      bool
	State    server.State
	Reason   string
	Prefix   string
	Surfaces []string
	Tools    []string
	Digest   string
}

// Call is a call of one tool.
type Call struct {
	Server, Tool, Seat, Arguments string
	Timeout                       time.Duration
}

// Result is what the server answered.
type Result struct {
	JSON   string
	Failed bool
}

// New makes a fleet that runs nothing yet.
func New(o Options, declared func() []*companyv1.McpServer) *Fleet {
	return &Fleet{options: o, declared: declared}
}

// Tools answers the declared servers.
func (f *Fleet) Tools(_ context.Context, _, only string, _ time.Duration) []View {
	var views []View
	for _, s := range f.declared() {
		if only == "" || s.GetName() == only {
			views = append(views, View{Server: s.GetName(), Own: !s.GetShared(), State: server.Spawn, Prefix: s.GetToolPrefix(), Surfaces: s.GetSurfaces()})
		}
	}
	return views
}

// Call calls a tool.
func (f *Fleet) Call(_ context.Context, c Call) (Result, error) {
	return Result{}, fault.New(fault.Unavailable, "The MCP server %q has not started.", c.Server)
}

// Release ends a seat's instances.
func (f *Fleet) Release(context.Context, string) (int, error) { return 0, nil }
