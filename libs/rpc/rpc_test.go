package rpc_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/tool/v1/toolv1connect"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	keyA config.Secret = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	keyB config.Secret = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// answer is a PrincipalService whose one method is a function.
type answer func(ctx context.Context, req *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error)

func (a answer) VerifyToken(ctx context.Context, req *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
	return a(ctx, req)
}

// whoami answers the caller.
func whoami(ctx context.Context, _ *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
	p, _ := rpc.PrincipalFrom(ctx)
	return &toolv1.VerifyTokenResponse{Principal: p}, nil
}

// writeSpec is the same method without the promise to change nothing.
func writeSpec() connect.Spec {
	method := toolv1.File_bullpen_tool_v1_principal_service_proto.Services().ByName("PrincipalService").Methods().ByName("VerifyToken")
	return connect.Spec{StreamType: connect.StreamTypeUnary, Schema: method, Procedure: "/bullpen.test.v1.WriteService/Write"}
}

// write serves handle under writeSpec.
func write(s *connect.Server, handle answer) {
	s.Register(connect.Method{Spec: writeSpec(), Handler: func(ctx context.Context, _ connect.Spec, stream connect.ServerStream) error {
		var req toolv1.VerifyTokenRequest
		if err := stream.Receive(&req); err != nil {
			return err
		}
		res, err := handle(ctx, &req)
		if err != nil {
			return err
		}
		return stream.Send(res)
	}})
}

func callWrite(ctx context.Context, c *connect.Client) error {
	return c.CallUnary(ctx, writeSpec(), &toolv1.VerifyTokenRequest{Token: "t"}, &toolv1.VerifyTokenResponse{})
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

// bundle is a server and the ways to it.
type bundle struct {
	server *connect.Server
	log    *logged
	keys   *rpc.Keys
	dial   func() connect.Transport
}

func (b *bundle) client(service string) *connect.Client {
	return rpc.NewClient(b.dial(), rpc.ClientOptions{Service: service, Keys: b.keys})
}

// ask calls the read as service "turn".
func (b *bundle) ask(ctx context.Context) (*toolv1.VerifyTokenResponse, error) {
	return toolv1connect.NewPrincipalServiceClient(b.client("turn")).VerifyToken(ctx, &toolv1.VerifyTokenRequest{Token: "t"})
}

// transports are the ways to a server, by name.
func transports() map[string]func(*testing.T, *connect.Server) connect.Transport {
	return map[string]func(*testing.T, *connect.Server) connect.Transport{
		"over HTTP":  overHTTP,
		"in process": func(_ *testing.T, s *connect.Server) connect.Transport { return rpc.InProcess(s) },
	}
}

// onBothTransports runs one test over HTTP on loopback and in process. The server is o's, with what register adds.
func onBothTransports(t *testing.T, o rpc.ServerOptions, register func(*connect.Server), test func(t *testing.T, b *bundle)) {
	t.Helper()
	for name, dial := range transports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t, o, register)
			b.dial = func() connect.Transport { return dial(t, b.server) }
			test(t, b)
		})
	}
}

func newBundle(t *testing.T, o rpc.ServerOptions, register func(*connect.Server)) *bundle {
	t.Helper()
	keys, err := rpc.NewKeys(keyA)
	require.NoError(t, err)
	b := &bundle{log: &logged{}, keys: keys}
	o.Log = slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if o.Keys == nil {
		o.Keys = keys
	}
	b.server = rpc.NewServer(o)
	register(b.server)
	return b
}

func serveHTTP(t *testing.T, s *connect.Server) string {
	t.Helper()
	mux := http.NewServeMux()
	rpc.Mount(mux, s)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func overHTTP(t *testing.T, s *connect.Server) connect.Transport {
	t.Helper()
	transport := rpc.HTTPTransport(serveHTTP(t, s))
	t.Cleanup(transport.Close)
	return transport
}

func serving(a answer) func(*connect.Server) {
	return func(s *connect.Server) {
		toolv1connect.RegisterPrincipalServiceHandler(s, a)
		write(s, a)
	}
}

// headers is a client without our interceptors that sends what it is told.
func headers(transport connect.Transport, set map[string]string) toolv1connect.PrincipalServiceClient {
	return toolv1connect.NewPrincipalServiceClient(connect.NewClient(transport, func(next connect.ClientFunc) connect.ClientFunc {
		return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
			info, _ := connect.CallInfoForClientContext(ctx)
			for name, value := range set {
				info.RequestHeader().Set(name, value)
			}
			return next(ctx, spec)
		}
	}))
}

// eventually waits for a line that another goroutine writes after it has answered.
func eventually(t *testing.T, log *logged, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), text) }, 5*time.Second, time.Millisecond)
}
