package inbox

import "github.com/prometheus/client_golang/prometheus"

// metrics are one consumer's, told apart by topic and group.
type metrics struct {
	handled prometheus.Counter
	known   prometheus.Counter
	retries prometheus.Counter
	dead    prometheus.Counter
}

func newMetrics(opts Options) *metrics {
	labels := prometheus.Labels{"topic": opts.Topic, "group": opts.Group}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels})
	}
	m := &metrics{
		handled: counter("bullpen_inbox_handled_total", "Events that were taken in."),
		known:   counter("bullpen_inbox_known_total", "Events that came again and were dropped."),
		retries: counter("bullpen_inbox_retries_total", "Attempts at a single event that failed."),
		dead:    counter("bullpen_inbox_dead_total", "Events that became dead letters."),
	}
	if opts.Metrics != nil {
		opts.Metrics.MustRegister(m.handled, m.known, m.retries, m.dead)
	}
	return m
}
