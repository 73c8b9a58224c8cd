package run

import (
	"context"
	"slices"
	"sync"
	"time"
)

type phase string

const (
	phaseStarting phase = "starting"
	phaseUp       phase = "up"
	phaseDraining phase = "draining"
)

// probeTimeout bounds each thing that is asked.
const probeTimeout = 2 * time.Second

// state is how far the process has come.
type state struct {
	mu     sync.Mutex
	phase  phase
	detail string
}

func (s *state) set(p phase, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.detail = p, detail
}

func (s *state) condition() (Condition, phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	detail := string(s.phase)
	if s.detail != "" {
		detail += ": " + s.detail
	}
	return Condition{Name: "process", OK: s.phase == phaseUp, Blocking: true, Detail: detail}, s.phase
}

// Readiness is what /readyz answers, with status 200 when Ready and 503 otherwise.
type Readiness struct {
	Ready      bool               `json:"ready"`
	Conditions []ServiceCondition `json:"conditions"`
}

// ServiceCondition is a condition and the service it is about, which is empty for the process itself.
type ServiceCondition struct {
	Service string `json:"service,omitempty"`
	Condition
}

// readiness asks everything there is to ask. While the process starts or drains only its own state matters.
func (p *Process) readiness(ctx context.Context) Readiness {
	own, phase := p.state.condition()
	r := Readiness{Ready: true}
	r.add("", own)
	if phase != phaseUp {
		return r
	}
	// Each on its own: a database that hangs must not make the broker look lost.
	answers := make([][]Condition, 2+len(p.modules))
	var asked sync.WaitGroup
	ask := func(i int, question func(context.Context) []Condition) {
		asked.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, probeTimeout)
			defer cancel()
			answers[i] = question(ctx)
		})
	}
	ask(0, p.databaseConditions)
	ask(1, p.brokerConditions)
	for i, m := range p.modules {
		if readier, ok := m.service.(Readier); ok {
			ask(2+i, readier.Ready)
		}
	}
	asked.Wait()
	r.add("", slices.Concat(answers[0], answers[1])...)
	for i, m := range p.modules {
		r.add(m.name, answers[2+i]...)
	}
	return r
}

func (r *Readiness) add(service string, conditions ...Condition) {
	for _, c := range conditions {
		if c.Blocking && !c.OK {
			r.Ready = false
		}
		r.Conditions = append(r.Conditions, ServiceCondition{Service: service, Condition: c})
	}
}

// databaseConditions asks through one pool for all: they lead to the same server.
func (p *Process) databaseConditions(ctx context.Context) []Condition {
	for _, pool := range p.pools {
		c := Condition{Name: "postgres", OK: true, Blocking: true}
		if err := pool.Ping(ctx); err != nil {
			c.OK, c.Detail = false, "Postgres does not answer; see the log and -database-url."
		}
		return []Condition{c}
	}
	return nil
}

// brokerConditions do not block: without the broker events wait in Postgres, and what is asked of us we can still do.
func (p *Process) brokerConditions(ctx context.Context) []Condition {
	if p.bus == nil {
		return nil
	}
	c := Condition{Name: "kafka", OK: true}
	if err := p.bus.Ping(ctx); err != nil {
		c.OK, c.Detail = false, "Kafka does not answer: events wait in Postgres until it does."
	}
	return []Condition{c}
}
