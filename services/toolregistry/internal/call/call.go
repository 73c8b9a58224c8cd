// Package call is the noun of the audit: one call of one tool, whole. It is pure.
package call

import (
	"time"

	"github.com/google/uuid"
)

// Statuses of a call.
const (
	// OK: the tool answered.
	OK = "ok"
	// Refused: somebody claimed the failure as the caller's; the class says which kind.
	Refused = "refused"
	// Failed: the tool, its server or its service failed.
	Failed = "failed"
	// Parked: the call waits for a person; the tool was not run.
	Parked = "parked"
)

// Record is an audited call. Arguments and result are clean and never cut.
type Record struct {
	ID uuid.UUID
	// CallID is the caller's own id of it.
	CallID string
	// Principal is `<kind>:<id>`.
	Principal string
	// Seat and TurnID are empty outside a seat and a turn.
	Seat, TurnID string
	Tool, Source string
	Arguments    string
	// Result is what was answered, or the refusal's sentence.
	Result       string
	Status       string
	RefusalClass string
	Outcome      string
	OperationID  string
	// Decision is the policy's: `allow`, `deny` or `ask`; empty for a call that it was not asked about. Rule decided it.
	Decision, Rule string
	// ApprovalID is what the call waits for, or waited for before it was made.
	ApprovalID string
	StartedAt  time.Time
	Duration   time.Duration
	// Restored records come from a turn's journal, because the door's own were lost; the door's own replace them.
	Restored bool
}

// overheadBytes is about what a record takes beside its texts.
const overheadBytes = 512

// Size is about how much memory the record holds, in bytes.
func (r *Record) Size() int64 {
	return int64(len(r.Arguments)+len(r.Result)) + overheadBytes
}

// EventKey is what the order of a call's events is kept by: the seat, or the principal outside one.
func (r *Record) EventKey() string {
	if r.Seat != "" {
		return r.Seat
	}
	return r.Principal
}

// RestoredID answers the id of a record that is restored from a journal: the same for the same call, so that two restorations at
// once write one row.
func RestoredID(turnID, callID string) uuid.UUID {
	namespace := uuid.NewSHA1(uuid.NameSpaceURL, []byte("bullpen/toolregistry/call"))
	return uuid.NewSHA1(namespace, []byte(turnID+"\x00"+callID))
}
