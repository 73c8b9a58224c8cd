package toolregistry_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
)

func TestAToolsOwnTimeLimitComesBeforeItsServers(t *testing.T) {
	t.Parallel()
	company := companyOf()
	company.McpServers[0].ToolTimeoutSeconds = map[string]int32{"search": 900}
	company.McpServers[1].ToolTimeoutSeconds = map[string]int32{"get": 3, "gh_comment": 5}
	w := build(t, options{still: true, company: company})
	w.neighbours.bring("ada", brought())
	var limit time.Duration
	w.neighbours.call = func(_ context.Context, req *mcphostv1.CallServerToolRequest) (*mcphostv1.CallServerToolResponse, error) {
		limit = req.GetTimeout().AsDuration()
		return &mcphostv1.CallServerToolResponse{ResultJson: `{"content":[]}`}, nil
	}
	for tool, want := range map[string]time.Duration{
		"search": 900 * time.Second, "gh_get": 3 * time.Second, "gh_comment": 5 * time.Second,
	} {
		_, err := call(t, w, tool, ``)
		require.NoError(t, err, tool)
		require.Equal(t, want, limit, tool)
	}
}
