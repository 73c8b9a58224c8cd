// Package mailbox holds what waits for a seat: single deliveries, the states they go through, and how several of one
// conversation become one turn.
//
//	          claim              finish
//	ready ───────────► running ─────────► done
//	 │ ▲ ▲ ◄────────────  │
//	 │ │ │  retry, wait   │ attempts used up
//	 │ │ └──────────┐     ▼
//	 │ └─ release   └─── dead
//	 ▼        │   redrive
//	held ─────┘   (a held one may be claimed, too: who claims has seen that nothing holds it any more)
//
// It is pure. The store writes what these methods decide.
package mailbox

import (
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// State is where a delivery stands.
type State string

// The states.
const (
	Ready   State = "ready"
	Held    State = "held"
	Running State = "running"
	Done    State = "done"
	Dead    State = "dead"
)

const (
	// MaxAttempts is how often a delivery is worked on before it is set aside.
	MaxAttempts = 25

	backoffMin = time.Second
	backoffMax = 30 * time.Second
)

// Mail is one delivery to one seat.
type Mail struct {
	DeliveryID      string
	Seat            string
	ConversationKey string
	Source          string
	// Surface is where an answer is owed; empty for anywhere.
	Surface string
	// Obligation is `tool`, `engine` or `none`.
	Obligation string
	Addressed  bool
	// WakeReason is why it came, such as `mention`.
	WakeReason string
	Sender     Sender
	Subject    string
	Body       string
	URL        string
	MessageID  string
	Depth      int32
	OccurAt    time.Time
	ReceiveAt  time.Time

	State State
	// Reason is why it waits or died.
	Reason   string
	Attempts int32
	// AvailableAt is when it may be claimed.
	AvailableAt time.Time
	// TurnID is the turn that works or last worked on it.
	TurnID string
}

// Sender is who wrote.
type Sender struct {
	// ID is the vendor's.
	ID   string
	Name string
	// Seat is the sender's handle when it is one of the company.
	Seat string
	Bot  bool
}

// Claim gives a waiting delivery to a turn.
func (m *Mail) Claim(turnID string) error {
	if m.State != Ready && m.State != Held {
		return m.illegal("claimed")
	}
	m.State, m.Reason, m.TurnID = Running, "", turnID
	return nil
}

// Finish ends a running delivery: its turn has ended and it is not worked on again.
func (m *Mail) Finish() error {
	if m.State != Running {
		return m.illegal("finished")
	}
	m.State, m.Reason = Done, ""
	return nil
}

// Retry counts an attempt that failed and makes the delivery ready after a growing while, or sets it aside.
func (m *Mail) Retry(reason string, now time.Time) error {
	if m.State != Running {
		return m.illegal("retried")
	}
	m.Attempts++
	m.Reason = reason
	if m.Attempts >= MaxAttempts {
		m.State = Dead
		return nil
	}
	m.State, m.AvailableAt = Ready, now.Add(Backoff(m.Attempts))
	return nil
}

// Wait gives a running delivery back without counting an attempt: nothing was wrong with it.
func (m *Mail) Wait(reason string, until time.Time) error {
	if m.State != Running {
		return m.illegal("deferred")
	}
	m.State, m.Reason, m.AvailableAt = Ready, reason, until
	return nil
}

// Hold keeps a ready delivery from being claimed until something else changes.
func (m *Mail) Hold(reason string) error {
	if m.State != Ready && m.State != Held {
		return m.illegal("held")
	}
	m.State, m.Reason = Held, reason
	return nil
}

// Release ends a hold.
func (m *Mail) Release() error {
	if m.State != Held {
		return m.illegal("released")
	}
	m.State, m.Reason = Ready, ""
	return nil
}

// Redrive makes a dead delivery ready as if it had never been tried.
func (m *Mail) Redrive(now time.Time) error {
	if m.State != Dead {
		return m.illegal("redriven")
	}
	m.State, m.Reason, m.Attempts, m.AvailableAt = Ready, "", 0, now
	return nil
}

func (m *Mail) illegal(verb string) error {
	return fault.New(fault.Conflict, "A delivery that is %s cannot be %s.", m.State, verb)
}

// Backoff answers how long to wait after the given number of failed attempts: 1 s doubling to 30 s.
func Backoff(attempts int32) time.Duration {
	wait := backoffMin
	for range attempts - 1 {
		if wait *= 2; wait >= backoffMax {
			return backoffMax
		}
	}
	return wait
}
