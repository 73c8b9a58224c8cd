// Package routing turns webhooks that are durable into deliveries.
//
// [Decide] is the rule, free of I/O: given what a notice says, who is who and
// what is known of the conversation, it says of every seat meant whether it is
// woken, and why not. [Router] does the work: it takes waiting webhooks lane by
// lane and commits, in one transaction, deliveries, the events that tell of
// them, and what was decided.
package routing

import (
	"slices"
	"time"

	"github.com/bullpenhq/bullpen/services/notification/internal/delivery"
	"github.com/bullpenhq/bullpen/services/notification/internal/roster"
	"github.com/bullpenhq/bullpen/services/notification/internal/slack"
	"github.com/bullpenhq/bullpen/services/notification/internal/store"
)

// Limits bound how often programs may wake a seat.
type Limits struct {
	// MachineWakes is how many deliveries that no person sent a seat gets in
	// one conversation within Window.
	MachineWakes int
	Window       time.Duration
}

// maxDecisions bounds what is kept of a notice that names a crowd.
const maxDecisions = 100

// Why a seat is not woken.
const (
	skipNobody  = "no seat has this account"
	skipNoLead  = "no unit of this name has a lead"
	skipGone    = "the app belongs to no seat any more"
	skipPerson  = "a person's seat gets no deliveries"
	skipOwn     = "it is the seat's own message"
	skipTold    = "an earlier version of the message has called this seat"
	skipBreaker = "programs have woken this seat too often in this conversation"
	duplicate   = "the seat has this message already"
)

// Decide answers one decision for every seat or name that a notice means. app
// is the Slack app that heard it, empty for GitHub. It completes the notice's
// sender with the seat that it is.
func Decide(n *delivery.Notice, app string, r *roster.Roster, known store.Known, limits Limits, receivedAt time.Time) []delivery.Decision {
	identify(&n.Sender, n.Source, r, known.Author)
	var decisions []delivery.Decision
	settled := map[string]bool{}
	for _, claim := range n.Claims {
		seats, reason := resolve(claim, app, r, known)
		if len(seats) == 0 && reason != "" && len(decisions) < maxDecisions {
			decisions = append(decisions, delivery.Decision{Name: claim.Name, Outcome: delivery.OutcomeSkipped, Reason: reason})
		}
		for _, seat := range seats {
			if settled[seat] || len(decisions) >= maxDecisions {
				continue
			}
			settled[seat] = true
			decisions = append(decisions, decide(n, claim, seat, r, known, limits, receivedAt))
		}
	}
	return decisions
}

func decide(
	n *delivery.Notice, claim delivery.Claim, seat string, r *roster.Roster, known store.Known, limits Limits, receivedAt time.Time,
) delivery.Decision {
	skip := func(reason string) delivery.Decision {
		return delivery.Decision{Seat: seat, Outcome: delivery.OutcomeSkipped, Reason: reason}
	}
	who, ok := r.Seat(seat)
	switch {
	case !ok:
		return skip(skipGone)
	case !who.Agent:
		return skip(skipPerson)
	case n.Sender.Seat == seat:
		return skip(skipOwn)
	case n.Revision != "" && known.Told[seat]:
		return skip(skipTold)
	case n.Sender.Machine() && known.MachineWakes[seat] >= limits.MachineWakes:
		return skip(skipBreaker)
	}
	return delivery.Decision{
		Seat: seat, Outcome: delivery.OutcomeDelivered, Reason: claim.Reason,
		Delivery: &delivery.Delivery{
			ID:   delivery.ID(seat, n.ConversationKey, n.MessageID, n.Revision),
			Seat: seat, ConversationKey: n.ConversationKey, Source: n.Source,
			Obligation: claim.Obligation, Addressed: claim.Addressed, Reason: claim.Reason,
			Sender: n.Sender, Subject: n.Subject, Body: n.Body, URL: n.URL,
			MessageID: n.MessageID, MessageRevision: n.Revision,
			OccurredAt: n.OccurredAt, ReceivedAt: receivedAt,
		},
	}
}

// resolve answers the seats that a claim means; none with a reason when a name
// is nobody here.
func resolve(c delivery.Claim, app string, r *roster.Roster, known store.Known) ([]string, string) {
	one := func(seat string, ok bool, reason string) ([]string, string) {
		if !ok {
			return nil, reason
		}
		return []string{seat}, ""
	}
	switch c.By {
	case delivery.ByLogin:
		seat, ok := r.ByLogin(c.Name)
		if !ok && !c.Addressed {
			return nil, "" // a stranger who only listens is not worth a word
		}
		return one(seat, ok, skipNobody)
	case delivery.ByTeam:
		seat, ok := r.ByTeam(c.Name)
		return one(seat, ok, skipNoLead)
	case delivery.ByApp:
		a, ok := r.App(app)
		return one(a.Seat, ok, skipGone)
	default:
		return following(app, r, known), ""
	}
}

// following answers the seats that are part of a conversation. A Slack app
// hears for its own seat only: the others hear through theirs.
func following(app string, r *roster.Roster, known store.Known) []string {
	if app != "" {
		if a, ok := r.App(app); ok && known.Following[a.Seat] {
			return []string{a.Seat}
		}
		return nil
	}
	var seats []string
	for seat := range known.Following {
		if _, ok := r.Seat(seat); ok {
			seats = append(seats, seat)
		}
	}
	slices.Sort(seats)
	return seats
}

// identify finds the seat that sent a message: what we posted ourselves knows
// its author, everybody else is known by the account.
func identify(s *delivery.Sender, source string, r *roster.Roster, author string) {
	s.Seat = author
	if s.Seat == "" {
		if source == slack.Source {
			s.Seat, _ = r.BySlackUser(s.VendorID)
		} else if s.Login != "" {
			s.Seat, _ = r.ByLogin(s.Login)
		}
	}
	if seat, ok := r.Seat(s.Seat); ok {
		s.Agent = seat.Agent
	}
}
