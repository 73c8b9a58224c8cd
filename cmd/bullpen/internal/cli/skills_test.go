package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/cli/clitest"
)

func TestToolSkillsAreListedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	require.Contains(t, fine(t, i.Run("tools", "skills")), "No tool skill is in force.")
	require.Empty(t, decode(t, fine(t, i.Run("tools", "skills", "--json")))["skills"])
}

func TestAnMCPServerIsConfiguredFromTheCommandLine(t *testing.T) {
	t.Parallel()
	i := clitest.Shared(t)
	shown := decode(t, fine(t, i.Run("servers", "show", "status")))
	require.Equal(t, "status", shown["name"])
	require.Contains(t, failed(t, i.Run("servers", "show", "nobody")), "no server `nobody`")

	file := func(entry string) string {
		path := filepath.Join(t.TempDir(), "server.json")
		require.NoError(t, os.WriteFile(path, []byte(entry), 0o600))
		return path
	}
	require.Contains(t, fine(t, i.Run("servers", "put", "search", "--create", "--dry-run", "--file", file(`{"command": "search-mcp"}`))), "nothing was stored")
	wrong := i.Run("servers", "put", "search", "--create", "--dry-run", "--file", file(`{"comand": "search-mcp"}`))
	require.Equal(t, 1, wrong.Code)
	require.Contains(t, wrong.Out, "did you mean `command`?")
	require.Contains(t, failed(t, i.Run("servers", "put", "search", "--create", "--file", file(`{"command": "search-mcp"}`))), "`summary` is required")
	require.Contains(t, failed(t, i.Run("servers", "put", "nobody", "--summary", "x", "--file", file(`{"command": "x"}`))), "no server `nobody`")
	require.Equal(t, 2, i.Run("servers", "put", "search").Code, "the file is missing")
}
