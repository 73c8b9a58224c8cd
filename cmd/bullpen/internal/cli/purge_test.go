package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/cli/clitest"
)

func TestAnItemIsDestroyedOnlyByWhoTypesItsKeyAgain(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	filed := decode(t, fine(t, i.Run("call", "create_work_item", "--args", `{"title":"A passport number in a title","project":"OPS"}`, "--json")))
	text, ok := filed["result_json"].(string)
	require.True(t, ok, filed)
	key, ok := decode(t, text)["key"].(string)
	require.True(t, ok, text)
	require.Contains(t, failed(t, i.Run("purge", key)), "reason")
	for typed, said := range map[string]string{"": "nothing was destroyed", "OPS-9999\n": "confirm_key must be " + key} {
		r := clitest.Fed(typed, i.Getenv, "purge", key, "--reason", "personal data")
		require.Equal(t, 1, r.Code)
		require.Contains(t, r.Err, said)
	}
	require.Contains(t, fine(t, clitest.Fed(key+"\n", i.Getenv, "purge", key, "--reason", "personal data")), key+" is destroyed; 0 subtasks moved up.")
	require.Contains(t, failed(t, i.Run("purge", key, "--reason", "personal data", "--confirm", key)), "no work item")
}
