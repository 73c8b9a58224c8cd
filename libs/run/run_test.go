package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/tool/v1/toolv1connect"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/libs/telemetry"
)

// TestMain makes the test binary a program of run.Main when a test starts it as one.
func TestMain(m *testing.M) {
	if program := os.Getenv(programEnv); program != "" {
		run.Main("program", programs()[program]...)
	}
	// The database server of the tests lives as long as they do.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/bullpenhq/bullpen/libs/pg/pgserver.(*Server).supervise"),
		goleak.IgnoreAnyFunction("github.com/bullpenhq/bullpen/libs/pg/pgserver.(*cluster).launch.func1"),
		goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2"),
	)
}

const principalKey config.Secret = "0123456789abcdef0123456789abcdef"

// migrations are a schema with one table, to see which schema a pool is open on.
func migrations() fstest.MapFS {
	return fstest.MapFS{
		"000001_notes.up.sql":   {Data: []byte("create table notes (text text)")},
		"000001_notes.down.sql": {Data: []byte("drop table notes")},
	}
}

// piece is a service made of functions; nil ones do nothing.
type piece struct {
	register func(*connect.Server)
	routes   func(*http.ServeMux)
	run      func(context.Context) error
	ready    func() []run.Condition
}

func (p piece) Register(s *connect.Server) {
	if p.register != nil {
		p.register(s)
	}
}

func (p piece) Routes(mux *http.ServeMux) {
	if p.routes != nil {
		p.routes(mux)
	}
}

func (p piece) Run(ctx context.Context) error {
	if p.run != nil {
		return p.run(ctx)
	}
	<-ctx.Done()
	return ctx.Err()
}

func (p piece) Ready(context.Context) []run.Condition {
	if p.ready == nil {
		return nil
	}
	return p.ready()
}

func module(name string, build func(h *run.Host) (run.Service, error)) run.Module {
	return run.Module{Name: name, New: func(_ context.Context, h *run.Host) (run.Service, error) { return build(h) }}
}

// plain is a module that does what p says.
func plain(name string, p piece) run.Module {
	return module(name, func(*run.Host) (run.Service, error) { return p, nil })
}

// company answers for one token, and to services only.
type company struct{}

func (company) VerifyToken(ctx context.Context, req *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
	caller, err := rpc.RequireKind(ctx, rpc.KindService)
	if err != nil {
		return nil, err
	}
	if req.GetToken() != "good" {
		return nil, fault.New(fault.Forbidden, "no such token")
	}
	return &toolv1.VerifyTokenResponse{Principal: &toolv1.PrincipalClaims{Kind: rpc.KindOperator, Id: "asked by " + caller.GetId()}}, nil
}

func companyModule() run.Module {
	return plain("company", piece{register: func(s *connect.Server) {
		toolv1connect.RegisterPrincipalServiceHandler(s, company{})
	}})
}

// whoAmI is a call that answers its caller.
func whoAmI() connect.Spec {
	return connect.Spec{StreamType: connect.StreamTypeUnary, Procedure: "/bullpen.test.v1.TrackerService/WhoAmI"}
}

func serveWhoAmI(ctx context.Context, _ connect.Spec, stream connect.ServerStream) error {
	if err := stream.Receive(&toolv1.VerifyTokenRequest{}); err != nil {
		return err
	}
	p, _ := rpc.PrincipalFrom(ctx)
	return stream.Send(&toolv1.VerifyTokenResponse{Principal: p})
}

// trackerModule asks company on GET /ask, and serves whoAmI.
func trackerModule() run.Module {
	m := module("tracker", func(h *run.Host) (run.Service, error) {
		client := toolv1connect.NewPrincipalServiceClient(h.Client("company"))
		return piece{
			register: func(s *connect.Server) { s.Register(connect.Method{Spec: whoAmI(), Handler: serveWhoAmI}) },
			routes: func(mux *http.ServeMux) {
				mux.HandleFunc("GET /ask", func(w http.ResponseWriter, r *http.Request) {
					res, err := client.VerifyToken(r.Context(), &toolv1.VerifyTokenRequest{Token: "good"})
					_, _ = fmt.Fprint(w, res.GetPrincipal().GetId(), err)
				})
			},
		}, nil
	})
	m.Peers = []string{"company"}
	return m
}

// logged is a log that a test may read while it is written.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func options(t *testing.T, modules ...run.Module) run.Options {
	t.Helper()
	tel, err := telemetry.New(telemetry.Options{Service: "test", Out: &logged{}})
	require.NoError(t, err)
	return run.Options{
		Name: "test", Modules: modules, Listen: "127.0.0.1:0", Telemetry: tel, Migrate: true,
		PrincipalKeys: []config.Secret{principalKey},
	}
}

// start starts a process that is stopped when the test ends, and waits until it is ready.
func start(t *testing.T, o run.Options) *run.Process {
	t.Helper()
	p, _ := startUnready(t, o)
	ready(t, p)
	return p
}

func startUnready(t *testing.T, o run.Options) (p *run.Process, stop context.CancelFunc) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	p, err := run.Start(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		stop()
		<-p.Done()
	})
	return p, stop
}

func ready(t *testing.T, p *run.Process) {
	t.Helper()
	select {
	case <-p.Ready():
	case <-p.Done():
		require.NoError(t, p.Wait())
		t.Fatal("the process ended before it was ready")
	case <-time.After(time.Minute):
		t.Fatal("the process did not become ready")
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, url, nil)
	require.NoError(t, err)
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, res.Body.Close()) }()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(body)
}

func readiness(t *testing.T, p *run.Process) (int, run.Readiness) {
	t.Helper()
	status, body := get(t, p.URL()+"/readyz")
	var r run.Readiness
	require.NoError(t, json.Unmarshal([]byte(body), &r), body)
	require.Equal(t, r.Ready, status == http.StatusOK)
	return status, r
}

func broker(t *testing.T, address string) []string {
	t.Helper()
	b, err := embedded.Start(context.WithoutCancel(t.Context()), embedded.Options{Addr: address})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b.Brokers()
}

func names(r run.Readiness) string {
	var all []string
	for _, c := range r.Conditions {
		all = append(all, fmt.Sprintf("%s/%s=%t", c.Service, c.Name, c.OK))
	}
	return strings.Join(all, " ")
}
