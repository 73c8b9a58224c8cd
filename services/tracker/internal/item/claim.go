package item

import (
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Renewal is how long a claim holds, at least, after its holder wrote something about the item.
const Renewal = 30 * time.Minute

// Reasons of refused claims.
const (
	ReasonClaimed  = "ITEM_CLAIMED"
	ReasonAssigned = "ITEM_ASSIGNED"
	ReasonFinished = "ITEM_FINISHED"
)

// Claim says who works on an item, and until when.
type Claim struct {
	Holder string // a handle or a token's name
	// Kind is the holder's, as a token may be called like a seat.
	Kind  string
	Until time.Time
}

// Live reports whether the claim still holds.
func (c *Claim) Live(now time.Time) bool { return c != nil && now.Before(c.Until) }

// of reports whether the claim is the actor's.
func (c *Claim) of(by Actor) bool { return c != nil && c.Holder == by.Name && c.Kind == by.Kind }

// Claimed gives the item to the actor to work on until a moment, or refuses because somebody else works on it, has it, or because there is
// nothing left to do. It answers false when the actor held it so already. A claim says who works on an item now: it changes neither its
// version nor who has it.
func (i *Item) Claimed(by Actor, until, now time.Time) (Change, bool, error) {
	switch {
	case !i.Open():
		return Change{}, false, fault.New(fault.Conflict, "%s is %s, so there is nothing to claim: reopen it with update_work_item if work is left", i.Key(), i.Status).
			WithField("item").WithReason(ReasonFinished)
	case i.Claim.Live(now) && !i.Claim.of(by):
		return Change{}, false, fault.New(fault.Conflict, "%s is claimed by %s until %s: take another one, claim_work_item without item finds the next",
			i.Key(), i.Claim.Holder, i.Claim.Until.UTC().Format(time.RFC3339)).WithField("item").WithReason(ReasonClaimed).
			WithFact("holder", i.Claim.Holder).WithFact("until", i.Claim.Until.UTC().Format(time.RFC3339))
	case i.Assignee != "" && i.Assignee != by.Seat:
		return Change{}, false, fault.New(fault.Conflict, "%s is %s's, who alone may claim it: take another one, or have it handed to you", i.Key(), i.Assignee).
			WithField("item").WithReason(ReasonAssigned).WithFact("assignee", i.Assignee)
	}
	renewed := i.Claim.Live(now)
	if renewed && i.Claim.Until.Equal(until) {
		return Change{}, false, nil
	}
	i.Claim = &Claim{Holder: by.Name, Kind: by.Kind, Until: until}
	return i.change("claimed", by, now), true, nil
}

// Released gives a claim back. It answers false when nobody holds the item. Whoever holds it may, and so may a person, for somebody
// who will not come back.
func (i *Item) Released(by Actor, now time.Time) (Change, bool, error) {
	switch {
	case !i.Claim.Live(now):
		return Change{}, false, nil
	case !i.Claim.of(by) && !by.Person():
		return Change{}, false, fault.New(fault.Conflict, "%s is claimed by %s until %s, and only its holder or a person gives it back",
			i.Key(), i.Claim.Holder, i.Claim.Until.UTC().Format(time.RFC3339)).WithField("item").WithReason(ReasonClaimed).
			WithFact("holder", i.Claim.Holder).WithFact("until", i.Claim.Until.UTC().Format(time.RFC3339))
	}
	i.Claim = nil
	return i.change("released", by, now), true, nil
}

// renew keeps the claim of a holder who goes on working.
func (i *Item) renew(by Actor, now time.Time) {
	if !i.Claim.Live(now) || !i.Claim.of(by) {
		return
	}
	if until := now.Add(Renewal); until.After(i.Claim.Until) {
		i.Claim = &Claim{Holder: i.Claim.Holder, Kind: i.Claim.Kind, Until: until}
	}
}
