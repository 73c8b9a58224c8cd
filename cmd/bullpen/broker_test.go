package main_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/topology"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
)

// brokerEnv makes the test binary a broker: its address and its data directory, with a space between.
const brokerEnv = "BULLPEN_TEST_BROKER"

func TestMain(m *testing.M) {
	if order := os.Getenv(brokerEnv); order != "" {
		if err := serveBroker(order); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveBroker says when it is up and runs until standard input ends, which it does when the test's process is gone.
func serveBroker(order string) error {
	address, dir, _ := strings.Cut(order, " ")
	broker, err := embedded.Start(context.Background(), embedded.Options{
		Addr: address, DataDir: dir, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	fmt.Println("up")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return broker.Close()
}

// brokerProcess is an embedded broker in a process of its own, to be killed and started again on the same data and address.
type brokerProcess struct {
	address, dir string
	command      *exec.Cmd
	lifeline     io.Closer
}

func newBrokerProcess(t *testing.T) *brokerProcess {
	t.Helper()
	addresses, err := topology.FreeAddresses(1)
	require.NoError(t, err)
	b := &brokerProcess{address: addresses[0], dir: t.TempDir()}
	require.NoError(t, b.start())
	t.Cleanup(func() {
		require.NoError(t, b.lifeline.Close())
		require.NoError(t, b.command.Wait())
	})
	return b
}

// start answers once clients can connect.
func (b *brokerProcess) start() error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	b.command = exec.Command(executable)
	b.command.Env = append(os.Environ(), brokerEnv+"="+b.address+" "+b.dir)
	b.command.Stderr = os.Stderr
	if b.lifeline, err = b.command.StdinPipe(); err != nil {
		return err
	}
	output, err := b.command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := b.command.Start(); err != nil {
		return err
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || line != "up\n" {
		return fmt.Errorf("the broker did not start: %q, %w", line, err)
	}
	return nil
}

// kill ends the broker with SIGKILL and waits until it is gone.
func (b *brokerProcess) kill() error {
	if err := b.command.Process.Kill(); err != nil {
		return err
	}
	_ = b.command.Wait() // it was killed
	return nil
}
