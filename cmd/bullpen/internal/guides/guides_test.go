// Package guides_test runs what the guides tell people to run, against a running installation, and looks at what comes of it.
//
// A block below `<!-- run: NAME -->` is run as it stands; NAME says here what it must print. What a page's blocks leave behind is
// there for its later ones, as it is for a reader who follows the page.
package guides_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/cli/clitest"
)

const (
	// root is the repository's, seen from this package.
	root = "../../../.."
	// patience bounds one block; a first `go run` compiles.
	patience = 2 * time.Minute
)

func TestMain(m *testing.M) { clitest.Main(m) }

// block is something to run.
type block struct{ name, language, text string }

var marked = regexp.MustCompile("(?ms)^<!-- run: ([a-z-]+) -->\n```([a-z]+)\n(.*?)^```$")

// pages answers every page that tells people what to run.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "docs", "guides", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	// Others look at the numbers of what they file first, so the page that brings in what was filed elsewhere goes last.
	last := filepath.Join(root, "docs", "guides", "import.md")
	require.Contains(t, found, last)
	found = slices.DeleteFunc(found, func(page string) bool { return page == last })
	return append(found, filepath.Join(root, "README.md"), last)
}

func blocks(t *testing.T, page string) []block {
	t.Helper()
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	var found []block
	for _, match := range marked.FindAllStringSubmatch(string(raw), -1) {
		found = append(found, block{name: match[1], language: match[2], text: match[3]})
	}
	require.Len(t, found, strings.Count(string(raw), "<!-- run:"), "%s has a mark that no block follows", page)
	return found
}

func TestWhatTheGuidesTellPeopleToRunWorks(t *testing.T) {
	t.Parallel()
	wanted := expectations()
	for _, page := range pages(t) {
		reader := newReader(t)
		for _, b := range blocks(t, page) {
			t.Run(filepath.Base(page)+"/"+b.name, func(t *testing.T) {
				require.Contains(t, wanted, b.name, "nobody says what it must print")
				wanted[b.name](t, reader, reader.run(t, b))
			})
		}
	}
}

func TestEveryExpectationIsAboutABlockThatIsThere(t *testing.T) {
	t.Parallel()
	var there []string
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			require.NotContains(t, there, b.name, "two blocks have one name")
			there = append(there, b.name)
		}
	}
	for name := range expectations() {
		require.Contains(t, there, name)
	}
}

func TestCommandsThatNeedDockerAreCommandsThatThereAre(t *testing.T) {
	t.Parallel()
	var checked int
	for _, page := range pages(t) {
		raw, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, line := range regexp.MustCompile(`(?m)^docker compose run --rm cli (.*)$`).FindAllStringSubmatch(string(raw), -1) {
			r := clitest.Run(clitest.Without, append(strings.Fields(line[1]), "--help")...)
			require.Zero(t, r.Code, "%s: %s%s", page, line[0], r.Err)
			require.NotContains(t, r.Out, "Available Commands:\n  bench", "%s: %s is no command", page, line[1])
			checked++
		}
	}
	require.Positive(t, checked)
}

// reader is somebody who follows a page in a checkout, beside a running installation.
type reader struct {
	installation *clitest.Installation
	programs     string
	token        string
}

// newReader gives the reader a `bullpen` on the PATH, which is this test binary, and the repository's own tools.
func newReader(t *testing.T) *reader {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	programs := t.TempDir()
	require.NoError(t, os.Symlink(executable, filepath.Join(programs, "bullpen")))
	return &reader{installation: clitest.Shared(t), programs: programs}
}

func (r *reader) run(t *testing.T, b block) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var command *exec.Cmd
	switch b.language {
	case "sh":
		needProgram(t, b)
		command = exec.CommandContext(ctx, "sh", "-eu", "-c", b.text)
		command.Dir = root
	case "go":
		file := filepath.Join(t.TempDir(), "main.go")
		require.NoError(t, os.WriteFile(file, []byte(b.text), 0o600))
		command = exec.CommandContext(ctx, "go", "run", file)
		// The contracts' module, on its own, is all of ours that the program may need.
		command.Dir = filepath.Join(root, "gen")
		command.Env = []string{"GOWORK=off"}
	default:
		require.Fail(t, "nobody knows how to run it", b.language)
	}
	command.Env = append(append(os.Environ(), command.Env...),
		"PATH="+strings.Join([]string{r.programs, tools(t), os.Getenv("PATH")}, string(os.PathListSeparator)),
		"BULLPEN_DATA="+r.installation.Data, "BULLPEN_URL="+r.installation.URL, "BULLPEN_TOKEN="+r.token)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	require.NoError(t, command.Run(), "%s%s", out.String(), errs.String())
	return out.String()
}

// tools is the folder that `make tools` builds into.
func tools(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	return filepath.Join(cache, "bullpen", "bin")
}

// needProgram skips a block whose program this machine does not have. In CI, which has them, that is a failure.
func needProgram(t *testing.T, b block) {
	t.Helper()
	for _, name := range []string{"curl", "buf", "jq"} {
		if !regexp.MustCompile(`(?m)^\s*` + name + ` `).MatchString(b.text) {
			continue
		}
		_, err := exec.LookPath(name)
		if err != nil {
			_, err = os.Stat(filepath.Join(tools(t), name))
		}
		switch {
		case err == nil:
		case os.Getenv("BULLPEN_TEST_REQUIRE") == "1":
			require.Fail(t, fmt.Sprintf("BULLPEN_TEST_REQUIRE=1 and %s is not installed", name))
		default:
			t.Skipf("%s is not installed", name)
		}
	}
}
