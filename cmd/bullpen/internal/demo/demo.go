// Package demo shows the suite's main job once, on real parts and throw-away data: every service, a broker, a Postgres, an MCP
// server started as a child process, and doubles of GitHub and Slack for the outside world.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/story"
	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/suite"
	"github.com/bullpenhq/bullpen/libs/pg/pgserver"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/libs/telemetry"
)

// ServerCommand is the hidden command by which this program serves the demo's MCP server.
const ServerCommand = "demo-mcp-server"

// startPatience bounds a start, a first download of Postgres included.
const startPatience = 3 * time.Minute

// Options says how the demo is run.
type Options struct {
	// Executable is this program, which is also the MCP server.
	Executable string
	// Getenv reads the environment.
	Getenv func(string) string
	// Watch is told what happens, line by line.
	Watch io.Writer
	// LogLevel is the least level of the services' own log, which goes to Log.
	LogLevel string
	Log      io.Writer
}

// Run runs the demo and answers its report. The data is removed afterwards.
func Run(ctx context.Context, o Options) (report *story.Report, err error) {
	data, err := pgserver.TempDir("bullpen-demo-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	vendors, err := story.StartVendors(ctx)
	if err != nil {
		return nil, fmt.Errorf("start the vendors' doubles: %w", err)
	}
	defer func() { err = errors.Join(err, vendors.Close()) }()
	options, err := settings(o, vendors, data)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	began := time.Now()
	fmt.Fprintln(o.Watch, "starting Postgres, a broker and seven services in one process")
	s, err := suite.Start(running, suite.Options{DataDir: data, Run: options})
	if err != nil {
		return nil, err
	}
	defer func() {
		stop()
		err = errors.Join(err, s.Wait(options.Telemetry.Log))
	}()
	if err := awaitReady(ctx, s); err != nil {
		return nil, err
	}
	fmt.Fprintf(o.Watch, "ready after %s\n\n", time.Since(began).Round(time.Millisecond))
	target, err := target(s)
	if err != nil {
		return nil, err
	}
	return story.Play(ctx, target, vendors, o.Watch)
}

// settings are those of a suite that talks to the doubles and has the story's company.
func settings(o Options, vendors *story.Vendors, data string) (run.Options, error) {
	document, err := story.Document(o.Executable, ServerCommand)
	if err != nil {
		return run.Options{}, err
	}
	file := filepath.Join(data, "company.yaml")
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		return run.Options{}, err
	}
	// The settings of an installation that this shell may have are not the demo's.
	environment := vendors.Environment()
	getenv := func(name string) string {
		if value, ok := environment[name]; ok {
			return value
		}
		if strings.HasPrefix(name, "BULLPEN_") {
			return ""
		}
		return o.Getenv(name)
	}
	flags := suite.NewFlags("bullpen demo")
	options, err := flags.Parse([]string{"-listen", "127.0.0.1:0", "-log-level", o.LogLevel}, getenv)
	if err != nil {
		return options, err
	}
	options.Telemetry, err = telemetry.New(telemetry.Options{Service: "demo", Level: o.LogLevel, Format: "text", Out: o.Log})
	suite.Company(options).Document = file
	return options, err
}

func awaitReady(ctx context.Context, s *suite.Suite) error {
	select {
	case <-s.Ready():
		return nil
	case <-s.Done():
		return errors.New("the suite ended before it was ready")
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(startPatience):
		return fmt.Errorf("the suite was not ready within %s", startPatience)
	}
}

// target is the suite as an operator sees it.
func target(s *suite.Suite) (story.Target, error) {
	keys, err := rpc.NewKeys(s.Keys...)
	if err != nil {
		return story.Target{}, err
	}
	return story.Target{Webhooks: s.URL(), Turn: operator(s.URL(), keys), Registry: operator(s.URL(), keys)}, nil
}

func operator(url string, keys *rpc.Keys) *connect.Client {
	return rpc.NewClient(rpc.HTTPTransport(url), rpc.ClientOptions{Service: "demo", Keys: keys})
}
