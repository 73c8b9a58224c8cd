package rpc_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect/v2"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/tool/v1/toolv1connect"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

func TestOutcomeIsUnknownExactlyWhenNobodySaidWhatHappened(t *testing.T) {
	t.Parallel()
	keys, err := rpc.NewKeys(keyA)
	require.NoError(t, err)
	call := func(t *testing.T, url string) *fault.Error {
		t.Helper()
		transport := rpc.HTTPTransport(url)
		t.Cleanup(transport.Close)
		return rpc.FromError(callWrite(t.Context(), rpc.NewClient(transport, rpc.ClientOptions{Service: "turn", Keys: keys})))
	}
	t.Run("connection refused", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		address := l.Addr().String()
		require.NoError(t, l.Close())
		f := call(t, "http://"+address)
		require.Equal(t, fault.Unavailable, f.Class)
		require.Empty(t, f.Outcome)
		require.NotContains(t, f.Message, address)
	})
	t.Run("hung up after the request", func(t *testing.T) {
		t.Parallel()
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			panic(http.ErrAbortHandler)
		}))
		t.Cleanup(s.Close)
		f := call(t, s.URL)
		require.Equal(t, fault.Unavailable, f.Class)
		require.Equal(t, fault.OutcomeUnknown, f.Outcome)
	})
	t.Run("a proxy answered in its stead", func(t *testing.T) {
		t.Parallel()
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
		t.Cleanup(s.Close)
		require.Equal(t, fault.OutcomeUnknown, call(t, s.URL).Outcome)
	})
	t.Run("it was sent elsewhere", func(t *testing.T) {
		t.Parallel()
		elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			t.Error("a signed principal followed a redirect")
		}))
		t.Cleanup(elsewhere.Close)
		s := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
		t.Cleanup(s.Close)
		require.Equal(t, fault.Unavailable, call(t, s.URL).Class)
	})
}

// post sends JSON as a stranger with curl would, signed.
func post(t *testing.T, b *bundle, url, procedure, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+procedure, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Bullpen-Principal", b.keys.Sign(&rpc.Principal{Kind: rpc.KindSeat, Id: "ada", DisplayName: "Ada"}, 0))
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, res.Body.Close()) }()
	answer, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(answer)
}

const verifyToken = "/bullpen.tool.v1.PrincipalService/VerifyToken"

func TestPublicJSONIsSnakeCaseAndStrict(t *testing.T) {
	t.Parallel()
	d := itemDescriptor(t)
	b := newBundle(t, rpc.ServerOptions{}, func(s *connect.Server) { serving(whoami)(s); takingItems(d)(s) })
	url := serveHTTP(t, b.server)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)

	status, body := post(t, b, url, verifyToken, `{"token":"t"}`)
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, strings.ReplaceAll(body, " ", ""), `"display_name":"Ada"`)
	require.Contains(t, strings.ReplaceAll(body, " ", ""), `"seat":""`, "empty values are shown")

	for request, says := range map[string]string{
		`{"token":"t","tokn":1}`: "unknown argument `tokn`",
		`{"token":["t"]}`:        "an argument has a shape that bullpen.tool.v1.VerifyTokenRequest does not have",
		`[]`:                     "must be one JSON object",
		`{"token":`:              "must be one JSON object",
		`{"` + strings.Repeat("k", 1<<20) + `":1}`: "its name has 1048576 bytes",
		``: "`token` must not be empty",
		`{"token":"` + strings.Repeat("x", 257) + `"}`:          "`token` must be at most 256 characters",
		`{"token":"` + strings.Repeat("x", rpc.MaxRequestBytes): "larger than the 8 MiB",
	} {
		status, body := post(t, b, url, verifyToken, request)
		require.Equal(t, http.StatusBadRequest, status, body)
		require.Contains(t, body, says)
		require.Less(t, len(body), 2048, "a refusal does not send the request back")
		require.Contains(t, body, "bullpen.tool.v1.Refusal", "a program finds the class beside the sentence")
	}
	status, body = post(t, b, url, "/bullpen.test.v1.ItemService/CreateItem", `{"title":"t","ask":"x","steps":[{"add":["ab"]},{"ad":[]}]}`)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, body, "unknown argument `steps.ad`")
	status, body = post(t, b, url, "/bullpen.test.v1.ItemService/CreateItem", `{"title":"t","ask":"x","waitingOn":{"add":["ab"]}}`)
	require.Equal(t, http.StatusOK, status, body)
}

func TestTraceCrossesTheCall(t *testing.T) {
	t.Parallel()
	inHandler := func(ctx context.Context, _ *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
		return &toolv1.VerifyTokenResponse{Principal: &rpc.Principal{Id: trace.SpanContextFromContext(ctx).TraceID().String()}}, nil
	}
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	onBothTransports(t, rpc.ServerOptions{TracerProvider: provider}, serving(inHandler), func(t *testing.T, b *bundle) {
		ctx, span := provider.Tracer("test").Start(t.Context(), "turn")
		defer span.End()
		c := rpc.NewClient(b.dial(), rpc.ClientOptions{Service: "turn", Keys: b.keys, TracerProvider: provider})
		var res toolv1.VerifyTokenResponse
		require.NoError(t, c.CallUnary(ctx, writeSpec(), &toolv1.VerifyTokenRequest{Token: "t"}, &res))
		require.Equal(t, span.SpanContext().TraceID().String(), res.GetPrincipal().GetId())
	})
}

func TestReflectionAsksForACallerAndHealthDoesNot(t *testing.T) {
	t.Parallel()
	b := newBundle(t, rpc.ServerOptions{}, serving(whoami))
	ready := true
	mux := http.NewServeMux()
	rpc.Mount(mux, b.server)
	rpc.MountHealth(mux, func(context.Context) bool { return ready })
	s := httptest.NewUnstartedServer(mux)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	t.Cleanup(s.Client().CloseIdleConnections)

	health := grpchealth.NewClient(s.Client(), s.URL)
	res, err := health.Check(t.Context(), &grpchealth.CheckRequest{})
	require.NoError(t, err)
	require.Equal(t, grpchealth.StatusServing, res.Status)
	ready = false
	res, err = health.Check(t.Context(), &grpchealth.CheckRequest{Service: "bullpen.tool.v1.PrincipalService"})
	require.NoError(t, err)
	require.Equal(t, grpchealth.StatusNotServing, res.Status)

	inProcess := rpc.InProcess(b.server)
	stranger := grpcreflect.NewClient(connect.NewClient(inProcess)).NewStream(t.Context())
	_, err = stranger.ListServices()
	require.Equal(t, connect.CodeUnauthenticated, connect.CodeOf(err))
	_ = stranger.Close()

	known := grpcreflect.NewClient(rpc.NewClient(inProcess, rpc.ClientOptions{Service: "turn", Keys: b.keys})).NewStream(t.Context())
	names, err := known.ListServices()
	require.NoError(t, err)
	require.Contains(t, names, toolv1.File_bullpen_tool_v1_principal_service_proto.Services().Get(0).FullName())
	require.NoError(t, known.Close())
}

func TestAnswersAreCompressedForStrangersAndWhenItIsWorthIt(t *testing.T) {
	t.Parallel()
	long := func(_ context.Context, req *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
		name := "Ada"
		if req.GetToken() == "long" {
			name = strings.Repeat("Ada ", 4<<10)
		}
		return &toolv1.VerifyTokenResponse{Principal: &rpc.Principal{DisplayName: name}}, nil
	}
	b := newBundle(t, rpc.ServerOptions{}, serving(long))
	url := serveHTTP(t, b.server)
	for token, want := range map[string]string{"short": "", "long": "gzip"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+verifyToken, strings.NewReader(`{"token":"`+token+`"}`))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept-Encoding", "gzip")
		req.Header.Set("Bullpen-Principal", b.keys.Sign(&rpc.Principal{Kind: rpc.KindSeat, Id: "ada", DisplayName: "Ada"}, 0))
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.Equal(t, want, res.Header.Get("Content-Encoding"), token)
	}
	transport := rpc.HTTPTransport(url)
	t.Cleanup(transport.Close)
	ctx, info := connect.NewClientContext(t.Context())
	client := toolv1connect.NewPrincipalServiceClient(rpc.NewClient(transport, rpc.ClientOptions{Service: "turn", Keys: b.keys}))
	_, err := client.VerifyToken(ctx, &toolv1.VerifyTokenRequest{Token: "long"})
	require.NoError(t, err)
	require.Equal(t, "identity", info.ResponseEncoding, "between services")
}

func TestAShortCallIsOnePacket(t *testing.T) {
	t.Parallel()
	keys, err := rpc.NewKeys(keyA)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	arrived := make(chan []byte, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		packet := make([]byte, 64<<10)
		n, _ := c.Read(packet)
		arrived <- packet[:n]
		_, _ = io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
	}()
	transport := rpc.HTTPTransport("http://" + l.Addr().String())
	t.Cleanup(transport.Close)
	require.Error(t, callWrite(t.Context(), rpc.NewClient(transport, rpc.ClientOptions{Service: "turn", Keys: keys})))
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(<-arrived)))
	require.NoError(t, err)
	message, err := io.ReadAll(req.Body)
	require.NoError(t, err, "what it says comes with its headers")
	require.Len(t, message, int(req.ContentLength))
}

func TestALongCallArrivesWhole(t *testing.T) {
	t.Parallel()
	b := newBundle(t, rpc.ServerOptions{}, serving(whoami))
	transport := rpc.HTTPTransport(serveHTTP(t, b.server))
	t.Cleanup(transport.Close)
	client := toolv1connect.NewPrincipalServiceClient(rpc.NewClient(transport, rpc.ClientOptions{Service: "turn", Keys: b.keys}))
	_, err := client.VerifyToken(t.Context(), &toolv1.VerifyTokenRequest{Token: strings.Repeat("x", 1<<20)})
	require.Contains(t, rpc.FromError(err).Message, "must be at most 256 characters")
}
