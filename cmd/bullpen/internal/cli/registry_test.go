package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/cli/clitest"
)

func TestServersShowHowTheyDoOnEachNode(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	all := await(t, i.Run, func(r clitest.Result) bool { return strings.Contains(r.Out, "Running") }, "servers")
	require.Regexp(t, `(?m)^  on \S+ +ready +1 of 1`, all)
	require.NotEmpty(t, decode(t, fine(t, i.Run("servers", "--json")))["servers"])
}

func TestTheAuditIsSearchedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	fine(t, i.Run("call", "create_work_item", "--args", `{"title":"Polish the brass of the lighthouse","project":"OPS"}`))
	found := decode(t, fine(t, i.Run("calls", "--text", "BRASS of the", "--source", "builtin", "--since", "1h", "--json")))
	calls, ok := found["calls"].([]any)
	require.True(t, ok)
	require.Len(t, calls, 1)
	one, ok := calls[0].(map[string]any)
	require.True(t, ok)
	id, ok := one["audit_id"].(string)
	require.True(t, ok)
	require.Contains(t, fine(t, i.Run("calls", "list", "--text", "brass of the", "--limit", "1")), id)
	shown := fine(t, i.Run("calls", "show", id))
	require.Contains(t, shown, `{"title":"Polish the brass of the lighthouse","project":"OPS"}`)
	require.Contains(t, shown, "status     ok")
	require.Contains(t, fine(t, i.Run("calls", "--text", "nobody ever wrote this")), "No such calls.")
	require.Contains(t, failed(t, i.Run("calls", "show", "01890a5d-ac96-774b-bcce-b302099a8057")), "no call")
	r := i.Run("calls", "--since", "yesterday")
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Err, "such as 24h")
}

func TestNothingChangedIsSaid(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	require.Contains(t, fine(t, i.Run("tools", "changes")), "No tool differs")
	require.Contains(t, failed(t, i.Run("tools", "accept", "status", "service_status")), "no such changed tool")
	require.Equal(t, 2, i.Run("tools", "accept", "status").Code)
}
