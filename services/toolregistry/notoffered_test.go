package toolregistry_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

func TestWhatATurnWasNotGivenIsRefusedForTheReasonThatHolds(t *testing.T) {
	t.Parallel()
	w := build(t, options{bus: true, company: ruled("allow",
		&companyv1.ToolRule{Name: "no comments", Effect: "deny", Tools: []string{"gh_comment"}, Reason: "Ask ines."},
	)}).obliging()
	w.neighbours.call = func(context.Context, *mcphostv1.CallServerToolRequest) (*mcphostv1.CallServerToolResponse, error) {
		t.Error("a tool was run")
		return &mcphostv1.CallServerToolResponse{ResultJson: `{"content":[]}`}, nil
	}
	refused := func(tool string) *fault.Error {
		t.Helper()
		_, err := w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{Tool: tool, ArgumentsJson: `{"id":1}`, CallId: "c-" + tool, NotOffered: true})
		return refusal(t, err)
	}
	denied := refused("gh_comment")
	require.Equal(t, []string{"forbidden", "DENIED_BY_POLICY", "no comments"}, []string{string(denied.Class), denied.Reason, denied.Facts["rule"]})
	late := refused("gh_get")
	require.Equal(t, []string{"forbidden", "NOT_OFFERED"}, []string{string(late.Class), late.Reason})
	require.Contains(t, late.Message, "from the next turn on")
	require.Equal(t, fault.NotFound, refused("gh_gett").Class)

	require.Eventually(t, func() bool {
		kept := map[string]string{}
		for _, c := range calls(t, w, &toolregistryv1.ListCallsRequest{Seat: "ada"}).GetCalls() {
			kept[c.GetTool()] = c.GetStatus() + " " + c.GetRefusalClass() + " " + c.GetRule()
		}
		return kept["gh_comment"] == "refused forbidden no comments" && kept["gh_get"] == "refused forbidden " && kept["gh_gett"] == "refused not_found "
	}, 30*time.Second, 10*time.Millisecond)
}
