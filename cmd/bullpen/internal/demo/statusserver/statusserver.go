// Package statusserver is a small MCP server that knows whether the services of a pretended shop are up. The demo's company
// declares it like any other stdio server: it is started as a child process and spoken to over its standard streams.
//
// What it reports is fixed, so that the demo tells the same story every time. Everything else about it is real: the protocol is
// the official SDK's.
package statusserver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// report is what the server says of one service.
type report struct {
	Service string `json:"service" jsonschema:"the service's name"`
	State   string `json:"state" jsonschema:"up, degraded or down"`
	Since   string `json:"since" jsonschema:"when it entered the state"`
	Detail  string `json:"detail" jsonschema:"what is known about it"`
}

// question names a service.
type question struct {
	Service string `json:"service" jsonschema:"the service's name, such as checkout"`
}

// Run serves on the standard streams until the client closes them or ctx ends.
func Run(ctx context.Context, version string) error {
	return New(version).Run(ctx, &mcp.StdioTransport{})
}

// New makes the server with its one tool.
func New(version string) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "status", Title: "Shop status", Version: version}, nil)
	closed := false
	mcp.AddTool(server, &mcp.Tool{
		Name:        "service_status",
		Title:       "Status of a service",
		Description: "Says whether one of the shop's services is up, since when, and what is known about it.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed},
	}, answer)
	return server
}

func answer(_ context.Context, _ *mcp.CallToolRequest, q question) (*mcp.CallToolResult, report, error) {
	i := slices.IndexFunc(reports(), func(r report) bool { return r.Service == q.Service })
	if i < 0 {
		names := make([]string, 0, len(reports()))
		for _, r := range reports() {
			names = append(names, r.Service)
		}
		return nil, report{}, fmt.Errorf("no service is called %q; there are %s", q.Service, strings.Join(names, ", "))
	}
	return nil, reports()[i], nil
}

func reports() []report {
	return []report{
		{Service: "catalogue", State: "up", Since: "2026-11-02T08:00:00Z", Detail: "no incident this month"},
		{Service: "checkout", State: "degraded", Since: "2026-11-30T11:58:00Z", Detail: "one request in five answers 500 since release 4.12"},
		{Service: "search", State: "up", Since: "2026-11-21T19:30:00Z", Detail: "index rebuilt nine days ago"},
	}
}
