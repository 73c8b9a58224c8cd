package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/cli/clitest"
	"github.com/bullpenhq/bullpen/libs/pgtest"
)

// example is the company document that newcomers copy.
const example = "../../../../deploy/company.example.yaml"

// mistaken has an unknown key, a seat that reports to nobody there is, a handle twice, and a model that is not declared.
const mistaken = `name: Tidewater Ltd
colour: blue
roles:
  - {name: Ada Reis, kind: human, contact: {github_login: ada}, manages: [Nobody]}
units:
  - name: Operations
    roles:
      - {name: First, handle: same, llm: missing}
      - {name: Second, handle: same}
`

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "company.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestAGoodDocumentIsFine(t *testing.T) {
	t.Parallel()
	require.Equal(t, example+" is fine.\n", fine(t, clitest.Run(clitest.Without, "check", example)))
	require.Empty(t, decode(t, fine(t, clitest.Run(clitest.Without, "check", "--json", example)))["problems"])
}

func TestAMistakeThatIsInNoBlockIsReportedWithoutAnEmptyPath(t *testing.T) {
	t.Parallel()
	path := write(t, "name: Tidewater Ltd\nroles:\n\t- {name: First}\n")
	r := clitest.Run(clitest.Without, "check", path)
	failed(t, r)
	require.Equal(t, path+":3:1: a tab cannot indent YAML; use spaces\n", r.Out)
}

func TestEveryMistakeOfADocumentIsReportedWhereItStands(t *testing.T) {
	t.Parallel()
	path := write(t, mistaken)
	r := clitest.Run(clitest.Without, "check", path)
	require.Equal(t, fmt.Sprintf("bullpen: %s has 4 problems\n", path), failed(t, r))
	for _, line := range []string{
		`2:\d+: .*colour`, `4:\d+: .*Nobody`, `8:\d+: .*missing`, `9:\d+: .*same`,
	} {
		require.Regexp(t, `(?m)^`+regexp.QuoteMeta(path)+`:`+line, r.Out)
	}

	r = clitest.Run(clitest.Without, "check", path, "--json")
	failed(t, r)
	problems := decode(t, r.Out)["problems"].([]any)
	require.Len(t, problems, 4)
	for _, problem := range problems {
		p := problem.(map[string]any)
		require.NotZero(t, p["line"])
		require.NotZero(t, p["column"])
		require.NotEmpty(t, p["path"])
		require.NotEmpty(t, p["message"])
	}
}

func TestADocumentThatIsNotThereIsSaidByItsName(t *testing.T) {
	t.Parallel()
	require.Contains(t, failed(t, clitest.Run(clitest.Without, "check", "nowhere.yaml")), "nowhere.yaml")
}

func TestMigrateBringsEverySchemaUpToDateAndMayRunAgain(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	env := func(name string) string { return map[string]string{"BULLPEN_DATABASE_URL": dsn}[name] }
	require.Equal(t, "7 schemas are up to date.\n", fine(t, clitest.Run(env, "migrate")))
	require.Contains(t, decode(t, fine(t, clitest.Run(env, "migrate", "--json")))["schemas"], "tracker")
}

func TestADatabaseThatCannotBeReachedIsReportedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	said := failed(t, clitest.Run(clitest.Without, "migrate", "--database-url", "postgres://somebody:hunter2@127.0.0.1:1/bullpen"))
	require.Contains(t, said, "BULLPEN_DATABASE_URL")
	require.NotContains(t, said, "hunter2")
}
