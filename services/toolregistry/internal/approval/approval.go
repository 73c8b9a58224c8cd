// Package approval is the noun of a question to a person: may this one call be made?
//
//	             approve            settle
//	waiting ──────────────► approved ─────► approved, call settled
//	   │                    (running) ◄─┐
//	   │ deny, expire, cancel   └───────┘ take: its runner died
//	   ▼
//	denied, expired, cancelled
//
// The call is the one that was asked about, to the letter: arguments, definition of the tool, operation. It is made once, by
// whoever holds the run, and what became of it is kept whole. Everything right of the first arrow is owed to the seat as mail.
//
// It is pure.
package approval

import (
	"time"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// State is where a question stands.
type State string

// The states.
const (
	Waiting   State = "waiting"
	Approved  State = "approved"
	Denied    State = "denied"
	Expired   State = "expired"
	Cancelled State = "cancelled"
)

// Statuses of an approved call. [Running] until it is settled.
const (
	Running = "running"
	OK      = "ok"
	Refused = "refused"
	Failed  = "failed"
	Unknown = "unknown"
)

// RunLease is how long a runner may be silent before another takes its call.
const RunLease = 30 * time.Second

// Asker is the seat, in its turn, that made the call.
type Asker struct {
	Seat, DisplayName                            string
	TurnID, WorkKey, ConversationKey, RevisionID string
}

// Approval is a question and what became of it.
type Approval struct {
	ID    uuid.UUID
	State State
	Asker Asker

	Tool, Source string
	// Digest is that of the tool's definition that the seat called.
	Digest string
	// Arguments are sent as they are; Shown are the same with secrets redacted, for people and events.
	Arguments, Shown    string
	CallID, OperationID string
	// Repeatable says that making the call twice does no more than making it once.
	Repeatable bool
	// Rule asked, for Reason.
	Rule, Reason         string
	CreatedAt, ExpiresAt time.Time

	// DecidedBy is `<kind>:<id>`, and `system` for an expiry; empty while the question waits.
	DecidedBy string
	DecidedAt time.Time
	Note      string

	Call Call
	// Runner makes the approved call and nobody else may until RunUntil.
	Runner   string
	RunUntil time.Time
}

// Call is the approved call.
type Call struct {
	// Status is one of the statuses; empty when nothing was approved.
	Status string
	// Result is what was answered, whole and clean, or the refusal's sentence.
	Result       string
	RefusalClass string
	Outcome      string
	// Reached are the surfaces on which it put something in front of somebody; `asked` is where the turn was asked.
	Reached []string
	// AuditID is drawn when the call is approved, so that it is recorded once.
	AuditID string
}

// AskKey answers what makes a call the same again: its operation, or its place in its turn.
func (a *Approval) AskKey() string {
	if a.OperationID != "" {
		return "operation:" + a.OperationID
	}
	return "call:" + a.Asker.TurnID + "/" + a.CallID
}

// Over reports whether nothing will change any more.
func (a *Approval) Over() bool {
	return a.State != Waiting && a.Call.Status != Running
}

// Lapsed reports whether the question has ended by itself.
func (a *Approval) Lapsed(now time.Time) bool {
	return a.State == Waiting && !now.Before(a.ExpiresAt)
}

// Approve lets the call be made, by runner. auditID is what it will be recorded under.
func (a *Approval) Approve(by, note, runner, auditID string, now time.Time) error {
	if err := a.answerable(now); err != nil {
		return err
	}
	a.decide(Approved, by, note, now)
	a.Call = Call{Status: Running, AuditID: auditID}
	a.Runner, a.RunUntil = runner, now.Add(RunLease)
	return nil
}

// Deny refuses the call.
func (a *Approval) Deny(by, note string, now time.Time) error {
	if err := a.answerable(now); err != nil {
		return err
	}
	a.decide(Denied, by, note, now)
	return nil
}

// Cancel takes the question back.
func (a *Approval) Cancel(by string, now time.Time) error {
	if err := a.answerable(now); err != nil {
		return err
	}
	a.decide(Cancelled, by, "", now)
	return nil
}

// Expire ends a question that has waited long enough; it refuses one that has not, with class conflict.
func (a *Approval) Expire(now time.Time) error {
	if !a.Lapsed(now) {
		return fault.New(fault.Conflict, "The question waits until %s.", clock(a.ExpiresAt))
	}
	a.decide(Expired, "system", "", now)
	return nil
}

func (a *Approval) decide(state State, by, note string, now time.Time) {
	a.State, a.DecidedBy, a.Note, a.DecidedAt = state, by, note, now
}

// answerable refuses an answer that comes too late, and says what was first.
func (a *Approval) answerable(now time.Time) error {
	switch {
	case a.State == Approved || a.State == Denied:
		return fault.New(fault.AlreadyAnswered, "This call was %s already, by %s at %s.", a.State, a.DecidedBy, clock(a.DecidedAt)).
			WithFact("decided_by", a.DecidedBy).WithFact("decide_time", clock(a.DecidedAt)).WithFact("state", string(a.State))
	case a.State == Cancelled:
		return fault.New(fault.Conflict, "The question was cancelled by %s at %s; the call was not made.", a.DecidedBy, clock(a.DecidedAt)).
			WithReason("CANCELLED")
	case a.State == Expired || a.Lapsed(now):
		return fault.New(fault.Conflict, "The question expired at %s; the call was not made, and the seat may ask again.", clock(a.ExpiresAt)).
			WithReason("EXPIRED")
	default:
		return nil
	}
}

// Renew holds the run for a while longer; it refuses a runner that has lost it, with class conflict.
func (a *Approval) Renew(runner string, now time.Time) error {
	if err := a.held(runner); err != nil {
		return err
	}
	a.RunUntil = now.Add(RunLease)
	return nil
}

// Take gives a run whose runner has been silent to another.
func (a *Approval) Take(runner string, now time.Time) error {
	if a.Call.Status != Running || now.Before(a.RunUntil) {
		return fault.New(fault.Conflict, "The call is not up for another runner.")
	}
	a.Runner, a.RunUntil = runner, now.Add(RunLease)
	return nil
}

// Settle keeps how the call ended; it refuses a runner that has lost it, with class conflict.
func (a *Approval) Settle(runner string, c Call) error {
	if err := a.held(runner); err != nil {
		return err
	}
	if c.Status == Running || c.Status == "" {
		return fault.New(fault.Conflict, "A call cannot be settled as %q.", c.Status)
	}
	c.AuditID = a.Call.AuditID
	a.Call, a.Runner, a.RunUntil = c, "", time.Time{}
	return nil
}

func (a *Approval) held(runner string) error {
	if a.Call.Status != Running || a.Runner != runner {
		return fault.New(fault.Conflict, "The call is in other hands, or has ended.")
	}
	return nil
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
