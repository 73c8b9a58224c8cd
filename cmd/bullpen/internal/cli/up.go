package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/suite"
	"github.com/bullpenhq/bullpen/libs/config"
)

// up runs the suite until it is stopped. Its flags are the services' own, so it reads them itself.
func (a *app) up() *cobra.Command {
	return &cobra.Command{
		Use:                "up [--company FILE] [--data DIR] [--listen ADDR] [any service's flag]",
		Short:              "Run every service in this process, until stopped",
		DisableFlagParsing: true,
		RunE:               func(cmd *cobra.Command, args []string) error { return a.runUp(cmd.Context(), args) },
	}
}

func (a *app) runUp(ctx context.Context, args []string) error {
	flags := suite.NewFlags("bullpen up")
	asJSON := flags.Set.Bool("json", a.json, "Print the address as JSON on standard output once the suite is ready.")
	data := flags.Set.String("data", a.dataDefault(), "Directory for everything that outlives the process: Postgres, the broker's records, keys.")
	companyFile := flags.Set.String("company", "", "Company document to apply at start; short for -company.document.")
	options, err := flags.Parse(args, a.getenv)
	if errors.Is(err, flag.ErrHelp) {
		_, err := fmt.Fprint(a.Out, config.Usage(flags.Set))
		return err
	}
	if err != nil {
		return usageError{fmt.Errorf("%w; see `bullpen up --help`", err)}
	}
	a.json = *asJSON
	if *companyFile != "" {
		suite.Company(options).Document = *companyFile
	}
	// The service checks it, too, but only once there is a database.
	if path := suite.Company(options).Document; path != "" {
		if err := refuseMistakes(path); err != nil {
			return err
		}
	}
	began := time.Now()
	unlock, err := lock(*data)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := suite.Start(ctx, suite.Options{DataDir: *data, Run: options})
	if err != nil {
		return err
	}
	path := filepath.Join(*data, endpointFile)
	announced := make(chan error, 1)
	go func() { announced <- a.announce(s, path, began) }()
	err = s.Wait(options.Telemetry.Log)
	return errors.Join(err, <-announced, removeOwn(path))
}

// announce writes where the suite listens once it is ready, for other commands on this machine, and says so.
func (a *app) announce(s *suite.Suite, path string, began time.Time) error {
	select {
	case <-s.Done():
		return nil
	case <-s.Ready():
	}
	here := endpoint{URL: s.URL(), PID: os.Getpid()}
	text, err := json.Marshal(here)
	if err != nil {
		return err
	}
	draft := path + ".new"
	if err := os.WriteFile(draft, append(text, '\n'), 0o600); err != nil {
		return err
	}
	if err := os.Rename(draft, path); err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(here)
	}
	// The last word of a start: whoever waits for it finds everything else in place.
	fmt.Fprintf(a.Err, "Bullpen is ready on %s after %s.\n", s.URL(), time.Since(began).Round(time.Millisecond))
	return err
}

// removeOwn removes the endpoint file, unless another process has written it since.
func removeOwn(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var local endpoint
	if json.Unmarshal(text, &local) == nil && local.PID != os.Getpid() {
		return nil
	}
	return os.Remove(path)
}
