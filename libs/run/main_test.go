package run_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/run"
)

// programEnv names the program of programs that the test binary is to be.
const programEnv = "BULLPEN_RUN_TEST_PROGRAM"

func programs() map[string][]run.Module {
	return map[string][]run.Module{
		"idle":   {plain("company", piece{})},
		"broken": {plain("company", piece{run: func(context.Context) error { return errors.New("out of paper") }})},
		"deaf":   {plain("company", piece{run: func(context.Context) error { select {} }})},
	}
}

func command(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = []string{programEnv + "=" + program, "BULLPEN_PRINCIPAL_KEYS=" + string(principalKey), "BULLPEN_LISTEN=127.0.0.1:0", "BULLPEN_LOG_FORMAT=json"}
	return cmd
}

// lines answers a program's log, line by line.
func lines(t *testing.T, cmd *exec.Cmd) *bufio.Scanner {
	t.Helper()
	out, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return bufio.NewScanner(out)
}

func await(t *testing.T, log *bufio.Scanner, text string) {
	t.Helper()
	for log.Scan() {
		if strings.Contains(log.Text(), text) {
			return
		}
	}
	t.Fatalf("the program ended without saying %q", text)
}

func TestProgramEndsWithZeroWhenAsked(t *testing.T) {
	t.Parallel()
	cmd := command(t, "idle")
	log := lines(t, cmd)
	await(t, log, "process ready")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	await(t, log, "process ended")
	require.NoError(t, cmd.Wait())
}

func TestSecondSignalEndsAProgramAtOnce(t *testing.T) {
	t.Parallel()
	cmd := command(t, "deaf")
	log := lines(t, cmd)
	await(t, log, "process ready")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	began := time.Now()
	await(t, log, "process draining")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
	require.Less(t, time.Since(began), 20*time.Second, "the drain timeout is thirty seconds")
}

func TestProgramThatFailsSaysWhyAndEndsWithOne(t *testing.T) {
	t.Parallel()
	cmd := command(t, "broken")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
	require.Contains(t, string(out), "company failed: out of paper")
}

func TestProgramWithBadSettingsEndsWithTwo(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		"program: flag provided but not defined: -nonsense": {"-nonsense"},
		"log level must be debug":                           {"-log-level=loud"},
		"a key must have at least 32":                       {"-principal-keys=short"},
	} {
		cmd := command(t, "idle", args...)
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, 2, cmd.ProcessState.ExitCode())
		require.Contains(t, string(out), says)
		require.NotContains(t, string(out), "short\n")
	}
}

func TestProgramExplainsItsSettings(t *testing.T) {
	t.Parallel()
	cmd := command(t, "idle", "-h")
	cmd.Stderr = io.Discard
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "-listen (BULLPEN_LISTEN) = 127.0.0.1:8080")
	require.NotContains(t, string(out), string(principalKey))
}
