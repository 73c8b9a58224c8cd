package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/cli/clitest"
)

func TestAPolicyIsExplainedAndTriedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	out := fine(t, i.Run("policy", "explain", "ops-lead", "create_work_item"))
	require.Contains(t, out, "allow: `ops-lead` may call `create_work_item`")
	require.Contains(t, out, "The seat's list shows it.")
	require.Equal(t, "allow", decode(t, fine(t, i.Run("policy", "explain", "ops-lead", "reply", "--json")))["decision"])
	require.Contains(t, fine(t, i.Run("policy", "explain", "ops-lead", "replly")), "refused: There is no tool `replly`. Did you mean `reply`?")
	require.Contains(t, failed(t, i.Run("policy", "explain", "nobody", "reply")), "no seat `nobody`")
	require.Equal(t, 2, i.Run("policy", "explain", "ops-lead").Code)

	other := write(t, "otherwise: deny\nrules:\n  - {name: reads, effect: allow, when: tool.read_only == true}\n")
	require.Contains(t, fine(t, i.Run("policy", "simulate", other, "--since", "24h")), "looked at:")
	require.Contains(t, decode(t, fine(t, i.Run("policy", "simulate", other, "--json"))), "decisions")
	document := write(t, "name: Lantern\nroles:\n  - name: Ops Lead\ntool_policy:\n  otherwise: deny\n  # ours\nunits: []\n")
	require.Contains(t, fine(t, i.Run("policy", "simulate", document)), "looked at:")
	document = write(t, "name: Lantern\ntool_policy:\n  otherwise: never\n  rule: []\n")
	require.Contains(t, failed(t, i.Run("policy", "simulate", document)), "line 4: unknown field", "lines are those of the document")
	wrong := write(t, "rules:\n  - {name: reads, effect: allow, when: tool.reads}\n")
	require.Contains(t, failed(t, i.Run("policy", "simulate", wrong)), "rules[0].when line 1, column 1 of the condition: `tool` has no `reads`")
}

func TestWithoutAQuestionNothingWaitsForAPerson(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	require.Equal(t, "Nothing waits for a person.\n", fine(t, i.Run("approvals")))
	require.Equal(t, "No approvals.\n", fine(t, i.Run("approvals", "list", "--state", "")))
	require.Empty(t, decode(t, fine(t, i.Run("approvals", "--json")))["approvals"])
	for _, verb := range []string{"show", "approve", "deny", "cancel"} {
		require.Contains(t, failed(t, i.Run("approvals", verb, "0190")), `there is no approval "0190"`)
	}
	require.Contains(t, failed(t, i.Run("approvals", "--state", "odd")), "`state`")
}
