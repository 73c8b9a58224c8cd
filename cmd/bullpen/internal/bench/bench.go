// Package bench measures the suite as its users meet it: from outside, over its own ports, each figure beside a floor that was taken
// in the same run on the same machine.
//
// The suite runs as a process of its own; the load, Postgres and the vendors' doubles run beside it, on loopback, as a small
// installation has them. Every load is bounded in time and count.
package bench

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Figure is one measured quantity.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Target is what the design wants, in words; empty when it wants nothing.
	Target string `json:"target,omitempty"`
}

// Report is what came of a benchmark.
type Report struct {
	Area string `json:"area"`
	// LoadBefore and LoadAfter are the machine's load averages over one minute; the figures of a busy machine say little.
	LoadBefore string   `json:"load_before"`
	LoadAfter  string   `json:"load_after"`
	Figures    []Figure `json:"figures"`
	// Calls are the loads of [Call], arm by arm.
	Calls []CallCell `json:"calls,omitempty"`
}

func (r *Report) add(name string, value float64, unit, target string) {
	r.Figures = append(r.Figures, Figure{Name: name, Value: value, Unit: unit, Target: target})
}

// Write prints the report for a person.
func (r *Report) Write(w io.Writer) error {
	fmt.Fprintf(w, "bench %s (load average %s before, %s after)\n", r.Area, r.LoadBefore, r.LoadAfter)
	for _, f := range r.Figures {
		if _, err := fmt.Fprintf(w, "  %-58s %12.2f %-6s %s\n", f.Name, f.Value, f.Unit, f.Target); err != nil {
			return err
		}
	}
	return writeCells(w, r.Calls)
}

// load answers the one-minute load average, or a question mark where the system does not say.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

// distribution is a set of durations.
type distribution []time.Duration

// quantile answers the value that a share of all do not exceed; 0 for an empty set.
func (d distribution) quantile(share float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(share*float64(len(d))))]
}

// median answers the middle of some values.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
