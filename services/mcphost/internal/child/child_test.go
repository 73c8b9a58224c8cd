package child_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/child"
)

// hostVariable makes the test binary a host that starts a child, says its process id, and lives on.
const hostVariable = "CHILD_TEST_HOST"

func TestMain(m *testing.M) {
	if os.Getenv(hostVariable) != "" {
		p, err := child.Start(child.Options{
			Path: "sleep", Args: []string{"600"}, Env: child.Environment(os.Getenv, nil), Log: slog.New(slog.DiscardHandler), Launcher: child.NewLauncher(),
		})
		if err != nil {
			panic(err)
		}
		fmt.Println(p.PID())
		<-p.Done()
		return
	}
	goleak.VerifyTestMain(m)
}

func TestAChildDiesWithAHostThatIsKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a child that its parent died")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	host := exec.Command(self)
	host.Env = append(os.Environ(), hostVariable+"=1")
	out, err := host.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, host.Start())
	var pid int
	_, err = fmt.Fscan(out, &pid)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, 0), "it lives")
	require.NoError(t, host.Process.Kill())
	require.Error(t, host.Wait())
	// It is somebody else's to reap now, so a zombie is as dead as it gets.
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, 5*time.Second, 10*time.Millisecond)
}

func start(t *testing.T, script string, change ...func(*child.Options)) *child.Process {
	t.Helper()
	l := child.NewLauncher()
	t.Cleanup(l.Close)
	o := child.Options{
		Path: "sh", Args: []string{"-c", script}, Env: child.Environment(os.Getenv, nil), Log: slog.New(slog.DiscardHandler),
		Grace: 200 * time.Millisecond, Launcher: l,
	}
	for _, c := range change {
		c(&o)
	}
	p, err := child.Start(o)
	require.NoError(t, err)
	t.Cleanup(p.Stop)
	return p
}

func TestLinesComeWholeAndNoiseIsSkipped(t *testing.T) {
	t.Parallel()
	p := start(t, `echo hello; echo; echo '  {"a":1}'; printf '{"big":"'; head -c 33554432 /dev/zero | tr '\0' x; echo '"}'; echo '[1]'; printf '{"half":'`)
	var lengths []int
	for {
		line, err := p.Next()
		if err != nil {
			require.ErrorContains(t, err, "exited with status 0")
			break
		}
		lengths = append(lengths, len(line))
	}
	require.Equal(t, []int{7, 33554432 + 10, 3}, lengths)
	require.Equal(t, 1, p.NoiseLines())
}

func TestALineWithoutEndAndNoiseWithoutEndEndTheChild(t *testing.T) {
	t.Parallel()
	for script, reason := range map[string]string{
		`yes chatter`:                            "no protocol messages",
		`head -c 80000000 /dev/zero | tr '\0' {`: "more than 64 MiB",
		// It lives on: the end of a process that goes by itself may be seen first.
		`head -c 67108865 /dev/zero | tr '\0' {; echo; cat`: "more than 64 MiB",
	} {
		p := start(t, script)
		_, err := p.Next()
		require.ErrorContains(t, err, reason)
		<-p.Done()
	}
}

func TestStandardErrorIsDrainedCleanedAndBounded(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var text bytes.Buffer
	log := slog.New(slog.NewJSONHandler(locked{&mu, &text}, &slog.HandlerOptions{Level: slog.LevelDebug})).With("mcp_server", "gh")
	p := start(t, `i=0; while [ $i -lt 20000 ]; do echo "line $i" >&2; i=$((i+1)); done; printf '\033[31msecret\033[0m in red\n' >&2; head -c 100000 /dev/zero | tr '\0' y >&2; echo >&2; echo last >&2; echo '{}'; cat`,
		func(o *child.Options) {
			o.Log = log
			o.Redact = func(s string) string { return strings.ReplaceAll(s, "secret", "[redacted]") }
		})
	_, err := p.Next()
	require.NoError(t, err)
	p.Stop()
	tail := p.Tail()
	require.LessOrEqual(t, len(tail), 200)
	require.Equal(t, "last", tail[len(tail)-1])
	require.Regexp(t, `^y+ … \(\d+ bytes more\)$`, tail[len(tail)-2])
	require.Equal(t, "[redacted] in red", tail[len(tail)-3])
	mu.Lock()
	defer mu.Unlock()
	require.Contains(t, text.String(), `"msg":"server_stderr","mcp_server":"gh","line":"line 0"`)
	require.Contains(t, text.String(), "server_stderr_suppressed")
	require.Less(t, strings.Count(text.String(), "\n"), 10000)
	require.NotContains(t, text.String(), "secret")
}

type locked struct {
	mu  *sync.Mutex
	out *bytes.Buffer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func TestEveryChildEndsInBoundedTime(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"ends with its input":             `cat`,
		"ignores the end of its input":    `sleep 600`,
		"ignores TERM":                    `trap '' TERM; while :; do sleep 600; done`,
		"leaves a grandchild":             `sleep 600 & echo '{}'; cat`,
		"a launcher with the real server": `(trap '' TERM; sleep 600) & wait`,
		"closes its output":               `exec >&-; sleep 600`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, script)
			began := time.Now()
			p.Stop()
			require.Less(t, time.Since(began), 5*time.Second)
			require.ErrorIs(t, p.Cause(), child.ErrStopped)
			_, err := p.Next()
			require.Error(t, err)
			require.ErrorIs(t, p.Write([]byte("x\n")), child.ErrNotWritten)
		})
	}
}

func TestAGrandchildThatHoldsThePipesHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	p := start(t, `setsid sleep 600 & echo "{}"; exit 4`)
	_, err := p.Next()
	require.NoError(t, err)
	_, err = p.Next()
	require.ErrorContains(t, err, "exited with status 4")
	select {
	case <-p.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("held up")
	}
}

func TestAChildThatClosesItsInputAndGoesOnIsEnded(t *testing.T) {
	t.Parallel()
	p := start(t, `exec <&-; echo '{}'; exec sleep 600`)
	_, err := p.Next()
	require.NoError(t, err)
	require.ErrorIs(t, p.Write([]byte("x\n")), child.ErrNotWritten)
	select {
	case <-p.Done():
		require.ErrorContains(t, p.Cause(), "closed its input")
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on")
	}
	dead := start(t, `echo '{}'; exit 7`)
	<-dead.Done()
	require.ErrorIs(t, dead.Write([]byte("x\n")), child.ErrNotWritten)
	require.ErrorContains(t, dead.Cause(), "exited with status 7")
}

func TestOnlyWhatIsDeclaredIsInTheEnvironment(t *testing.T) {
	t.Parallel()
	env := child.Environment(func(name string) string {
		return map[string]string{"PATH": "/bin", "TZ": "UTC", "BULLPEN_KEY": "x"}[name]
	},
		map[string]string{"B": "2", "PATH": "/mine"})
	require.Equal(t, []string{"B=2", "PATH=/mine", "TZ=UTC"}, env)
	_, err := child.Start(child.Options{Path: "sh", Env: []string{"PATH=/nowhere"}})
	require.EqualError(t, err, `the program "sh" is not in PATH`)
}
