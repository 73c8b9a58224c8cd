// Package server is the life of one instance of an MCP server, as rules without a process, a clock or a network.
//
//	        ┌──────────────────────── Due ───────────────────────┐
//	        ▼                                                    │
//	Idle ─► Spawn ─► Initialise ─► Ready ─► (lost) ──────────► Failed
//	          │          │           │                           │
//	          └──────────┴───────────┴──────► Shutdown ◄─────────┘
//
// A failure waits before the next start, longer each time. After several in a row the breaker opens: starts become rare, each a
// probe that closes the breaker when the instance then stays up. It never gives up for ever, whoever asks for the instance has it
// tried sooner (Demand), and a start alone proves nothing: only time in Ready forgets failures.
package server

import (
	"time"
)

// State is where an instance stands.
type State string

// The states, as they are shown.
const (
	// Idle is an instance that nothing was asked of.
	Idle State = "idle"
	// Spawn means that its process is being started, or its address is being resolved.
	Spawn State = "spawn"
	// Initialise means that the handshake runs.
	Initialise State = "initialise"
	// Ready means that its tools can be called.
	Ready State = "ready"
	// Failed means that it is down, with a reason, until its next start is due.
	Failed State = "failed"
	// Shutdown is final.
	Shutdown State = "shutdown"
)

// Policy is how failures are answered.
type Policy struct {
	// First is the wait after one failure; it doubles with each until Longest.
	First, Longest time.Duration
	// Open is how many failures in a row open the breaker, and Probe is the wait between probes while it is open.
	Open  int
	Probe time.Duration
	// Sustained is how long an instance must have been ready for its failures to be forgotten.
	Sustained time.Duration
	// Demand is how long after a failure somebody who asks may have the next start at once.
	Demand time.Duration
}

// DefaultPolicy suits processes that take a second to start and services that come back within minutes.
func DefaultPolicy() Policy {
	return Policy{First: 200 * time.Millisecond, Longest: 30 * time.Second, Open: 6, Probe: 5 * time.Minute, Sustained: time.Minute, Demand: 10 * time.Second}
}

// Machine is the state of one instance. It is not safe for concurrent use.
type Machine struct {
	policy Policy
	// jitter answers a number in [0, 1).
	jitter func() float64

	state    State
	reason   string
	since    time.Time
	due      time.Time // when failed: of the next start
	asked    bool      // when failed: somebody wants the next start
	failures int       // in a row
	starts   int
}

// New makes an idle instance.
func New(p Policy, jitter func() float64, now time.Time) *Machine {
	return &Machine{policy: p, jitter: jitter, state: Idle, since: now}
}

// State answers where the instance stands, why, and since when.
func (m *Machine) State() (State, string, time.Time) { return m.state, m.reason, m.since }

// Starts answers how often it was started.
func (m *Machine) Starts() int { return m.starts }

// Due answers when a failed instance may start again; the zero time in every other state.
func (m *Machine) Due() time.Time {
	if m.state != Failed {
		return time.Time{}
	}
	return m.due
}

// Open reports whether the breaker is open.
func (m *Machine) Open() bool { return m.failures >= m.policy.Open }

// Start enters Spawn. It is refused while one start runs, once the instance is ready, before a failed one is due, and for ever
// after Shutdown.
func (m *Machine) Start(now time.Time) bool {
	switch m.state {
	case Idle:
	case Failed:
		if now.Before(m.due) {
			return false
		}
	default:
		return false
	}
	m.starts++
	m.asked = false
	m.enter(Spawn, "", now)
	return true
}

// Handshake enters Initialise: the process runs, or the address is known.
func (m *Machine) Handshake(now time.Time) bool {
	if m.state != Spawn {
		return false
	}
	m.enter(Initialise, "", now)
	return true
}

// Up enters Ready.
func (m *Machine) Up(now time.Time) bool {
	if m.state != Initialise {
		return false
	}
	m.enter(Ready, "", now)
	return true
}

// Fail enters Failed from any state in which the instance was starting or up, and sets the next start.
func (m *Machine) Fail(reason string, now time.Time) bool {
	switch m.state {
	case Spawn, Initialise:
	case Ready:
		if now.Sub(m.since) >= m.policy.Sustained {
			m.failures = 0
		}
	default:
		return false
	}
	m.failures++
	m.due = now.Add(m.wait())
	m.enter(Failed, reason, now)
	return true
}

// Demand makes the next start of a failed instance due now, as somebody asks for it, unless the failure is too recent: askers must
// not wear down a server that cannot start, nor wait minutes for one that now can.
func (m *Machine) Demand(now time.Time) bool {
	if m.state != Failed || !now.Before(m.due) || now.Sub(m.since) < m.policy.Demand {
		return false
	}
	m.due, m.asked = now, true
	return true
}

// Retries reports whether a failed instance is to be started now for no better reason than that its wait is over.
func (m *Machine) Retries(now time.Time) bool {
	return m.state == Failed && !m.asked && !now.Before(m.due)
}

// Postpone makes an instance that [Machine.Retries] wait once more, as if it had failed again, though it has not.
func (m *Machine) Postpone(now time.Time) bool {
	if !m.Retries(now) {
		return false
	}
	m.due = now.Add(m.wait())
	return true
}

// Forgive makes the next start of a failed instance due now, and takes back the failure: what it waited for has come.
func (m *Machine) Forgive(now time.Time) bool {
	if m.state != Failed {
		return false
	}
	m.failures--
	m.due, m.asked = now, true
	return true
}

// Stop enters Shutdown.
func (m *Machine) Stop(now time.Time) bool {
	if m.state == Shutdown {
		return false
	}
	m.enter(Shutdown, "", now)
	return true
}

// wait spreads restarts over half to all of the time, so that servers which fell together do not rise together.
func (m *Machine) wait() time.Duration {
	d := m.policy.Probe
	if !m.Open() {
		d = m.policy.Longest
		if shift := m.failures - 1; shift < 30 {
			d = min(d, m.policy.First<<shift)
		}
	}
	return d/2 + time.Duration(m.jitter()*float64(d/2))
}

func (m *Machine) enter(s State, reason string, now time.Time) {
	m.state, m.reason, m.since = s, reason, now
}
