package mcphost_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What failures.md claims, somebody can run.
func TestEveryFailureNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("failures.md")
	require.NoError(t, err)
	exist := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, found := range declared.FindAllSubmatch(source, -1) {
			exist[string(found[1])] = true
		}
		return err
	}))
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(page, -1)
	require.NotEmpty(t, named)
	for _, name := range named {
		require.True(t, exist[string(name[1])], "failures.md names %s, which is no test of any service", name[1])
	}
}
