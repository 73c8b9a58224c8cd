// Package cli is the command line: one file a command, each thin over the services' own clients.
//
// Every command takes --json, answers errors in a sentence that says what to do next, and exits 0 only when it did what it was
// asked: 1 when it could not, 2 when it was asked wrongly.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"connectrpc.com/connect/v2"
	"github.com/spf13/cobra"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Streams are the process's standard streams.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// app is what every command shares.
type app struct {
	Streams
	getenv func(string) string
	json   bool
	server string
	token  string
	data   string
}

// usageError is a wrong call of a command.
type usageError struct{ error }

// Main runs a command line and answers the exit code. SIGINT and SIGTERM end the command's context; a second one ends the
// process at once, with exit code 1.
func Main(args []string, streams Streams, getenv func(string) string) int {
	ctx, stop := interruptible()
	defer stop()
	root := newRoot(&app{Streams: streams, getenv: getenv})
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if !errors.Is(err, errQuiet) {
		fmt.Fprintf(streams.Err, "bullpen: %s\n", sentence(err))
	}
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitFailed
}

// interruptible answers a context that the first signal ends. Both signals have a place in the channel before anybody listens, so
// that a second one that follows at once is not lost.
func interruptible() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for range 2 {
			select {
			case <-signals:
			case <-done:
				return
			}
			if ctx.Err() != nil {
				os.Exit(exitFailed)
			}
			cancel()
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

// errQuiet fails a command that has said why already.
var errQuiet = errors.New("failed")

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "bullpen",
		Short:         "Run and inspect a company of AI agents",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetIn(a.In)
	flags := root.PersistentFlags()
	flags.BoolVar(&a.json, "json", false, "print JSON")
	flags.StringVar(&a.server, "server", a.getenv("BULLPEN_SERVER"), "address of an installation (BULLPEN_SERVER); without it, the one that runs on --data")
	flags.StringVar(&a.token, "token", "", "API token; better given as BULLPEN_TOKEN, which process lists do not show")
	flags.StringVar(&a.data, "data", a.dataDefault(), "data directory of the local installation (BULLPEN_DATA)")
	root.SetFlagErrorFunc(asUsage)
	root.AddCommand(
		a.up(), a.demo(), a.check(), a.migrate(), a.send(), a.tools(), a.servers(), a.call(), a.calls(), a.turns(), a.approvals(), a.policy(), a.work(), a.purge(), a.importItems(), a.dead(), a.tokens(), a.doctor(),
		a.bench(), a.benchUpstream(), a.reference(), demoServer(),
	)
	checkArguments(root)
	return root
}

// asUsage makes an error one of usage, which says where the right one is told.
func asUsage(cmd *cobra.Command, err error) error {
	return usageError{fmt.Errorf("%w; see `%s --help`", err, cmd.CommandPath())}
}

// checkArguments makes wrong arguments of a command and of all below it errors of usage, which name the arguments there are.
func checkArguments(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err == nil {
				return nil
			}
			if _, takes, some := strings.Cut(cmd.Use, " "); some {
				err = fmt.Errorf("%s takes %s, and was given %s", cmd.CommandPath(), takes, count(len(args), "argument"))
			}
			return asUsage(cmd, err)
		}
	}
	for _, below := range cmd.Commands() {
		checkArguments(below)
	}
}

func (a *app) dataDefault() string {
	if dir := a.getenv("BULLPEN_DATA"); dir != "" {
		return dir
	}
	return "data"
}

// sentence is an error for a person: a refusal by its own sentence, anything else as it is.
func sentence(err error) string {
	f, ok := fault.As(err)
	if _, received := errors.AsType[*connect.Error](err); !ok && received {
		f = rpc.FromError(err)
	}
	if f == nil || f.Message == "" {
		return err.Error()
	}
	if f.Class == fault.Unavailable {
		return f.Message + " (bullpen doctor says what is wrong with an installation)"
	}
	return f.Message
}

// version is the module's, or the commit's.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return info.Main.Version
}
