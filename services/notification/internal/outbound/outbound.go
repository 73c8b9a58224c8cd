// Package outbound carries answers to the vendors, each of them once.
//
// No vendor takes an idempotency key for a comment, so a post whose answer did
// not come is in doubt. The idea to hold: a message in doubt is looked for by
// the marker it carries before it is ever sent again. A worker records that it
// is sending before it does, so that one which dies leaves a message in doubt
// and not a message unsent.
//
//	queued ──► sending ──► posted
//	   ▲          │ ├────► failed     the vendor refused for good
//	   │          │ └────► queued     surely not sent, or asked to wait
//	   │          ▼
//	   └────── unknown ──► posted     found by its marker
//	 not found
//
// One worker at a time, in any process, posts with one seat's credential: it
// holds a lease whose fence every write must match.
package outbound

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
)

// Message is what a surface posts.
type Message struct {
	ID              uuid.UUID
	ConversationKey string
	// Body is Markdown.
	Body string
	// Since is when the message cannot yet have stood: where a search may begin.
	Since time.Time
}

// Posted is a message that stands at the vendor.
type Posted struct {
	// VendorID is what the vendor calls it, in the form in which its webhooks do.
	VendorID string
	// URL is where a person can see it; empty when the vendor did not say.
	URL string
}

// Surface is a vendor's API. Errors are *Failure where the vendor or the
// transport has said what happened; any other error leaves the call in doubt.
type Surface interface {
	// Post posts a message with its marker.
	Post(ctx context.Context, token config.Secret, m Message) (Posted, error)
	// Find looks for a message by its marker.
	Find(ctx context.Context, token config.Secret, m Message) (Posted, bool, error)
}

// Kind is what a failure means for the message.
type Kind int

const (
	// InDoubt: the message may stand.
	InDoubt Kind = iota
	// NotSent: the message surely does not stand; it may be sent again.
	NotSent
	// Limited: the vendor wants quiet first.
	Limited
	// Refused: the vendor will never take it.
	Refused
)

// Failure is a call that did not go well.
type Failure struct {
	Kind Kind
	// Wait is how long to be quiet when Limited.
	Wait time.Duration
	// Class is the refusal's, when Refused.
	Class fault.Class
	// Detail is a sentence for people; it never holds a credential.
	Detail string
	cause  error
}

// NewFailure makes a failure; cause may be nil and is for the log.
func NewFailure(kind Kind, detail string, cause error) *Failure {
	return &Failure{Kind: kind, Detail: detail, cause: cause}
}

// Error answers the detail and the cause: it is the log's form.
func (f *Failure) Error() string {
	if f.cause != nil {
		return strings.TrimSuffix(f.Detail, ".") + ": " + f.cause.Error()
	}
	return f.Detail
}

// Unwrap answers the cause, or nil.
func (f *Failure) Unwrap() error { return f.cause }

// classify makes a failure of any error of a surface.
func classify(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return NewFailure(NotSent, "The vendor cannot be reached.", err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return NewFailure(InDoubt, "The vendor did not answer in time.", err)
	}
	return NewFailure(InDoubt, "The connection to the vendor broke before it answered.", err)
}
