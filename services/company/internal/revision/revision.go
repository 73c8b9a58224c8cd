// Package revision says what a company revision is and when one may become active.
//
// A revision is a document that was stored, and it never changes. One of them is active; activating another is a
// compare-and-set on its parent, and each activation has an epoch, one more than the last. Whoever loses the race keeps
// what they wrote: their revision is stored, inert, with epoch 0.
package revision

import (
	"bytes"
	"crypto/sha256"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Reasons of refusals.
const (
	// ReasonAdvanced: another revision is active than the one that was to be replaced.
	ReasonAdvanced = "REVISION_ADVANCED"
	// ReasonNone: no revision is active yet.
	ReasonNone = "NO_ACTIVE_REVISION"
)

// Facts of a refusal with [ReasonAdvanced].
const (
	FactCurrent = "current_revision_id"
	FactStored  = "stored_revision_id"
)

// Revision is a stored document, without its text.
type Revision struct {
	ID uuid.UUID
	// ParentID is the revision it was made from; [uuid.Nil] for the first.
	ParentID uuid.UUID
	// Epoch counts activations; 0 while it was never active.
	Epoch  int32
	Active bool
	// By is who stored it, as "<kind>:<id>".
	By, Summary string
	CreatedAt   time.Time
	// ActivatedAt is zero when it was never active.
	ActivatedAt time.Time
	// Digest is the SHA-256 of the document's bytes.
	Digest []byte
}

// Put is a document that is to become active.
type Put struct {
	Document    string
	By, Summary string
	// Parent is the revision it replaces, [uuid.Nil] for whatever is active.
	Parent uuid.UUID
	// IfMatch makes a Parent of [uuid.Nil] mean that none may be active.
	IfMatch bool
	At      time.Time
}

// Digest is the SHA-256 of the document's bytes.
func (p Put) Digest() []byte {
	sum := sha256.Sum256([]byte(p.Document))
	return sum[:]
}

// Against decides what becomes of a put while active is the active revision, the zero value when there is none. Unchanged
// means that the document is active already. It refuses with stale_version when another revision was to be replaced.
func (p Put) Against(active Revision) (unchanged bool, err error) {
	if active.Active && bytes.Equal(active.Digest, p.Digest()) {
		return true, nil
	}
	if p.Parent == active.ID || p.Parent == uuid.Nil && !p.IfMatch {
		return false, nil
	}
	f := fault.New(fault.StaleVersion, "Another revision has become active since: it is %s, at epoch %d. Read it, and put "+
		"your change on top of it.", active.ID, active.Epoch)
	if active.ID == uuid.Nil {
		f = fault.New(fault.StaleVersion, "No revision is active, so none can be replaced. Leave the parent out.")
	}
	return false, f.WithReason(ReasonAdvanced).WithField("parent_revision_id").
		WithFact(FactCurrent, idText(active.ID)).WithFact("current_epoch", strconv.Itoa(int(active.Epoch)))
}

// Next answers the revision that a put becomes on top of active.
func (p Put) Next(active Revision) Revision {
	return Revision{
		ID: uuid.Must(uuid.NewV7()), ParentID: active.ID, Epoch: active.Epoch + 1, Active: true,
		By: p.By, Summary: p.Summary, CreatedAt: p.At, ActivatedAt: p.At, Digest: p.Digest(),
	}
}

// Inert answers the revision that a put becomes when it may not be activated.
func (p Put) Inert() Revision {
	return Revision{
		ID: uuid.Must(uuid.NewV7()), ParentID: p.Parent, By: p.By, Summary: p.Summary, CreatedAt: p.At, Digest: p.Digest(),
	}
}

// None is the refusal of a read before the first revision.
func None() error {
	return fault.New(fault.NotFound, "No company is active yet. Put a document first.").WithReason(ReasonNone)
}

// Unknown is the refusal of an id that no revision has.
func Unknown(field string) *fault.Error {
	return fault.New(fault.NotFound, "No revision has this id. List the revisions to find it.").WithField(field)
}

func idText(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}
