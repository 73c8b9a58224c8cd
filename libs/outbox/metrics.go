package outbox

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the relay's. They have no labels: the process that registers them tells its services apart.
type metrics struct {
	published prometheus.Counter
	failures  prometheus.Counter
	leading   prometheus.Gauge
	lag       prometheus.Histogram
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		published: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "bullpen_outbox_published_total", Help: "Events that the broker has acknowledged.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "bullpen_outbox_failures_total", Help: "Times the relay had to start over.",
		}),
		leading: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "bullpen_outbox_leading", Help: "1 while this process publishes its schema's events, 0 on standby.",
		}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "bullpen_outbox_lag_seconds",
			Help:    "Age of the oldest event of a batch when the batch was published.",
			Buckets: []float64{.002, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30, 300},
		}),
	}
	if registry != nil {
		registry.MustRegister(m.published, m.failures, m.leading, m.lag)
	}
	return m
}

func (m *metrics) observe(b unsentBatch, now time.Time) {
	m.lag.Observe(max(0, now.Sub(b.rows[0].createdAt)).Seconds())
}
