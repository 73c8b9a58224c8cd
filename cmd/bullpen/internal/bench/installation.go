package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/bullpenhq/bullpen/doubles/githubdouble"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/pg/pgserver"
)

const (
	secret = "bench-github-webhook-secret"
	// seats is how many agents the load is spread over.
	seats = 16
)

// installation is a suite with a company of agents that answer every question at once, beside its own Postgres.
type installation struct {
	data     string
	postgres *pgserver.Server
	github   *githubdouble.Server
	suite    *process
	client   *http.Client
}

// install starts everything that a load needs.
func install(ctx context.Context, o Options) (*installation, error) {
	return installCompany(ctx, o, company())
}

// installCompany is install with another company.
func installCompany(ctx context.Context, o Options, company string) (i *installation, err error) {
	i = &installation{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.remove(ctx))
		}
	}()
	if i.data, err = pgserver.TempDir("bullpen-bench-"); err != nil {
		return i, err
	}
	if i.postgres, err = pgserver.Start(ctx, pgserver.Options{DataDir: filepath.Join(i.data, "postgres"), Log: slog.New(slog.DiscardHandler)}); err != nil {
		return i, err
	}
	if i.github, err = githubdouble.Start(ctx, githubdouble.Options{}); err != nil {
		return i, err
	}
	for n := range seats {
		i.github.Grant(token(n), login(n))
	}
	document := filepath.Join(i.data, "company.yaml")
	if err = os.WriteFile(document, []byte(company), 0o600); err != nil {
		return i, err
	}
	environment := map[string]string{
		config.EnvName("database-url"):                i.postgres.DSN(),
		config.EnvName("notification.github-api-url"): i.github.URL(),
		"GITHUB_WEBHOOK_SECRET":                       secret,
	}
	for n := range seats {
		environment[fmt.Sprintf("TOKEN_%d", n)] = token(n)
	}
	i.suite, err = up(ctx, o.Executable, filepath.Join(i.data, "suite"), environment, "--company", document)
	return i, err
}

// remove stops everything and removes the data.
func (i *installation) remove(ctx context.Context) error {
	var errs []error
	if i.suite != nil {
		errs = append(errs, i.suite.stop())
	}
	if i.github != nil {
		errs = append(errs, i.github.Close())
	}
	if i.postgres != nil {
		errs = append(errs, i.postgres.Stop(context.WithoutCancel(ctx)))
	}
	if i.data != "" {
		errs = append(errs, os.RemoveAll(i.data))
	}
	return errors.Join(errs...)
}

func login(n int) string { return fmt.Sprintf("bench-seat-%d", n) }
func token(n int) string { return fmt.Sprintf("bench-token-%d", n) }

// company answers a document of agents whose scripted model answers and submits.
func company() string {
	var roles strings.Builder
	for n := range seats {
		fmt.Fprintf(&roles, "      - {name: Seat %d, handle: seat-%d, integrations: {github: {login: %s, token: \"${TOKEN_%d}\"}}}\n", n, n, login(n), n)
	}
	return `name: Bench
providers:
  llm:
    default:
      type: scripted
      scenario:
        rules:
          - rounds:
              - call: {tool: reply, args: {body: Done.}}
              - submit: {outcome: delivered, summary: Answered., deliveries: [reply]}
integrations:
  github: {webhook_secret: "${GITHUB_WEBHOOK_SECRET}"}
units:
  - name: Bench
    roles:
` + roles.String()
}
