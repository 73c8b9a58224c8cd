// Package telemetry makes a process's logger, metrics registry and tracer provider, and nothing global: each is handed on to
// whoever writes to it.
//
// Log lines carry the trace they belong to when they are written with a context. Values of [config.Secret] never print,
// whatever they are wrapped in. Traces are sampled and sent only when an OTLP endpoint is configured; without one, spans cost
// next to nothing and still give log lines of one call the same trace id, across services.
package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// tracesPath is where a collector takes traces over HTTP.
const tracesPath = "/v1/traces"

// Options say what the process is and where its telemetry goes.
type Options struct {
	// Service names the process in traces, and in logs as `process`.
	Service string
	// Level is `debug`, `info`, `warn` or `error`; empty means info.
	Level string
	// Format is `text` or `json`; empty means text.
	Format string
	// OTLPEndpoint is a URL such as `http://collector:4318`; one without a path gets `/v1/traces`. Empty sends no traces.
	OTLPEndpoint string
	// Out receives log lines; nil means standard error.
	Out io.Writer
}

// Telemetry is what a process observes itself with.
type Telemetry struct {
	// Log is the process's logger.
	Log *slog.Logger
	// Registry holds the Go runtime's and the process's metrics from the start.
	Registry *prometheus.Registry
	// TracerProvider makes the process's spans.
	TracerProvider trace.TracerProvider
	// Propagator reads and writes W3C trace context and baggage.
	Propagator propagation.TextMapPropagator

	shutdown func(context.Context) error
}

// New refuses an unknown level, format or endpoint. It connects to nothing: spans that cannot be delivered are dropped.
func New(o Options) (*Telemetry, error) {
	if o.Out == nil {
		o.Out = os.Stderr
	}
	handler, err := newHandler(o.Out, o.Level, o.Format)
	if err != nil {
		return nil, err
	}
	provider, err := newProvider(o.Service, o.OTLPEndpoint)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &Telemetry{
		Log:            slog.New(handler).With("process", o.Service),
		Registry:       registry,
		TracerProvider: provider,
		Propagator:     propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}),
		shutdown:       provider.Shutdown,
	}, nil
}

// Shutdown sends the spans that still wait, until ctx ends.
func (t *Telemetry) Shutdown(ctx context.Context) error { return t.shutdown(ctx) }

func newProvider(service, endpoint string) (*sdktrace.TracerProvider, error) {
	if endpoint == "" {
		return sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())), nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the OTLP endpoint must be an http or https URL, not %q", endpoint)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = tracesPath
	}
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(u.String()))
	if err != nil {
		return nil, fmt.Errorf("export traces to %q: %w", endpoint, err)
	}
	return sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", service))),
	), nil
}
