// Package journal is a turn as it is kept: the rounds of model answers, and every call of a tool that they asked for.
//
// A call goes
//
//	planned ──► dispatched ──► done | failed | unknown | parked
//	   └──────────────────────► failed                (refused before it was sent)
//
// and only the first call of the last round that has not ended may move: calls run one after the other. A round is added
// only when the one before has ended. So a journal that was read back after a crash says exactly what to do next: see
// [Journal.Next]. A call found dispatched is in doubt; what may be done about it is said by [Call] and the tool's claims.
//
// It is pure, and replaying its events gives the same journal.
package journal

import (
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// State is where a call stands.
type State string

// The states.
const (
	Planned    State = "planned"
	Dispatched State = "dispatched"
	Done       State = "done"
	Failed     State = "failed"
	Unknown    State = "unknown"
	// Parked: the call waits for a person and was not made; what becomes of it comes as mail.
	Parked State = "parked"
)

// Ended reports whether a call in this state moves no more.
func (s State) Ended() bool { return s == Done || s == Failed || s == Unknown || s == Parked }

// Reasons for which an answer stopped.
const (
	StopEnd     = "end"
	StopCalls   = "tool_calls"
	StopLength  = "length"
	StopRefusal = "refusal"
	StopContext = "context"
)

// Round is one model answer.
type Round struct {
	// Number counts from 1.
	Number   int
	Provider string
	Model    string
	Text     string
	// Stop is one of the Stop constants.
	Stop string
	// Raw is the answer as the provider's dialect wrote it, to be sent back to the same dialect.
	Raw          []byte
	Dialect      string
	InputTokens  int64
	CachedTokens int64
	OutputTokens int64
	StartAt      time.Time
	EndAt        time.Time
	Calls        []Call
}

// Call is one call of a tool.
type Call struct {
	// ID is the model's.
	ID     string
	Tool   string
	Source string
	// Args are as the model wrote them, secrets redacted.
	Args        string
	OperationID string
	State       State
	Result      Result
	// Shown is how the result is shown to the model; nil while that has not been settled, and the result is shown whole then.
	Shown   *Shown
	StartAt time.Time
	EndAt   time.Time
}

// Shown is what a model reads in the place of a large result.
type Shown struct {
	// Whole says that it reads the result itself after all.
	Whole bool
	Text  string
}

// Reads answers what the model reads of the call's result.
func (c Call) Reads() string {
	if c.Shown == nil || c.Shown.Whole {
		return c.Result.Text
	}
	return c.Shown.Text
}

// Result is how a call ended.
type Result struct {
	// Text is what the model reads.
	Text string
	// Class is a refusal's; empty for a server's own failure and for success.
	Class fault.Class
	// Outcome is what a write answered.
	Outcome string
	// Delivered is where it reached somebody; empty when it did not.
	Delivered string
	// AuditID names the call in the registry's audit; empty for one that did not get there.
	AuditID string
}

// Journal is all of a turn so far. The zero value is a turn that has asked nothing yet.
type Journal struct {
	Rounds []Round
}

// Event is a fact that a journal is made of: [Answered], [Sent], [Settled] or [Condensed].
type Event interface{ apply(j *Journal) error }

// Answered adds a round; its calls begin planned, whatever their State says.
type Answered struct{ Round Round }

// Sent says that the next planned call was dispatched.
type Sent struct{ At time.Time }

// Settled says how the current call ended. A planned call may only fail.
type Settled struct {
	State  State
	Result Result
	At     time.Time
}

// Condensed says how the result of a call that is done is shown, once for all.
type Condensed struct {
	// Round counts from 1, Ordinal from 0.
	Round, Ordinal int
	Shown          Shown
}

// Apply adds a fact, or refuses one that cannot follow what is there.
func (j *Journal) Apply(e Event) error { return e.apply(j) }

func (e Answered) apply(j *Journal) error {
	if j.current() != nil {
		return fault.New(fault.Conflict, "Round %d has a call that has not ended.", len(j.Rounds))
	}
	if e.Round.Number != len(j.Rounds)+1 {
		return fault.New(fault.Conflict, "Round %d cannot follow round %d.", e.Round.Number, len(j.Rounds))
	}
	round := e.Round
	round.Calls = append([]Call(nil), round.Calls...)
	for i := range round.Calls {
		round.Calls[i].State, round.Calls[i].Result, round.Calls[i].Shown = Planned, Result{}, nil
	}
	j.Rounds = append(j.Rounds, round)
	return nil
}

func (e Sent) apply(j *Journal) error {
	call := j.current()
	if call == nil || call.State != Planned {
		return fault.New(fault.Conflict, "No call waits to be dispatched.")
	}
	call.State, call.StartAt = Dispatched, e.At
	return nil
}

func (e Settled) apply(j *Journal) error {
	call := j.current()
	if call == nil {
		return fault.New(fault.Conflict, "No call is running.")
	}
	if !e.State.Ended() || call.State == Planned && e.State != Failed {
		return fault.New(fault.Conflict, "A call that is %s cannot become %s.", call.State, e.State)
	}
	call.State, call.Result, call.EndAt = e.State, e.Result, e.At
	return nil
}

func (e Condensed) apply(j *Journal) error {
	if e.Round < 1 || e.Round > len(j.Rounds) || e.Ordinal < 0 || e.Ordinal >= len(j.Rounds[e.Round-1].Calls) {
		return fault.New(fault.Conflict, "Round %d has no call %d.", e.Round, e.Ordinal)
	}
	call := &j.Rounds[e.Round-1].Calls[e.Ordinal]
	if call.State != Done || call.Shown != nil {
		return fault.New(fault.Conflict, "How the result of call %d of round %d is shown cannot be settled now.", e.Ordinal, e.Round)
	}
	call.Shown = &e.Shown
	return nil
}

// current answers the first call of the last round that has not ended.
func (j *Journal) current() *Call {
	if len(j.Rounds) == 0 {
		return nil
	}
	calls := j.Rounds[len(j.Rounds)-1].Calls
	for i := range calls {
		if !calls[i].State.Ended() {
			return &calls[i]
		}
	}
	return nil
}

// Current answers the first call that has not ended, with its place in the last round from 0.
func (j *Journal) Current() (call Call, ordinal int, found bool) {
	current := j.current()
	if current == nil {
		return Call{}, 0, false
	}
	calls := j.Rounds[len(j.Rounds)-1].Calls
	for i := range calls {
		if &calls[i] == current {
			ordinal = i
		}
	}
	return *current, ordinal, true
}

// Calls answers every call in the order in which they run.
func (j *Journal) Calls() []Call {
	var all []Call
	for _, round := range j.Rounds {
		all = append(all, round.Calls...)
	}
	return all
}
