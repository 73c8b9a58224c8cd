package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/suite"
	"github.com/bullpenhq/bullpen/libs/pg/pgserver"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/libs/telemetry"
)

// resident is a suite in this process, so that a call can be made as a turn makes it: without a network between.
type resident struct {
	data   string
	suite  *suite.Suite
	log    *telemetry.Telemetry
	stop   context.CancelFunc
	server *connect.Server
	keys   *rpc.Keys
}

// reside starts a suite with a company and answers when it is ready.
func reside(ctx context.Context, document string) (r *resident, err error) {
	r = &resident{stop: func() {}}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.leave())
		}
	}()
	if r.data, err = pgserver.TempDir("bullpen-bench-"); err != nil {
		return r, err
	}
	file := filepath.Join(r.data, "company.yaml")
	if err = os.WriteFile(file, []byte(document), 0o600); err != nil {
		return r, err
	}
	// The settings of an installation that this shell may have are not the benchmark's.
	getenv := func(name string) string {
		if strings.HasPrefix(name, "BULLPEN_") {
			return ""
		}
		return os.Getenv(name)
	}
	options, err := suite.NewFlags("bullpen bench").Parse([]string{"-listen", "127.0.0.1:0", "-log-level", "error"}, getenv)
	if err != nil {
		return r, err
	}
	if r.log, err = telemetry.New(telemetry.Options{Service: "bench", Level: "error", Format: "text", Out: os.Stderr}); err != nil {
		return r, err
	}
	options.Telemetry = r.log
	suite.Company(options).Document = file
	options.Modules = append(options.Modules, run.Module{
		Name: "bench", New: func(context.Context, *run.Host) (run.Service, error) { return r, nil },
	})
	running, stop := context.WithCancel(ctx)
	r.stop = stop
	if r.suite, err = suite.Start(running, suite.Options{DataDir: filepath.Join(r.data, "suite"), Run: options}); err != nil {
		return r, err
	}
	select {
	case <-r.suite.Ready():
	case <-r.suite.Done():
		return r, errors.New("the suite ended before it was ready")
	case <-time.After(readyPatience):
		return r, fmt.Errorf("the suite was not ready within %s", readyPatience)
	}
	r.keys, err = rpc.NewKeys(r.suite.Keys...)
	return r, err
}

// leave stops the suite and removes its data.
func (r *resident) leave() error {
	r.stop()
	var errs []error
	if r.suite != nil {
		errs = append(errs, r.suite.Wait(r.log.Log))
	}
	if r.data != "" {
		errs = append(errs, os.RemoveAll(r.data))
	}
	return errors.Join(errs...)
}

// client calls the suite's services within the process, as one of them would.
func (r *resident) client(as string) *connect.Client {
	return rpc.NewClient(rpc.InProcess(r.server), rpc.ClientOptions{Service: as, Keys: r.keys})
}

// Register implements [run.Service]: this is where the suite's server is had.
func (r *resident) Register(s *connect.Server) { r.server = s }

// Routes implements [run.Service].
func (r *resident) Routes(*http.ServeMux) {}

// Run implements [run.Service].
func (r *resident) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
