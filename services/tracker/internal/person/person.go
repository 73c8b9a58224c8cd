// Package person is what a colleague keeps for themselves: what they have read and put off, what they do first, what they keep at
// hand.
//
// It is pure: no database, no wire, no clock of its own.
//
// The idea to hold: a place in the order of writes says up to where everything is read, and two short lists say where that is not
// so. Marking one notice costs one entry; reading on to a place costs none and forgets those before it.
package person

import (
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/wake"
)

// Limits of a record.
const (
	// MaxMarks is how many entries each of read, unread and snoozed holds.
	MaxMarks      = 256
	MaxPriorities = 32
	MaxViews      = 32
	MaxFavorites  = 64
	// MaxSnoozeDays is how far ahead a notice may be put off.
	MaxSnoozeDays = 365
)

// ReasonVersion is the reason of a refused if_match.
const ReasonVersion = "PERSON_VERSION"

// Usually answers the reasons that come first for whoever has not said otherwise.
func Usually() []string {
	return []string{wake.Mention, wake.Asked, wake.Answered, wake.Assignee, wake.Unassigned, wake.Reporter, wake.Unblocked, wake.Prioritised}
}

// Snooze puts a notice off.
type Snooze struct {
	Record int64
	Until  time.Time
}

// Record is what one colleague keeps. Its lists of notices are sorted.
type Record struct {
	Handle string
	// SeenThrough is the place up to which notices are read, but for those in Unread. Read are those after it.
	SeenThrough  int64
	Read, Unread []int64
	Snoozed      []Snooze
	Priorities   []uuid.UUID
	// PrioritiesBy is who set the order when it was not the owner.
	PrioritiesBy string
	PrioritiesAt *time.Time
	Views        []uuid.UUID
	Favorites    []uuid.UUID
	// Primary is nil for the usual reasons.
	Primary []string
	// Version is 0 as long as nothing was kept.
	Version int32
}

// PrimaryReasons answers the reasons that come first.
func (r *Record) PrimaryReasons() []string {
	if r.Primary == nil {
		return Usually()
	}
	return r.Primary
}

// HasRead reports whether a notice is read.
func (r *Record) HasRead(record int64) bool {
	if record <= r.SeenThrough {
		return !slices.Contains(r.Unread, record)
	}
	return slices.Contains(r.Read, record)
}

// Until answers when a notice comes back; nil when it was not put off.
func (r *Record) Until(record int64) *time.Time {
	at := slices.IndexFunc(r.Snoozed, func(s Snooze) bool { return s.Record == record })
	if at < 0 {
		return nil
	}
	return &r.Snoozed[at].Until
}

// Due answers the notices that were put off and whose time has come.
func (r *Record) Due(now time.Time) []int64 {
	var due []int64
	for _, s := range r.Snoozed {
		if !s.Until.After(now) {
			due = append(due, s.Record)
		}
	}
	return due
}

// Prioritise sets the whole order of work and answers the items that are new in it. by is the handle or token of who sets it. It
// answers false when the order was so already.
func (r *Record) Prioritise(items []uuid.UUID, by string, now time.Time) (added []uuid.UUID, changed bool) {
	if slices.Equal(r.Priorities, items) {
		return nil, false
	}
	for _, id := range items {
		if !slices.Contains(r.Priorities, id) {
			added = append(added, id)
		}
	}
	r.Priorities, r.PrioritiesAt, r.PrioritiesBy = items, &now, ""
	if by != r.Handle {
		r.PrioritiesBy = by
	}
	r.Version++
	return added, true
}

// Match refuses a version that is no longer the record's. Nil matches any.
func (r *Record) Match(version *int32) error {
	if version == nil || *version == r.Version {
		return nil
	}
	return fault.New(fault.StaleVersion, "the record of %s has changed since you read it: it is at version %d, not %d; read it again with get_person",
		r.Handle, r.Version, *version).WithField("if_match").WithReason(ReasonVersion).WithFact("current_version", strconv.Itoa(int(r.Version)))
}
