package door

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
)

// metrics count calls by source and status, never by tool: names are the servers' to invent.
type metrics struct {
	seconds *prometheus.HistogramVec
}

func newMetrics(registry prometheus.Registerer) metrics {
	m := metrics{seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "bullpen_tool_call_seconds",
		Help:    "How long tools took, by where they come from and how the call ended.",
		Buckets: []float64{.001, .005, .025, .1, .5, 1, 5, 30, 120},
	}, []string{"source", "status"})}
	if registry != nil {
		registry.MustRegister(m.seconds)
	}
	return m
}

func (m metrics) observe(r *call.Record) {
	m.seconds.WithLabelValues(r.Source, r.Status).Observe(r.Duration.Seconds())
}
