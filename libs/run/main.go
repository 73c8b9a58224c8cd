package run

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/bullpenhq/bullpen/libs/config"
)

// Exit codes of [Main].
const (
	exitOK       = 0
	exitFailed   = 1
	exitSettings = 2
)

// Main is the main function of a program of these modules. It reads flags and environment, runs until SIGTERM or SIGINT, drains
// and exits: 0 when asked to end, 1 when something failed, 2 for settings that cannot be used. A second signal ends it at once,
// with 1.
func Main(name string, modules ...Module) {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		stop()
		<-signals
		os.Exit(exitFailed)
	}()
	os.Exit(execute(ctx, NewFlags(name, modules...), os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

func execute(ctx context.Context, f *Flags, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	o, err := f.Parse(args, getenv)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = io.WriteString(stdout, config.Usage(f.Set))
		return exitOK
	}
	var p *Process
	if err == nil {
		p, err = Start(ctx, o)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "%s: %v\n", f.Set.Name(), err)
		return exitSettings
	}
	if err := p.Wait(); err != nil {
		o.Telemetry.Log.Error("process failed", "error", err)
		return exitFailed
	}
	o.Telemetry.Log.Info("process ended")
	return exitOK
}
