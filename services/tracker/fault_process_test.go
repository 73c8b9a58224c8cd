package tracker_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/tracker"
)

// The environment of a test binary that is to be the tracker's process, until it is killed.
const (
	faultDSN     = "BULLPEN_TEST_FAULT_DSN"
	faultBrokers = "BULLPEN_TEST_FAULT_BROKERS"
)

func faultKeys() (*rpc.Keys, error) {
	return rpc.NewKeys(config.Secret(strings.Repeat("k", rpc.MinKeyBytes)))
}

// serveUntilKilled is a whole process of the tracker. It says on standard output where it serves, and ends with its standard input, so that
// it outlives no test.
func serveUntilKilled(dsn, brokers string) error {
	ctx := context.Background()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	pool, err := pg.Open(ctx, dsn, "tracker")
	if err != nil {
		return err
	}
	b, err := bus.Open(bus.Config{Brokers: strings.Split(brokers, ","), ClientID: "child"})
	if err != nil {
		return err
	}
	service, err := tracker.New(ctx, tracker.Deps{
		Pool: pool, Bus: b, Company: roster{}, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Now: time.Now, Node: uuid.NewString(),
	})
	if err != nil {
		return err
	}
	keys, err := faultKeys()
	if err != nil {
		return err
	}
	server := rpc.NewServer(rpc.ServerOptions{Service: "tracker", Log: slog.New(slog.DiscardHandler), Keys: keys})
	service.Register(server)
	mux := http.NewServeMux()
	rpc.Mount(mux, server)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	go func() { ended <- (&http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}).Serve(listener) }()
	go func() { ended <- service.Run(ctx) }()
	go func() {
		for tick := time.Tick(time.Millisecond); !service.Ready(ctx)[0].OK; {
			<-tick
		}
		fmt.Println(listener.Addr())
	}()
	return <-ended
}

// cutter is a proxy that cuts connections.
type cutter struct {
	listener net.Listener
	mu       sync.Mutex
	dial     func() (net.Conn, error) // nil while there is nothing behind it
	open     []net.Conn
}

func newCutter(t *testing.T, dial func() (net.Conn, error)) *cutter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cutter{listener: listener, dial: dial}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() { c.carry(near) })
		}
	})
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		c.cut(1)
		group.Wait()
	})
	return c
}

func (c *cutter) to(dial func() (net.Conn, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dial = dial
}

func (c *cutter) carry(near net.Conn) {
	defer near.Close()
	c.mu.Lock()
	dial := c.dial
	c.mu.Unlock()
	if dial == nil {
		return
	}
	far, err := dial()
	if err != nil {
		return
	}
	defer far.Close()
	c.mu.Lock()
	c.open = append(c.open, near)
	c.mu.Unlock()
	go func() {
		_, _ = io.Copy(far, near)
		_ = far.Close()
	}()
	_, _ = io.Copy(near, far)
	c.mu.Lock()
	c.open = slices.DeleteFunc(c.open, func(n net.Conn) bool { return n == near })
	c.mu.Unlock()
}

// cut ends a share of the connections, whatever is under way on them.
func (c *cutter) cut(share float64) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		if rand.Float64() < share {
			n++
			_ = conn.Close()
		}
	}
	return n
}

// throughCutter answers the address of a database on a Unix socket behind a proxy that cuts.
func throughCutter(t *testing.T, dsn string) (string, *cutter) {
	t.Helper()
	c, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	socket := filepath.Join(c.Host, ".s.PGSQL."+strconv.Itoa(int(c.Port)))
	proxy := newCutter(t, func() (net.Conn, error) { return net.Dial("unix", socket) })
	u := url.URL{Scheme: "postgres", User: url.User(c.User), Host: proxy.listener.Addr().String(), Path: c.Database, RawQuery: "sslmode=disable"}
	return u.String(), proxy
}

// process is the tracker in a process of its own, behind a proxy; whenever it ends it is started again.
type process struct {
	t       *testing.T
	env     []string
	door    *cutter
	mu      sync.Mutex
	running *exec.Cmd
	stopped bool
	ended   chan struct{}
	starts  int
}

func startProcess(t *testing.T, dsn string, brokers []string) *process {
	t.Helper()
	p := &process{
		t: t, env: append(os.Environ(), faultDSN+"="+dsn, faultBrokers+"="+strings.Join(brokers, ",")), door: newCutter(t, nil), ended: make(chan struct{}),
	}
	go p.supervise()
	t.Cleanup(func() {
		p.mu.Lock()
		p.stopped = true
		p.mu.Unlock()
		p.kill()
		<-p.ended
	})
	return p
}

func (p *process) supervise() {
	defer close(p.ended)
	for {
		child := exec.Command(os.Args[0])
		child.Env = p.env
		in, err := child.StdinPipe()
		if err != nil {
			p.t.Error(err)
			return
		}
		out, err := child.StdoutPipe()
		if err != nil {
			p.t.Error(err)
			return
		}
		p.mu.Lock()
		if p.stopped {
			p.mu.Unlock()
			return
		}
		err = child.Start()
		p.running = child
		p.starts++
		p.mu.Unlock()
		if err != nil {
			p.t.Error(err)
			return
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err == nil {
			address := strings.TrimSpace(line)
			p.door.to(func() (net.Conn, error) { return net.Dial("tcp", address) })
		}
		_, _ = io.Copy(io.Discard, out)
		_ = child.Wait() // it was killed, or its database was away when it began
		_ = in.Close()
		p.door.to(nil)
		pause(p.t.Context(), 50*time.Millisecond)
	}
}

// kill ends the process at once.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running != nil {
		_ = p.running.Process.Kill()
	}
}
