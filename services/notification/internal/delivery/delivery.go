// Package delivery holds the nouns between a webhook and a seat, free of I/O.
//
// A [Notice] is what a vendor's payload says, put in one form for all vendors:
// something happened in a conversation, somebody did it, and these are meant
// ([Claim]). It names people by the vendor's ids. A [Delivery] is a notice
// addressed to one seat of the company. A [Decision] says why a seat was or
// was not woken; all of them are kept, so that an operator never has to guess.
package delivery

import (
	"strings"
	"time"

	"github.com/google/uuid"
)

// Why a seat is woken.
const (
	ReasonMention         = "mention"
	ReasonDirectMessage   = "direct_message"
	ReasonThread          = "thread"
	ReasonAssigned        = "assigned"
	ReasonReviewRequested = "review_requested"
	ReasonReview          = "review"
	ReasonCheckFailed     = "check_failed"
)

// What is owed to the asker.
const (
	ObligationTool = "tool" // an answer that a tool must deliver
	ObligationNone = "none" // nothing: nobody waits
)

// Delivery is something that happened outside, addressed to one seat.
type Delivery struct {
	ID              uuid.UUID
	Seat            string
	ConversationKey string
	Source          string
	// Surface is where an answer to a change of our own is owed, empty for
	// anywhere. A vendor's message is answered at the vendor.
	Surface    string
	Obligation string
	// Addressed: the seat was meant in person.
	Addressed       bool
	Reason          string
	Sender          Sender
	Subject         string
	Body            string
	URL             string
	MessageID       string
	MessageRevision string
	// Position is where the change stands in the order of writes of the service
	// of ours that it happened in; empty for a vendor's.
	Position   string
	OccurredAt time.Time
	ReceivedAt time.Time
	// Sequence grows with every delivery; the store gives it out.
	Sequence int64
}

// Sender is who caused a delivery.
type Sender struct {
	VendorID string
	Name     string
	// Login is the vendor's name for the account, where it has one.
	Login string
	// Seat is the handle, when the sender is a seat of the company.
	Seat string
	// Agent: that seat is an agent's.
	Agent bool
	// Bot: the vendor says that it is a program.
	Bot bool
}

// Machine reports whether no person sent it: a program, or an agent's account.
func (s Sender) Machine() bool { return s.Bot || s.Agent }

// Notice is what one payload says.
type Notice struct {
	Source          string
	ConversationKey string
	// MessageID is the vendor's id of the message or object, unique within
	// the source together with the conversation.
	MessageID string
	// Revision tells an edit from the first version, which has none.
	Revision   string
	Sender     Sender
	Subject    string
	Body       string
	URL        string
	OccurredAt time.Time
	// Claims are who is meant, the strongest first.
	Claims []Claim
	// Marker is the id of our own outbound message that the payload says it
	// is; empty for anybody else's.
	Marker string
	// OutboundID is what the vendor calls the message, as a post of ours would
	// have recorded it; empty when it cannot be one.
	OutboundID string
}

// Who a claim names.
const (
	ByLogin     = "login"     // an account
	ByTeam      = "team"      // a team's slug: its unit's lead
	ByApp       = "app"       // the seat whose app heard it
	ByFollowing = "following" // every seat that is part of the conversation
)

// Claim says that somebody is meant, and how.
type Claim struct {
	By         string
	Name       string
	Reason     string
	Obligation string
	Addressed  bool
}

// What became of a claim on a seat.
const (
	OutcomeDelivered = "delivered"
	OutcomeDuplicate = "duplicate"
	OutcomeSkipped   = "skipped"
)

// Decision is what was decided about one seat, or about a name that is no seat.
type Decision struct {
	Seat    string `json:"seat,omitempty"`
	Name    string `json:"name,omitempty"`
	Outcome string `json:"outcome"`
	Reason  string `json:"reason"`
	// Delivery is set when the outcome is delivered; the store may turn it
	// into a duplicate.
	Delivery *Delivery `json:"-"`
}

// namespace makes delivery ids ours.
func namespace() uuid.UUID {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("bullpen.notification.delivery"))
}

// ID is the id of a seat's delivery of one revision of a message: the same
// however often, and by whichever webhook, the vendor tells of it.
func ID(seat, conversation, message, revision string) uuid.UUID {
	return uuid.NewSHA1(namespace(), []byte(strings.Join([]string{seat, conversation, message, revision}, "\x00")))
}
