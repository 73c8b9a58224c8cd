package fault

// Class says whose turn it is to act after a failure. The set is closed and part of the contract: its spellings travel
// in bullpen.tool.v1.Refusal, and a model reads them.
type Class string

// The classes.
const (
	// Invalid: the request can never succeed as it is written.
	Invalid Class = "invalid"
	// NotFound: the thing that is named does not exist, or the caller may not know that it does.
	NotFound Class = "not_found"
	// Forbidden: the principal may not do this.
	Forbidden Class = "forbidden"
	// StaleVersion: the version that the caller read has been overtaken; read again and decide again.
	StaleVersion Class = "stale_version"
	// Conflict: the state of the thing does not allow this now.
	Conflict Class = "conflict"
	// Exists: the name is taken.
	Exists Class = "exists"
	// AlreadyAnswered: somebody has answered the question before.
	AlreadyAnswered Class = "already_answered"
	// ReassignmentBudget: the item has been handed on as often as it may be.
	ReassignmentBudget Class = "reassignment_budget"
	// InboxFull: the receiver takes no more until it has worked some off.
	InboxFull Class = "inbox_full"
	// NotRunning: the turn or the server that is addressed is not running.
	NotRunning Class = "not_running"
	// SteerUnsupported: the running turn cannot be steered.
	SteerUnsupported Class = "steer_unsupported"
	// BudgetExhausted: the seat or the company has spent what it may.
	BudgetExhausted Class = "budget_exhausted"
	// Unavailable: the service, or something it needs, failed; trying again later may work.
	Unavailable Class = "unavailable"
	// LoopDetected: the same call keeps being made with the same result.
	LoopDetected Class = "loop_detected"
)

// Classes answers every class, in the order of the contract. The slice is the caller's own.
func Classes() []Class {
	return []Class{
		Invalid, NotFound, Forbidden, StaleVersion, Conflict, Exists, AlreadyAnswered, ReassignmentBudget,
		InboxFull, NotRunning, SteerUnsupported, BudgetExhausted, Unavailable, LoopDetected,
	}
}

// Valid reports whether c is one of [Classes].
func (c Class) Valid() bool {
	switch c {
	case Invalid, NotFound, Forbidden, StaleVersion, Conflict, Exists, AlreadyAnswered, ReassignmentBudget,
		InboxFull, NotRunning, SteerUnsupported, BudgetExhausted, Unavailable, LoopDetected:
		return true
	default:
		return false
	}
}
