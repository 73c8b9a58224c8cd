package config_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/config"
)

// settings is a set with a flag of each sort.
type settings struct {
	fs      *flag.FlagSet
	limit   int
	verbose bool
	wait    time.Duration
	brokers []string
	dsn     config.Secret
}

func newSettings() *settings {
	s := &settings{fs: flag.NewFlagSet("tracker", flag.ContinueOnError), brokers: []string{"localhost:9092"}}
	s.fs.IntVar(&s.limit, "tracker.page-limit", 50, "Items on a page, 1 to 500 | the ceiling.")
	s.fs.BoolVar(&s.verbose, "verbose", false, "Say more.")
	s.fs.DurationVar(&s.wait, "tracker.wait", time.Second, "How long to wait.")
	config.ListVar(s.fs, &s.brokers, "kafka-brokers", "Brokers.")
	config.SecretVar(s.fs, &s.dsn, "tracker.database-url", "Postgres.")
	return s
}

func env(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

func TestEveryFlagHasOneTwin(t *testing.T) {
	t.Parallel()
	require.Equal(t, "BULLPEN_TRACKER_DATABASE_URL", config.EnvName("tracker.database-url"))
	require.Equal(t, "BULLPEN_LISTEN", config.EnvName("listen"))
}

func TestFlagWinsOverTwinAndTwinOverDefault(t *testing.T) {
	t.Parallel()
	s := newSettings()
	err := config.Parse(s.fs, []string{"-tracker.page-limit=7", "-verbose"}, env(map[string]string{
		"BULLPEN_TRACKER_PAGE_LIMIT": "9", "BULLPEN_TRACKER_WAIT": "3s", "BULLPEN_KAFKA_BROKERS": " a:1, ,b:2 ",
	}))
	require.NoError(t, err)
	require.Equal(t, 7, s.limit)
	require.True(t, s.verbose)
	require.Equal(t, 3*time.Second, s.wait)
	require.Equal(t, []string{"a:1", "b:2"}, s.brokers)

	s = newSettings()
	require.NoError(t, config.Parse(s.fs, nil, env(nil)))
	require.Equal(t, []any{50, false, time.Second, []string{"localhost:9092"}}, []any{s.limit, s.verbose, s.wait, s.brokers})
}

func TestErrorsNameBothTwins(t *testing.T) {
	t.Parallel()
	err := config.Parse(newSettings().fs, []string{"-tracker.page-limit=many"}, env(nil))
	require.ErrorContains(t, err, "-tracker.page-limit")
	require.ErrorContains(t, err, "BULLPEN_TRACKER_PAGE_LIMIT")

	err = config.Parse(newSettings().fs, nil, env(map[string]string{"BULLPEN_TRACKER_PAGE_LIMIT": "many", "BULLPEN_TRACKER_WAIT": "long"}))
	for _, name := range []string{"-tracker.page-limit", "BULLPEN_TRACKER_PAGE_LIMIT", "-tracker.wait", "BULLPEN_TRACKER_WAIT"} {
		require.ErrorContains(t, err, name, "all faults are told at once")
	}

	cause := errors.New("no such host")
	err = config.Invalid("tracker.page-limit", "must be at most %d, not %d: %w", 500, 900, cause)
	require.EqualError(t, err, "-tracker.page-limit (BULLPEN_TRACKER_PAGE_LIMIT) must be at most 500, not 900: no such host")
	require.ErrorIs(t, err, cause)
}

func TestUnknownSettingsAreRefused(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, config.Parse(newSettings().fs, []string{"-tracker.pages=1"}, env(nil)), "tracker.pages")
	require.ErrorContains(t, config.Parse(newSettings().fs, []string{"serve"}, env(nil)), `unexpected argument "serve"`)
	require.ErrorIs(t, config.Parse(newSettings().fs, []string{"-h"}, env(nil)), flag.ErrHelp)
}

func TestFlagsThatCannotBeToldApartAreRefused(t *testing.T) {
	t.Parallel()
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.Int("a-b", 0, "")
	fs.Int("a.b", 0, "")
	fs.Int("tracker..limit", 0, "")
	err := config.Parse(fs, nil, env(nil))
	require.ErrorContains(t, err, "flags -a-b and -a.b have the same twin BULLPEN_A_B")
	require.ErrorContains(t, err, "-tracker..limit has an empty part")
}

func TestSecretMayComeFromAFile(t *testing.T) {
	t.Parallel()
	write := func(content string) string {
		path := filepath.Join(t.TempDir(), "secret")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	const twin = "BULLPEN_TRACKER_DATABASE_URL"
	for name, c := range map[string]struct {
		args  []string
		env   map[string]string
		value config.Secret
		says  string
	}{
		"file":               {env: map[string]string{twin + "_FILE": write("postgres://x\n")}, value: "postgres://x"},
		"twin":               {env: map[string]string{twin: "postgres://y"}, value: "postgres://y"},
		"flag over file":     {args: []string{"-tracker.database-url=postgres://z"}, env: map[string]string{twin + "_FILE": "/nowhere"}, value: "postgres://z"},
		"both":               {env: map[string]string{twin: "postgres://y", twin + "_FILE": "/x"}, says: "keep one"},
		"no such file":       {env: map[string]string{twin + "_FILE": "/nowhere"}, says: "/nowhere"},
		"empty file":         {env: map[string]string{twin + "_FILE": write("\n")}, says: "is empty"},
		"not a secret":       {env: map[string]string{twin + "_FILE": write(strings.Repeat("x", 65<<10))}, says: "more than the 65536 bytes"},
		"only for a secrets": {env: map[string]string{"BULLPEN_TRACKER_PAGE_LIMIT_FILE": "/nowhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSettings()
			err := config.Parse(s.fs, c.args, env(c.env))
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				require.ErrorContains(t, err, "tracker.database-url")
				require.NotContains(t, err.Error(), "postgres://")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.value.Reveal(), s.dsn.Reveal())
		})
	}
}

func TestSecretDoesNotPrint(t *testing.T) {
	t.Parallel()
	secret := config.Secret("hunter2")
	holder := struct {
		Secret  config.Secret
		Pointer *config.Secret
		Keys    map[string][]config.Secret
	}{secret, &secret, map[string][]config.Secret{"k": {secret}}}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3s"} {
		fmt.Fprintf(&out, verb+verb+"\n", secret, holder)
	}
	encoded, err := json.Marshal(holder)
	require.NoError(t, err)
	out.Write(encoded)
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("x", "secret", secret, "pointer", &secret, "holder", holder, "list", []config.Secret{secret})
	}
	fmt.Fprint(&out, fmt.Errorf("wrapped: %v", secret))
	require.NotContains(t, out.String(), "hunter2")
	require.NotContains(t, out.String(), fmt.Sprintf("%x", "hunter2"))
	require.Contains(t, out.String(), "***")
	require.Empty(t, config.Secret("").String(), "an absent secret can be told from one that is there")
	require.Equal(t, "hunter2", secret.Reveal())
}

func TestMarkdownListsEverySetting(t *testing.T) {
	t.Parallel()
	s := newSettings()
	s.dsn = "postgres://hidden"
	require.Equal(t, strings.TrimLeft(`
| Flag | Environment | Default | What it does |
| --- | --- | --- | --- |
| `+"`-kafka-brokers` | `BULLPEN_KAFKA_BROKERS` | `localhost:9092`"+` | Brokers. |
| `+"`-tracker.database-url` | `BULLPEN_TRACKER_DATABASE_URL` or `BULLPEN_TRACKER_DATABASE_URL_FILE`"+` |  | Postgres. |
| `+"`-tracker.page-limit` | `BULLPEN_TRACKER_PAGE_LIMIT` | `50`"+` | Items on a page, 1 to 500 \| the ceiling. |
| `+"`-tracker.wait` | `BULLPEN_TRACKER_WAIT` | `1s`"+` | How long to wait. |
| `+"`-verbose` | `BULLPEN_VERBOSE` | `false`"+` | Say more. |
`, "\n"), config.Markdown(s.fs))
	require.Contains(t, config.Usage(s.fs), "-tracker.wait (BULLPEN_TRACKER_WAIT) = 1s\n      How long to wait.")
}
