package embedded_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/bustest"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
)

// brokerEnv makes the test binary a broker: its data folder and address.
const brokerEnv = "BULLPEN_EMBEDDED_TEST_BROKER"

func TestMain(m *testing.M) {
	if order := os.Getenv(brokerEnv); order != "" {
		dir, addr, _ := strings.Cut(order, " ")
		b, err := embedded.Start(context.Background(), embedded.Options{DataDir: dir, Addr: addr})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("listening", b.Brokers()[0])
		select {}
	}
	bustest.Main(m)
}

// process is a broker in a process of its own, which can be killed.
type process struct {
	dir  string
	addr string
	cmd  *exec.Cmd
}

func (p *process) start(t testing.TB) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	p.cmd = exec.Command(exe)
	p.cmd.Env = append(os.Environ(), brokerEnv+"="+p.dir+" "+p.addr)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "the broker starts")
	p.addr = strings.TrimPrefix(lines.Text(), "listening ")
}

func (p *process) kill(t testing.TB) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Kill())
	require.Error(t, p.cmd.Wait(), "it was killed")
}

func TestSuiteWithKilledBroker(t *testing.T) {
	p := &process{dir: t.TempDir()}
	p.start(t)
	t.Cleanup(func() { p.kill(t) })
	bustest.Suite(t, bustest.Broker{
		Addrs: []string{p.addr},
		Restart: func(t testing.TB) {
			t.Helper()
			p.kill(t)
			p.start(t)
		},
	})
}

// testContext ends a test that waits for what does not come.
func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func start(t testing.TB, opts embedded.Options) *embedded.Broker {
	t.Helper()
	b, err := embedded.Start(testContext(t), opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

func connect(t testing.TB, b *embedded.Broker) bus.Bus {
	t.Helper()
	c, err := bus.Open(bus.Config{Brokers: b.Brokers()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

var topic = bus.Topic{Name: "t", Partitions: 1}

func publish(t testing.TB, c bus.Bus, values ...string) {
	t.Helper()
	require.NoError(t, c.EnsureTopics(testContext(t), topic))
	for _, v := range values {
		require.NoError(t, c.Publish(testContext(t), bus.Message{Topic: topic.Name, Key: "k", Value: []byte(v)}))
	}
}

func values(t testing.TB, c bus.Bus) []string {
	t.Helper()
	msgs, err := c.ReadAll(testContext(t), topic.Name)
	require.NoError(t, err)
	var vs []string
	for _, m := range msgs {
		vs = append(vs, string(m.Value))
	}
	return vs
}

func TestClosingKeepsMessagesAndOffsets(t *testing.T) {
	t.Parallel()
	opts := embedded.Options{DataDir: t.TempDir()}
	b := start(t, opts)
	c := connect(t, b)
	publish(t, c, "1", "2", "3")
	s, err := c.Subscribe(topic.Name, "g")
	require.NoError(t, err)
	msgs, err := s.Fetch(testContext(t), 2)
	require.NoError(t, err)
	require.NoError(t, s.Commit(testContext(t), msgs...))
	require.NoError(t, c.Close())
	require.NoError(t, b.Close())
	require.NoError(t, b.Close(), "again")

	c = connect(t, start(t, opts))
	require.Equal(t, []string{"1", "2", "3"}, values(t, c))
	s, err = c.Subscribe(topic.Name, "g")
	require.NoError(t, err)
	next, err := s.Fetch(testContext(t), 1)
	require.NoError(t, err)
	require.Equal(t, int64(len(msgs)), next[0].Offset)
}

func TestTornEndIsCutWithAWarning(t *testing.T) {
	t.Parallel()
	p := &process{dir: t.TempDir()}
	p.start(t)
	c, err := bus.Open(bus.Config{Brokers: []string{p.addr}})
	require.NoError(t, err)
	publish(t, c, "1", "2", "3")
	require.NoError(t, c.Close())
	p.kill(t)
	cut(t, p.dir, "*.dat", func(size int64) int64 { return size - 5 })

	var log strings.Builder
	opts := embedded.Options{DataDir: p.dir, Log: slog.New(slog.NewTextHandler(&log, nil))}
	b := start(t, opts)
	require.Contains(t, log.String(), "truncating")
	c = connect(t, b)
	publish(t, c, "4")
	require.Equal(t, []string{"1", "2", "4"}, values(t, c))
	require.NoError(t, c.Close())
	require.NoError(t, b.Close())
	require.Equal(t, []string{"1", "2", "4"}, values(t, connect(t, start(t, opts))))
}

// cut shortens the one file of that name.
func cut(t *testing.T, dir, pattern string, length func(size int64) int64) {
	t.Helper()
	var found []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if ok, _ := filepath.Match(pattern, filepath.Base(path)); ok && err == nil {
			found = append(found, path)
		}
		return err
	}))
	require.Len(t, found, 1)
	info, err := os.Stat(found[0])
	require.NoError(t, err)
	require.NoError(t, os.Truncate(found[0], length(info.Size())))
}

func TestTornOffsetsAreHandedOutAgain(t *testing.T) {
	t.Parallel()
	p := &process{dir: t.TempDir()}
	p.start(t)
	c, err := bus.Open(bus.Config{Brokers: []string{p.addr}})
	require.NoError(t, err)
	publish(t, c, "1")
	s, err := c.Subscribe(topic.Name, "g")
	require.NoError(t, err)
	msgs, err := s.Fetch(testContext(t), 1)
	require.NoError(t, err)
	require.NoError(t, s.Commit(testContext(t), msgs...))
	require.NoError(t, c.Close())
	p.kill(t)
	cut(t, p.dir, "groups.log", func(int64) int64 { return 5 })

	c = connect(t, start(t, embedded.Options{DataDir: p.dir}))
	s, err = c.Subscribe(topic.Name, "g")
	require.NoError(t, err)
	msgs, err = s.Fetch(testContext(t), 1)
	require.NoError(t, err)
	require.Equal(t, "1", string(msgs[0].Value))
}

func TestUnreadableDataIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "meta.json"), []byte("{"), 0o600))
	_, err := embedded.Start(testContext(t), embedded.Options{DataDir: dir})
	require.ErrorContains(t, err, "the data in "+dir+" cannot be used; move the folder away to start empty")
}

func TestFolderIsUsedByOneBroker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, embedded.Options{DataDir: dir})
	_, err := embedded.Start(testContext(t), embedded.Options{DataDir: dir})
	require.ErrorContains(t, err, dir+" is in use by another broker")
	require.NoError(t, first.Close())
	start(t, embedded.Options{DataDir: dir})
}

func TestAddressIsLoopback(t *testing.T) {
	t.Parallel()
	first := start(t, embedded.Options{Addr: "localhost:0"})
	require.Regexp(t, `^127\.0\.0\.1:\d+$`, first.Brokers()[0])
	for addr, complaint := range map[string]string{
		"0.0.0.0:9092":     "listens on 127.0.0.1 only",
		":9092":            "listens on 127.0.0.1 only",
		"9092":             "is not host:port",
		"127.0.0.1:kafka":  "is not a port",
		first.Brokers()[0]: "cannot be listened on; stop what uses it or choose another",
	} {
		_, err := embedded.Start(testContext(t), embedded.Options{Addr: addr})
		require.ErrorContains(t, err, complaint, addr)
	}
}

func TestMemoryBrokerForgets(t *testing.T) {
	t.Parallel()
	b := start(t, embedded.Options{})
	c := connect(t, b)
	publish(t, c, "1")
	require.Equal(t, []string{"1"}, values(t, c))
	require.NoError(t, c.Close())
	require.NoError(t, b.Close())
	_, err := connect(t, start(t, embedded.Options{})).ReadAll(testContext(t), topic.Name)
	require.ErrorContains(t, err, "topic t")
}
