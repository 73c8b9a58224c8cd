package toolregistry_test

import (
	"context"
	"strings"
	"testing"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1/mcphostv1connect"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1/trackerv1connect"
)

// BenchmarkCall measures a call through the door beside its floor, the same call made directly to whoever runs the tool, in the
// same run: what counts is the difference.
func BenchmarkCall(b *testing.B) {
	for name, http := range map[string]bool{"in process": false, "over HTTP": true} {
		w := build(b, options{http: http, bus: true})
		w.neighbours.create = func(context.Context, *trackerv1.CreateWorkItemRequest) (*trackerv1.CreateWorkItemResponse, error) {
			return &trackerv1.CreateWorkItemResponse{Outcome: "applied", Position: "tracker@1:1", Key: "OPS-1"}, nil
		}
		w.neighbours.bring("ada", brought())
		result := `{"content":[{"type":"text","text":"` + strings.Repeat("The certificate ends on Friday. ", 25) + `"}]}`
		w.neighbours.call = func(context.Context, *mcphostv1.CallServerToolRequest) (*mcphostv1.CallServerToolResponse, error) {
			return &mcphostv1.CallServerToolResponse{ResultJson: result}, nil
		}
		tracker := trackerv1connect.NewTrackerServiceClient(w.client("tracker"))
		host := mcphostv1connect.NewMcpHostServiceClient(w.client("mcphost"))
		for _, c := range []struct {
			name string
			call func(ctx context.Context) error
		}{
			{"builtin, floor", func(ctx context.Context) error {
				_, err := tracker.CreateWorkItem(ctx, &trackerv1.CreateWorkItemRequest{Title: "x", Project: "OPS"})
				return err
			}},
			{"builtin, door", func(ctx context.Context) error {
				_, err := w.turn.CallTool(ctx, &toolregistryv1.CallToolRequest{
					Tool: "create_work_item", ArgumentsJson: `{"title":"x","project":"OPS"}`, CallId: "c", OperationId: "op",
				})
				return err
			}},
			{"mcp, floor", func(ctx context.Context) error {
				_, err := host.CallServerTool(ctx, &mcphostv1.CallServerToolRequest{Server: "gh", Tool: "get", ArgumentsJson: `{"id":1}`, Seat: "ada"})
				return err
			}},
			{"mcp, door", func(ctx context.Context) error {
				_, err := w.turn.CallTool(ctx, &toolregistryv1.CallToolRequest{Tool: "gh_get", ArgumentsJson: `{"id":1}`, CallId: "c"})
				return err
			}},
			{"list, from cache", func(ctx context.Context) error {
				_, err := w.turn.ListTools(ctx, &toolregistryv1.ListToolsRequest{})
				return err
			}},
		} {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				ctx := asSeat(b.Context())
				for b.Loop() {
					if err := c.call(ctx); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		w.stop()
	}
}
