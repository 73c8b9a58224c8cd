package convert

import (
	"cmp"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// Ask answers a question; nil for none.
func Ask(a *item.Ask) *trackerv1.Ask {
	if a == nil {
		return nil
	}
	out := &trackerv1.Ask{
		Asked: a.Asked, Open: a.Open(), AnsweredBy: a.AnsweredBy, AnswerTime: moment(a.AnsweredAt), Decision: Decision(a.Decision), Choice: a.Choice,
	}
	if a.Answer != nil {
		out.Answer = a.Answer.String()
	}
	return out
}

// Decision answers a choice to make; nil for none.
func Decision(d *item.Decision) *trackerv1.Decision {
	if d == nil {
		return nil
	}
	out := &trackerv1.Decision{Question: d.Question, Recommended: d.Recommended, Rationale: d.Rationale, Role: d.Role}
	for _, o := range d.Options {
		out.Options = append(out.Options, &trackerv1.DecisionOption{Id: o.ID, Label: o.Label, Detail: o.Detail})
	}
	for _, e := range d.Evidence {
		out.Evidence = append(out.Evidence, &trackerv1.Evidence{Kind: e.Kind, Ref: e.Ref, Label: e.Label})
	}
	if d.Inform != nil {
		out.Inform = &trackerv1.Inform{Surface: d.Inform.Surface, Channel: d.Inform.Channel}
	}
	return out
}

// DecisionOf is the inverse of [Decision]; it checks nothing.
func DecisionOf(d *trackerv1.Decision) *item.Decision {
	if d == nil {
		return nil
	}
	out := &item.Decision{Question: d.GetQuestion(), Recommended: d.GetRecommended(), Rationale: d.GetRationale(), Role: cmp.Or(d.GetRole(), "approver")}
	for _, o := range d.GetOptions() {
		out.Options = append(out.Options, item.Option{ID: o.GetId(), Label: o.GetLabel(), Detail: o.GetDetail()})
	}
	for _, e := range d.GetEvidence() {
		out.Evidence = append(out.Evidence, item.Evidence{Kind: e.GetKind(), Ref: e.GetRef(), Label: e.GetLabel()})
	}
	if d.GetInform() != nil {
		out.Inform = &item.Inform{Surface: d.GetInform().GetSurface(), Channel: d.GetInform().GetChannel()}
	}
	return out
}
