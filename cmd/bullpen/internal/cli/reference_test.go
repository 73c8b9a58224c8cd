package cli_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/cli/clitest"
)

const configurationPage = "../../../../docs/reference/configuration.md"

func TestThePageOfSettingsIsWhatTheFlagsSay(t *testing.T) {
	t.Parallel()
	page := fine(t, clitest.Run(clitest.Without, "reference", "configuration"))
	if *update {
		require.NoError(t, os.WriteFile(configurationPage, []byte(page), 0o644))
	}
	have, err := os.ReadFile(configurationPage)
	require.NoError(t, err)
	require.Equal(t, string(have), page, "run `make generate` and commit the result")
}
