package main

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// A fixture is a small repository. Its comment names the law it breaks, its file "want" the findings.
func TestEachLawFindsWhatBreaksItAndNothingElse(t *testing.T) {
	t.Parallel()
	l := readLaws(t)
	var unbroken []string
	for _, one := range l.all() {
		unbroken = append(unbroken, one.Rule)
	}

	fixtures, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	for _, name := range fixtures {
		archive, err := txtar.ParseFile(name)
		require.NoError(t, err)
		rule := strings.TrimSpace(string(archive.Comment))
		unbroken = slices.DeleteFunc(unbroken, func(r string) bool { return r == rule })

		findings, err := l.check(treeOf(t, archive))
		require.NoError(t, err, name)
		got := []string{}
		for _, f := range findings {
			require.Equal(t, rule, f.rule, "%s: %s: %s", name, f.where, f.what)
			got = append(got, f.where+": "+f.what)
		}
		require.Equal(t, want(archive), got, name)
	}
	require.Empty(t, unbroken, "laws without a fixture that breaks them")
}

func TestLawsRefuseWhatTheyDoNotUnderstand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"an unknown key":             {"module: m\nimports: [{rule: r, note: n, forbid: [x]}]", "forbid"},
		"a law without a note":       {"module: m\nfolders: [{rule: r, deny: [x]}]", "both rule and note"},
		"no module":                  {"folders: []", "module is empty"},
		"a word that is no pattern":  {"module: m\nwords: [{rule: r, note: n, deny: ['(']}]", "missing closing"},
		"something other than a map": {"- a", "map"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseLaws([]byte(test.text))
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestPatternsMatchPaths(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, path string
		bound         bindings
		ok            bool
	}{
		{"libs/pg", "libs/pg", nil, true},
		{"libs/pg", "libs/pg/x", nil, false},
		{"libs/...", "libs", nil, true},
		{"libs/...", "libs/a/b", nil, true},
		{"libs/.../*test", "libs/pgtest", nil, true},
		{"libs/.../*test", "libs/bus/bustest", nil, true},
		{"libs/.../*test", "libs/bus/bustest/x", nil, false},
		{"services/<svc>/...", "services/turn/internal/x", bindings{"svc": "turn"}, true},
		{"services/<svc>/...", "services/turn/internal/x", bindings{"svc": "tracker"}, false},
		{"<a>/<b>/<a>", "x/y/x", bindings{"a": "x", "b": "y"}, true},
		{"<a>/<b>/<a>", "x/y/z", nil, false},
		{"a/{b,c*}/d", "a/b/d", nil, true},
		{"a/{b,c*}/d", "a/cc/d", nil, true},
		{"a/{b,c*}/d", "a/d/d", nil, false},
		{"...", "anything/at/all.go", nil, true},
	} {
		_, ok := match(test.pattern, test.path, test.bound)
		require.Equal(t, test.ok, ok, "%s on %s", test.pattern, test.path)
	}
}

func TestTheTreeIsWhatGitWouldCommit(t *testing.T) {
	t.Parallel()
	files, err := committedFiles(t.Context(), "../..")
	require.NoError(t, err)
	require.Contains(t, files, "tools/depcheck/rules.yaml")
	for _, name := range files {
		require.False(t, strings.HasPrefix(name, "bin/"), "%s is ignored by git", name)
	}
}

func readLaws(t *testing.T) *laws {
	t.Helper()
	text, err := os.ReadFile("rules.yaml")
	require.NoError(t, err)
	l, err := parseLaws(text)
	require.NoError(t, err)
	return l
}

func treeOf(t *testing.T, archive *txtar.Archive) tree {
	t.Helper()
	fsys, err := txtar.FS(archive)
	require.NoError(t, err)
	out := tree{fsys: fsys, module: "github.com/bullpenhq/bullpen"}
	for _, file := range archive.Files {
		if file.Name != "want" {
			out.files = append(out.files, file.Name)
		}
	}
	return out
}

func want(archive *txtar.Archive) []string {
	lines := []string{}
	for _, file := range archive.Files {
		if file.Name != "want" {
			continue
		}
		for scan := bufio.NewScanner(strings.NewReader(string(file.Data))); scan.Scan(); {
			lines = append(lines, scan.Text())
		}
	}
	return lines
}
