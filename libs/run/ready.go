package run

import (
	"context"
	"sync"
	"time"
)

type phase string

const (
	phaseStarting phase = "starting"
	phaseUp       phase = "up"
	phaseDraining phase = "draining"
)

// probeTimeout bounds one probe, all conditions together.
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
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	own, phase := p.state.condition()
	r := Readiness{Ready: true}
	r.add("", own)
	if phase != phaseUp {
		return r
	}
	r.add("", p.databaseCondition(ctx), p.brokerCondition(ctx))
	for _, m := range p.modules {
		if readier, ok := m.service.(Readier); ok {
			r.add(m.name, readier.Ready(ctx)...)
		}
	}
	return r
}

func (r *Readiness) add(service string, conditions ...Condition) {
	for _, c := range conditions {
		if c.Name == "" {
			continue
		}
		if c.Blocking && !c.OK {
			r.Ready = false
		}
		r.Conditions = append(r.Conditions, ServiceCondition{Service: service, Condition: c})
	}
}

// databaseCondition asks through one pool for all: they lead to the same server. Without a pool there is no condition.
func (p *Process) databaseCondition(ctx context.Context) Condition {
	for _, pool := range p.pools {
		if err := pool.Ping(ctx); err != nil {
			return Condition{Name: "postgres", Blocking: true, Detail: "Postgres does not answer; see the log and -database-url."}
		}
		return Condition{Name: "postgres", OK: true, Blocking: true}
	}
	return Condition{}
}

// brokerCondition does not block: without the broker events wait in Postgres, and what is asked of us we can still do.
func (p *Process) brokerCondition(ctx context.Context) Condition {
	if p.bus == nil {
		return Condition{}
	}
	if err := p.bus.Ping(ctx); err != nil {
		return Condition{Name: "kafka", Detail: "Kafka does not answer: events wait in Postgres until it does."}
	}
	return Condition{Name: "kafka", OK: true}
}
