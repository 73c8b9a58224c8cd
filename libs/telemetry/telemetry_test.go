package telemetry_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	"go.uber.org/goleak"

	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, o telemetry.Options) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	return tel
}

func TestLogLineCarriesItsTrace(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	tel := start(t, telemetry.Options{Service: "tracker", Format: "json", Out: &out})
	ctx, span := tel.TracerProvider.Tracer("test").Start(t.Context(), "call")
	defer span.End()
	tel.Log.With("a", 1).WithGroup("g").InfoContext(ctx, "with")
	tel.Log.Info("without")
	with, without, _ := strings.Cut(out.String(), "\n")
	require.Contains(t, with, span.SpanContext().TraceID().String())
	require.Contains(t, with, `"process":"tracker"`)
	require.NotContains(t, without, "trace_id")

	carrier := propagation.MapCarrier{}
	tel.Propagator.Inject(ctx, carrier)
	require.Contains(t, carrier["traceparent"], span.SpanContext().TraceID().String())
}

func TestSecretDoesNotPrintFromInsideAStruct(t *testing.T) {
	t.Parallel()
	type inner struct{ hidden config.Secret }
	type settings struct {
		Name   string
		inner  inner
		nested map[string][]*inner
		self   *settings
	}
	value := settings{Name: "shown", inner: inner{"hunter2"}, nested: map[string][]*inner{"k": {{"hunter2"}}}}
	value.self = &value
	for _, format := range []string{"text", "json"} {
		var out strings.Builder
		tel := start(t, telemetry.Options{Service: "tracker", Format: format, Out: &out})
		tel.Log.Info("settings", "value", value, "pointer", &value, "inner", value.inner, "secret", config.Secret("hunter2"), "none", nil)
		require.NotContains(t, out.String(), "hunter2")
		require.Contains(t, out.String(), "shown")
	}
}

func TestLevelsBelowTheLeastAreDropped(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	tel := start(t, telemetry.Options{Service: "tracker", Level: "warn", Out: &out})
	tel.Log.Info("quiet")
	tel.Log.Warn("loud")
	require.NotContains(t, out.String(), "quiet")
	require.Contains(t, out.String(), "loud")
}

func TestSettingsThatMeanNothingAreRefused(t *testing.T) {
	t.Parallel()
	for says, o := range map[string]telemetry.Options{
		`log level must be debug, info, warn or error, not "loud"`:             {Level: "loud"},
		`log format must be text or json, not "xml"`:                           {Format: "xml"},
		`the OTLP endpoint must be an http or https URL, not "collector:4318"`: {OTLPEndpoint: "collector:4318"},
	} {
		_, err := telemetry.New(o)
		require.EqualError(t, err, says)
	}
}

func TestSpansReachTheCollector(t *testing.T) {
	t.Parallel()
	received := make(chan string, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received <- r.URL.Path + " " + string(body)
	}))
	t.Cleanup(collector.Close)
	tel, err := telemetry.New(telemetry.Options{Service: "tracker", OTLPEndpoint: collector.URL})
	require.NoError(t, err)
	_, span := tel.TracerProvider.Tracer("test").Start(t.Context(), "file an item")
	span.End()
	require.NoError(t, tel.Shutdown(t.Context()))
	got := <-received
	require.Contains(t, got, "/v1/traces")
	require.Contains(t, got, "file an item")
	require.Contains(t, got, "tracker")
}

func TestRegistryKnowsTheRuntime(t *testing.T) {
	t.Parallel()
	families, err := start(t, telemetry.Options{Service: "tracker"}).Registry.Gather()
	require.NoError(t, err)
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	require.Contains(t, names, "go_goroutines")
	require.Contains(t, names, "process_start_time_seconds")
}
