package rpc

import (
	"context"
	"log/slog"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/prometheus/client_golang/prometheus"
)

// durationBuckets reach from an in-process read to the longest deadline, in seconds.
func durationBuckets() []float64 {
	return []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
}

// observed measures every call that reaches a registered method, and logs it at debug level. The clock is the machine's: a
// duration is no business of an injected one.
func observed(log *slog.Logger, metrics prometheus.Registerer) connect.ServerInterceptor {
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "bullpen_rpc_server_duration_seconds",
		Help:    "Time a call took on the server, by procedure and Connect code.",
		Buckets: durationBuckets(),
	}, []string{"procedure", "code"})
	if metrics != nil {
		metrics.MustRegister(duration)
	}
	return func(next connect.ServerFunc) connect.ServerFunc {
		return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
			start := time.Now()
			err := next(ctx, spec, stream)
			took, code := time.Since(start), codeText(err)
			duration.WithLabelValues(spec.Procedure, code).Observe(took.Seconds())
			log.DebugContext(ctx, "call served", "procedure", spec.Procedure, "code", code, "duration", took)
			return err
		}
	}
}

func codeText(err error) string {
	if err == nil {
		return "ok"
	}
	return connect.CodeOf(err).String()
}
