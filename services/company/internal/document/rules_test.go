package document_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/company/internal/document"
)

var update = flag.Bool("update", false, "write what is found into the files of rules, to be read before it is committed")

// testdata/rules holds documents, each with the problems it must have. A case begins with "=== what it shows"; the lines
// after "!!!" are its problems, as line:column, path, kind in brackets and sentence. A case without problems is accepted.
func TestEachRuleSaysItsSentence(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/rules/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var written strings.Builder
		for _, section := range strings.Split(string(text), "=== ")[1:] {
			name, rest, _ := strings.Cut(section, "\n")
			yaml, want, _ := strings.Cut(rest, "\n!!!\n")
			got := problemsOf(yaml)
			fmt.Fprintf(&written, "=== %s\n%s\n!!!\n%s\n", name, yaml, got)
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+name, func(t *testing.T) {
				t.Parallel()
				if !*update {
					require.Equal(t, strings.TrimSpace(want), strings.TrimSpace(got))
				}
			})
		}
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(written.String()), 0o644))
		}
	}
}

func problemsOf(text string) string {
	company, problems := document.Parse(text)
	if (company == nil) == (len(problems) == 0) {
		return "a company and problems, or neither"
	}
	var b strings.Builder
	for _, p := range problems {
		fmt.Fprintf(&b, "%s [%s]\n", p, p.Kind)
	}
	return b.String()
}
