// Package clitest gives tests the program and a running installation of it.
//
// A test binary whose TestMain calls [Main] is the program, too: started with a command in the place of test flags, it runs that. So
// `bullpen up` is a real process, has the race detector when the test has it, and nothing is built twice.
package clitest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/cli"
)

// lifeline is set for a process that must end when the one that started it has: it then holds the other end of its standard input.
const lifeline = "CLITEST_LIFELINE"

// Main is TestMain. It ends the process.
func Main(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		os.Exit(program())
	}
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "clitest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func program() int {
	if os.Getenv(lifeline) != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		}()
	}
	return cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.Getenv)
}

// Result is what a command did.
type Result struct {
	Code     int
	Out, Err string
}

// Run runs a command in this process. Its environment is getenv.
func Run(getenv func(string) string, args ...string) Result { return Fed("", getenv, args...) }

// Fed runs a command with a text on its standard input.
func Fed(text string, getenv func(string) string, args ...string) Result {
	var out, errs bytes.Buffer
	code := cli.Main(args, cli.Streams{In: strings.NewReader(text), Out: &out, Err: &errs}, getenv)
	return Result{Code: code, Out: out.String(), Err: errs.String()}
}

// Without is an environment with nothing in it.
func Without(string) string { return "" }

// finish gives what was started up again, and answers every error.
func finish(ctx context.Context, steps ...func(context.Context) error) error {
	var errs []error
	for _, step := range steps {
		errs = append(errs, step(ctx))
	}
	return errors.Join(errs...)
}
