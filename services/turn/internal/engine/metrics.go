package engine

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	seats    prometheus.Gauge
	nodes    countedGauge
	turns    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	calls    *prometheus.CounterVec
	asks     *prometheus.CounterVec
	loops    prometheus.Counter
	guards   prometheus.Counter
	shown    *prometheus.CounterVec
}

// countedGauge can be read back.
type countedGauge struct {
	gauge prometheus.Gauge
	value *atomic.Int64
}

// Set sets both.
func (c countedGauge) Set(v float64) {
	c.gauge.Set(v)
	c.value.Store(int64(v))
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		seats: prometheus.NewGauge(prometheus.GaugeOpts{Name: "bullpen_turn_seats_held", Help: "Seats held by this worker."}),
		nodes: countedGauge{
			gauge: prometheus.NewGauge(prometheus.GaugeOpts{Name: "bullpen_turn_nodes", Help: "Live workers."}),
			value: &atomic.Int64{},
		},
		turns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bullpen_turn_turns_total", Help: "Turns ended, by outcome.",
		}, []string{"outcome", "error_kind"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "bullpen_turn_duration_seconds", Help: "From a turn's start to its end.",
			Buckets: prometheus.ExponentialBuckets(0.01, 4, 9),
		}, []string{"outcome"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bullpen_turn_calls_total", Help: "Tool calls ended, by state and refusal class.",
		}, []string{"state", "class"}),
		asks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bullpen_turn_model_answers_total", Help: "Model requests, by provider and result.",
		}, []string{"provider", "result"}),
		loops: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "bullpen_turn_loop_guard_trips_total", Help: "Calls that the loop guard did not execute.",
		}),
		guards: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "bullpen_turn_skill_guard_blocks_total", Help: "Calls held back because a required tool skill was not loaded.",
		}),
		shown: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bullpen_turn_results_condensed_total", Help: "Large results, by how they were shown: list, chosen, model or whole.",
		}, []string{"how"}),
	}
	if r != nil {
		r.MustRegister(m.seats, m.nodes.gauge, m.turns, m.duration, m.calls, m.asks, m.loops, m.guards, m.shown)
	}
	return m
}

func (m *metrics) live() int { return max(int(m.nodes.value.Load()), 1) }
