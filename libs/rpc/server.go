package rpc

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/grpcreflect/v2"
	"connectrpc.com/otelconnect"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// DefaultMaxDeadline bounds a call whose caller set no deadline, or a longer one.
const DefaultMaxDeadline = 5 * time.Minute

// TokenVerifier answers whom an API token stands for. It refuses an unknown or ended token with class forbidden; any other
// failure means that the token could not be checked.
type TokenVerifier interface {
	VerifyToken(ctx context.Context, token string) (*Principal, error)
}

// ServerOptions is what a server needs from its process.
type ServerOptions struct {
	// Service names the process in logs.
	Service string
	// Log receives panics and failures that no handler claimed, with their causes. Required.
	Log *slog.Logger
	// Metrics, if not nil, gets the histogram of calls by procedure and code.
	Metrics prometheus.Registerer
	// TracerProvider, if nil, makes no spans.
	TracerProvider trace.TracerProvider
	// Propagator reads the trace context of incoming calls; nil means W3C.
	Propagator propagation.TextMapPropagator
	// Keys verify the principals of other services. Required.
	Keys *Keys
	// Tokens verifies API tokens, and its answers are kept for up to 30 seconds; nil refuses every token.
	Tokens TokenVerifier
	// MaxDeadline bounds unary calls; 0 means [DefaultMaxDeadline].
	MaxDeadline time.Duration
	// Now is the clock for signatures; nil means time.Now.
	Now func() time.Time
}

// NewServer answers a server with every interceptor in place and the reflection service registered, which asks its callers
// for a principal like all others. It panics when Log or Keys is missing: that is a mistake in the program, not in its settings.
func NewServer(o ServerOptions) *connect.Server {
	if o.Log == nil || o.Keys == nil {
		panic(errors.New("rpc.NewServer: Log and Keys are required"))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxDeadline <= 0 {
		o.MaxDeadline = DefaultMaxDeadline
	}
	log := o.Log.With("server", o.Service)
	auth := authenticator{keys: o.Keys, now: o.Now}
	if o.Tokens != nil {
		auth.tokens = cacheTokens(o.Tokens, o.Now)
	}
	s := connect.NewServer(
		serverSpans(o.TracerProvider, o.Propagator),
		recovered(log),
		observed(log, o.Metrics),
		faults(log),
		auth.intercept,
		checkedOperation,
		deadline(log, o.MaxDeadline),
		prompt,
		validated,
	)
	grpcreflect.Register(s)
	return s
}

// otelOptions makes spans join the trace of the caller; measuring is left to the Prometheus interceptors.
func otelOptions(tp trace.TracerProvider, p propagation.TextMapPropagator) []otelconnect.Option {
	if tp == nil {
		tp = noop.NewTracerProvider()
	}
	if p == nil {
		p = propagation.TraceContext{}
	}
	return []otelconnect.Option{
		otelconnect.WithTracerProvider(tp),
		otelconnect.WithPropagator(p),
		otelconnect.WithTrustRemote(),
		otelconnect.WithoutMetrics(),
		// In process there is no protocol to name, and a trace should read the same.
		otelconnect.WithRPCSystem(otelconnect.ConnectRPCSystem),
	}
}

func serverSpans(tp trace.TracerProvider, p propagation.TextMapPropagator) connect.ServerInterceptor {
	interceptor, err := otelconnect.NewServerInterceptor(otelOptions(tp, p)...)
	if err != nil {
		// Only instruments can fail to be made, and there are none.
		panic(err)
	}
	return interceptor
}

func clientSpans(tp trace.TracerProvider, p propagation.TextMapPropagator) connect.ClientInterceptor {
	interceptor, err := otelconnect.NewClientInterceptor(otelOptions(tp, p)...)
	if err != nil {
		panic(err)
	}
	return interceptor
}
