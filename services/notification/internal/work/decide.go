package work

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/services/notification/internal/delivery"
)

// Why somebody is not told.
const (
	skipOwn      = "it is their own doing"
	skipMuted    = "they want to hear nothing of the item, and nothing is owed"
	skipGone     = "they are not in the company any more"
	skipFallback = "somebody else hears of it"
	skipPersons  = "only persons are told of this"
	skipAbsorbed = "a program did it and nothing is owed: an agent reads of it when it next works on the item"
	skipBreaker  = "programs have woken this seat too often in this conversation"
)

// Telling is what a decision rests on beside the change.
type Telling struct {
	// Seats is the company now.
	Seats Seats
	// Wakes are those of late, and MaxWakes is how many a seat gets of programs in one conversation.
	Wakes    Wakes
	MaxWakes int
	// At is now.
	At time.Time
}

// Decide settles whom a change is told to. Whatever it says, the same change, company and wakes lead to the same answer, ids included.
func Decide(c *Change, t Telling) Outcome {
	if len(c.Concerns) == 0 {
		return Outcome{State: Nobody, Why: "it concerns nobody"}
	}
	d := &decider{change: c, Telling: t}
	stands, survivors := d.people()
	for _, p := range stands {
		d.settle(p, p.refusal)
	}
	d.fallBack(survivors)
	d.outcome.State = Told
	if len(d.outcome.Notices)+len(d.outcome.Deliveries) == 0 {
		d.outcome.State, d.outcome.Why = Quiet, why(d.outcome.Decisions)
	}
	return d.outcome
}

// stand is one colleague and all their reasons, the strongest first.
type stand struct {
	handle   string
	concerns []Concern
	seat     Seat
	// refusal is why they hear nothing; empty when they may.
	refusal string
}

func (s *stand) addressed() bool {
	return slices.ContainsFunc(s.concerns, func(c Concern) bool { return c.Addressed })
}

func (s *stand) reasons() []string {
	reasons := make([]string, 0, len(s.concerns))
	for _, c := range s.concerns {
		if !slices.Contains(reasons, c.Reason) {
			reasons = append(reasons, c.Reason)
		}
	}
	return reasons
}

type decider struct {
	Telling
	change  *Change
	outcome Outcome
}

// people gathers reasons by colleague, in the order in which the tracker names them, leads that stand in left out; and answers how many
// of them are there to hear.
func (d *decider) people() (stands []*stand, survivors int) {
	byHandle := map[string]*stand{}
	for _, c := range d.change.Concerns {
		if c.Reason == leadFallback {
			continue
		}
		p := byHandle[c.Handle]
		if p == nil {
			p = &stand{handle: c.Handle}
			byHandle[c.Handle], stands = p, append(stands, p)
		}
		p.concerns = append(p.concerns, c)
	}
	for _, p := range stands {
		d.admit(p)
		if p.refusal == "" {
			survivors++
		}
	}
	return stands, survivors
}

// admit sorts a colleague's reasons and says whether they are there to hear, whatever becomes of it.
func (d *decider) admit(p *stand) {
	slices.SortStableFunc(p.concerns, func(a, b Concern) int { return cmp.Compare(strength(a.Reason), strength(b.Reason)) })
	if d.own(p.handle) {
		others := slices.DeleteFunc(slices.Clone(p.concerns), func(c Concern) bool { return c.Reason != unblocked })
		if len(others) == 0 {
			p.refusal = skipOwn
			return
		}
		p.concerns = others // what they did to this item is about another one, too
	}
	var there bool
	p.seat, there = d.Seats(p.handle)
	switch {
	case !there:
		p.refusal = skipGone
	case slices.Contains(d.change.Muted, p.handle) && !p.addressed():
		p.refusal = skipMuted
	case p.seat.Agent && p.concerns[0].Reason == unwatched:
		p.refusal = skipPersons
	}
}

// own reports whether a colleague did it, under their handle or under a token's name.
func (d *decider) own(handle string) bool {
	return handle == d.change.Actor || handle == d.change.Token
}

// fallBack tells the first lead that can hear of it when nobody else could.
func (d *decider) fallBack(survivors int) {
	for _, c := range d.change.Concerns {
		if c.Reason != leadFallback || d.known(c.Handle) {
			continue
		}
		p := &stand{handle: c.Handle, concerns: []Concern{c}}
		if d.admit(p); p.refusal == "" && survivors > 0 {
			p.refusal = skipFallback
		}
		if p.refusal == "" {
			survivors++
		}
		d.settle(p, p.refusal)
	}
}

func (d *decider) known(handle string) bool {
	return slices.ContainsFunc(d.outcome.Decisions, func(one Decision) bool { return one.Handle == handle })
}

// settle makes the notice or the delivery, unless there is a refusal, and keeps the decision.
func (d *decider) settle(p *stand, refusal string) {
	strongest := p.concerns[0]
	if refusal == "" && p.seat.Agent {
		refusal = d.spare(p, strongest)
	}
	decision := Decision{Handle: p.handle, Reason: strongest.Reason, Outcome: Skipped, Detail: refusal}
	switch {
	case refusal != "":
	case p.seat.Agent:
		decision.Outcome = Delivered
		d.outcome.Deliveries = append(d.outcome.Deliveries, d.delivery(p))
	default:
		decision.Outcome = Noticed
		d.outcome.Notices = append(d.outcome.Notices, Notice{
			ID: noticeID(p.handle, d.change.Position), Person: p.handle, Item: d.about(strongest), Reasons: p.reasons(),
		})
	}
	d.outcome.Decisions = append(d.outcome.Decisions, decision)
}

// spare answers why an agent is not woken although it is there to hear.
func (d *decider) spare(p *stand, strongest Concern) string {
	switch {
	case !d.change.Machine():
		return ""
	case !p.addressed() && strongest.OwesSurface == "" && absorbed(strongest.Reason):
		return skipAbsorbed
	case d.Wakes[Lane{p.handle, Conversation(d.about(strongest).ID)}] >= d.MaxWakes:
		return skipBreaker
	default:
		return ""
	}
}

func (d *decider) about(c Concern) Item {
	if c.About != nil {
		return *c.About
	}
	return d.change.Item
}

func (d *decider) delivery(p *stand) *delivery.Delivery {
	strongest, c := p.concerns[0], d.change
	item := d.about(strongest)
	actor, _ := d.Seats(c.Actor)
	one := &delivery.Delivery{
		Seat: p.handle, ConversationKey: Conversation(item.ID), Source: Source, Surface: d.surface(strongest), Obligation: delivery.ObligationNone,
		Addressed: p.addressed(), Reason: strongest.Reason,
		Sender: delivery.Sender{
			VendorID: c.Doer(), Name: cmp.Or(actor.Name, c.Doer()), Seat: c.Actor, Agent: c.ActorKind == "agent",
			Bot: c.ActorKind == "system",
		},
		Subject: strings.TrimSpace(item.Key + " " + item.Title), MessageID: c.Position, Position: c.Position, OccurredAt: c.At, ReceivedAt: d.At,
	}
	if one.Addressed {
		one.Obligation = delivery.ObligationTool
	}
	if strongest.OwesSurface != "" {
		// Such a wake is a conversation of its own, so that no turn owes answers in two places.
		one.Obligation, one.Surface = delivery.ObligationTool, strongest.OwesSurface
		one.ConversationKey += "/" + c.Position
	}
	one.ID = delivery.ID(one.Seat, one.ConversationKey, one.MessageID, "")
	one.Body = text(c, p.concerns, item)
	return one
}

// surface answers where an answer is owed: on the item, but for work that was given to somebody, which is delivered wherever it belongs.
func (d *decider) surface(strongest Concern) string {
	given := strongest.Reason == prioritised || strongest.Reason == assignee && d.change.Kind != "comment"
	if given {
		return ""
	}
	return Surface
}

// why joins the reasons for which nobody was told, each once.
func why(decisions []Decision) string {
	var reasons []string
	for _, d := range decisions {
		if !slices.Contains(reasons, d.Detail) {
			reasons = append(reasons, d.Detail)
		}
	}
	return strings.Join(reasons, "; ")
}

// noticeID is the same however often the change is read.
func noticeID(person, position string) uuid.UUID {
	namespace := uuid.NewSHA1(uuid.NameSpaceURL, []byte("bullpen.notification.notice"))
	return uuid.NewSHA1(namespace, []byte(person+"\x00"+position))
}
