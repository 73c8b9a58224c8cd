// Package apachekafka runs an Apache Kafka of one node for tests: the jars
// that deploy/kafka/fetch has put into the user's cache, on the machine's own
// Java (17 or newer), in KRaft mode, on loopback.
//
// It is imported from tests only. Nothing of a run is kept but what is in the
// data folder it was given.
package apachekafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/bus"
)

const (
	// readyTimeout is generous: a loaded machine takes many seconds to warm a
	// JVM.
	readyTimeout = 90 * time.Second
	stopTimeout  = 30 * time.Second
	// pollInterval is how often a starting broker is asked.
	pollInterval = 50 * time.Millisecond
)

// jvmFlags favour a quick start over throughput, and a small heap.
var jvmFlags = []string{"-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true"}

// Server is one node, which may be stopped and started again on the same
// data and ports. It is not safe for concurrent use.
type Server struct {
	home string
	dir  string
	addr string
	cmd  *exec.Cmd
	// exited is closed when the running process is gone.
	exited chan struct{}
}

// Start runs a node for the length of a test and returns when clients can
// work. The test is skipped unless BULLPEN_TEST_KAFKA=apache.
func Start(t testing.TB) *Server {
	t.Helper()
	if os.Getenv("BULLPEN_TEST_KAFKA") != "apache" {
		t.Skip("runs against Apache Kafka when BULLPEN_TEST_KAFKA=apache (make test-kafka)")
	}
	s, err := New(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	return s
}

// New prepares a node that keeps its data in dir, and formats dir if it holds
// none. It does not start it.
func New(dir string) (*Server, error) {
	home, err := findHome()
	if err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("java"); err != nil {
		return nil, fmt.Errorf("apache kafka: Java 17 or newer must be on the path: %w", err)
	}
	s := &Server{home: home, dir: dir}
	if s.addr, err = s.configure(); err != nil {
		return nil, err
	}
	if err := s.format(); err != nil {
		return nil, err
	}
	return s, nil
}

// findHome is the folder of jars: BULLPEN_KAFKA_HOME, or the newest version
// in the cache.
func findHome() (string, error) {
	if home := os.Getenv("BULLPEN_KAFKA_HOME"); home != "" {
		return home, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("apache kafka: %w", err)
	}
	homes, err := filepath.Glob(filepath.Join(cache, "bullpen", "kafka-[0-9]*[0-9]"))
	if err != nil || len(homes) == 0 {
		return "", errors.Join(errors.New("apache kafka: it is not in the cache; run deploy/kafka/fetch once"), err)
	}
	return slices.Max(homes), nil
}

// Brokers are the addresses to give to clients. They stay the same over
// restarts.
func (s *Server) Brokers() []string { return []string{s.addr} }

// Start runs the node and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("apache kafka: %w", err)
	}
	defer log.Close()
	s.cmd = s.java("kafka.Kafka", s.propertiesFile())
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("apache kafka: %w", err)
	}
	exited := make(chan struct{})
	s.exited = exited
	go func(cmd *exec.Cmd) {
		defer close(exited)
		_ = cmd.Wait()
	}(s.cmd)
	if err := s.ready(ctx); err != nil {
		return errors.Join(err, s.Kill())
	}
	return nil
}

func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	c, err := bus.Open(bus.Config{Brokers: s.Brokers(), ClientID: "apachekafka"})
	if err != nil {
		return err
	}
	defer c.Close()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if err = c.Ping(ctx); err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("apache kafka: it ended while starting: %s", s.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("apache kafka: it does not answer (%w): %s", err, s.lastWords())
		case <-tick.C:
		}
	}
}

// Stop asks the node to end, as an operator would, and waits.
func (s *Server) Stop() error {
	if s.gone() {
		return nil
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("apache kafka: %w", err)
	}
	late := time.NewTimer(stopTimeout)
	defer late.Stop()
	select {
	case <-s.exited:
		return nil
	case <-late.C:
		return errors.Join(fmt.Errorf("apache kafka: it did not stop within %s", stopTimeout), s.Kill())
	}
}

// Kill ends the node with SIGKILL and waits until it is gone.
func (s *Server) Kill() error {
	if s.gone() {
		return nil
	}
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("apache kafka: %w", err)
	}
	<-s.exited
	return nil
}

// Restart kills the node and starts it on the same data and ports.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Kill(); err != nil {
		return err
	}
	return s.Start(ctx)
}

func (s *Server) gone() bool {
	if s.exited == nil {
		return true
	}
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

func (s *Server) java(class string, args ...string) *exec.Cmd {
	line := append(slices.Clone(jvmFlags), "-cp", filepath.Join(s.home, "*"),
		"-Dlog4j2.configurationFile="+s.loggingFile(), class)
	cmd := exec.Command("java", append(line, args...)...)
	// Its own group: an interrupt at the terminal ends the test, which then
	// ends the node.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}
