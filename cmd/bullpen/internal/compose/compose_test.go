// Package compose_test checks docker-compose.yml, deploy/Dockerfile and the example environment files against each other and against
// the services themselves: what a service is told must be something that it listens to.
//
// The file is read by the library that docker compose reads it with. No container is started.
package compose_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/suite"
	"github.com/bullpenhq/bullpen/libs/run"
)

// root is the repository's, seen from this package.
const root = "../../../.."

const (
	composeFile = "docker-compose.yml"
	envFile     = ".env"
	secretsFile = ".env.secrets"
)

func TestMain(m *testing.M) {
	// The library leaves this form of file to docker compose, which reads it as `docker run --env-file` does.
	dotenv.RegisterFormat("raw", raw)
	os.Exit(m.Run())
}

// raw reads NAME=value lines; the value is everything behind the first equals sign.
func raw(r io.Reader, file string, vars map[string]string, _ func(string) (string, bool)) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimLeft(lines.Text(), " \t")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, set := strings.Cut(line, "=")
		if !set {
			return fmt.Errorf("%s: %s has no value", file, name)
		}
		vars[name] = value
	}
	return lines.Err()
}

func text(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(raw)
}

// variables answers the names that an example file sets, with its values.
func variables(t *testing.T, name string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.Lines(text(t, name)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		require.True(t, ok, "%s: %q sets nothing", name, line)
		found[key] = value
	}
	return found
}

// filled is a value that somebody may have filled in: 32 bytes in hex, other ones for each name.
func filled(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}

// secret is the value of a name in .env.secrets, with everything in it that an environment file could take for its own.
func secret(name string) string { return filled(name) + `$HOME ${HOME} "a" 'b' # c\d` }

// checkout is a folder with the compose file and both environment files filled in, as an installation has them: every secret, and of
// the rest what must be. Variables named in without are left empty.
func checkout(t *testing.T, without ...string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, composeFile), []byte(text(t, composeFile)), 0o600))
	required := named(text(t, composeFile), `\$\{([A-Z0-9_]+):\?`)
	for _, name := range []string{envFile, secretsFile} {
		var out bytes.Buffer
		for key, value := range variables(t, name+".example") {
			switch {
			case slices.Contains(without, key):
				value = ""
			case name == secretsFile:
				value = secret(key)
			case slices.Contains(required, key):
				value = filled(key)
			}
			fmt.Fprintf(&out, "%s=%s\n", key, value)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), out.Bytes(), 0o600))
	}
	return dir
}

// load reads the compose file in dir with every profile on.
func load(t *testing.T, dir string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(dir, composeFile)},
		cli.WithWorkingDirectory(dir), cli.WithEnvFiles(filepath.Join(dir, envFile)), cli.WithDotEnv, cli.WithProfiles([]string{"*"}))
	require.NoError(t, err)
	return options.LoadProject(t.Context())
}

func project(t *testing.T) *types.Project {
	t.Helper()
	p, err := load(t, checkout(t))
	require.NoError(t, err)
	return p
}

// deployed is a service of ours in the compose file. Its build target is its module's name.
type deployed struct {
	types.ServiceConfig
	module run.Module
}

func (d deployed) getenv(name string) string {
	if value := d.Environment[name]; value != nil {
		return *value
	}
	return ""
}

// ours answers the services of the suite, by module name.
func ours(t *testing.T, p *types.Project) map[string]deployed {
	t.Helper()
	found := map[string]deployed{}
	for _, module := range suite.Modules() {
		for _, service := range p.Services {
			if service.Build != nil && service.Build.Target == module.Name {
				require.NotContains(t, found, module.Name, "two services are built from one stage")
				found[module.Name] = deployed{ServiceConfig: service, module: module}
			}
		}
		require.Contains(t, found, module.Name, "no container runs it")
	}
	return found
}

// warnings collects what the library warns of. It logs to one logger for the whole process, so the test that uses it is not parallel.
type warnings struct{ lines []string }

func (w *warnings) Levels() []logrus.Level {
	return []logrus.Level{logrus.WarnLevel, logrus.ErrorLevel}
}

func (w *warnings) Fire(e *logrus.Entry) error {
	w.lines = append(w.lines, e.Message)
	return nil
}

func TestTheFileLoadsWithoutAWarning(t *testing.T) {
	seen := &warnings{}
	before := logrus.StandardLogger().ReplaceHooks(logrus.LevelHooks{})
	t.Cleanup(func() { logrus.StandardLogger().ReplaceHooks(before) })
	logrus.AddHook(seen)
	project(t)
	require.Empty(t, seen.lines)
}

func TestARequiredVariableThatIsEmptyIsRefusedByItsName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"POSTGRES_PASSWORD", "BULLPEN_PRINCIPAL_KEYS", "BULLPEN_COMPANY_SEALING_KEY"} {
		_, err := load(t, checkout(t, name))
		require.ErrorContains(t, err, "set "+name+" in .env")
	}
}
