package journal

import "time"

// Outcomes of a turn.
const (
	OutcomeDelivered  = "delivered"
	OutcomeNoAction   = "no_action"
	OutcomeBlocked    = "blocked"
	OutcomeIncomplete = "incomplete"
	OutcomeFailed     = "failed"
)

// Turn is one execution of a unit of work, without its journal.
type Turn struct {
	ID              string
	WorkKey         string
	Seat            string
	ConversationKey string
	Obligation      string
	Surface         string
	RevisionID      string
	Title           string
	// MailIDs are the deliveries it answers, oldest first.
	MailIDs []string
	// Base is what the model is told before the opening, frozen at the start; Opening is the first user message.
	Base    []byte
	Opening string
	// Running is false once it has ended.
	Running   bool
	Outcome   string
	ErrorKind string
	// Summary is the seat's word, or what broke.
	Summary      string
	Resumes      int32
	Rounds       int32
	Calls        int32
	InputTokens  int64
	OutputTokens int64
	Scripted     bool
	ReceiveAt    time.Time
	StartAt      time.Time
	// EndAt is zero while it runs.
	EndAt time.Time
}
