package item

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Limits of a question. Sizes are in bytes.
const (
	MinOptions          = 2
	MaxOptions          = 6
	MaxEvidence         = 8
	maxOptionIDBytes    = 32
	maxQuestionBytes    = 300
	maxLabelBytes       = 80
	maxDetailBytes      = 500
	maxRationaleBytes   = 1500
	maxEvidenceRefBytes = 2048
	maxInformPlaceBytes = 200
)

// ReasonAnswered is the reason of the refusal of a second answer.
const ReasonAnswered = "ALREADY_ANSWERED"

// Kinds of evidence.
const (
	EvidenceTask = "task"
	EvidencePage = "page"
	EvidenceTurn = "turn"
	EvidenceRun  = "run"
	EvidenceURL  = "url"
)

// Ask is a question that one colleague owes an answer to. It is set when its comment is made and never changes but for its answer.
type Ask struct {
	Asked string // a handle
	// Decision is nil for a free question.
	Decision *Decision
	// Answer is the comment that answers it; nil while it is open.
	Answer     *uuid.UUID
	AnsweredBy string
	AnsweredAt *time.Time
	// Choice is the option that was chosen; empty for none.
	Choice string
}

// Open reports whether it has no answer yet.
func (a *Ask) Open() bool { return a.Answer == nil }

// Decision is a choice that somebody is asked to make.
type Decision struct {
	Question string   `json:"question"`
	Options  []Option `json:"options"`
	// Recommended is an option's id, or empty.
	Recommended string     `json:"recommended,omitempty"`
	Rationale   string     `json:"rationale,omitempty"`
	Evidence    []Evidence `json:"evidence,omitempty"`
	// Role is approver or contributor.
	Role   string  `json:"role"`
	Inform *Inform `json:"inform,omitempty"`
}

// Option is one thing to choose.
type Option struct {
	ID     string `json:"id"`
	Label  string `json:"label"`
	Detail string `json:"detail,omitempty"`
}

// Evidence is something to look at before deciding. Whoever stores a task's checks that it is there and keeps its id.
type Evidence struct {
	Kind  string `json:"kind"`
	Ref   string `json:"ref"`
	Label string `json:"label,omitempty"`
}

// Inform is where an agent promises to say what was decided.
type Inform struct {
	Surface string `json:"surface"`
	Channel string `json:"channel"`
}

// Check refuses a decision that breaks a limit, naming the field and the limit. Only an agent may promise to inform somebody: the
// promise is kept by the engine that runs it.
func (d *Decision) Check(by Actor) error {
	if err := firstOf(
		text("decision.question", d.Question, 1, maxQuestionBytes),
		text("decision.rationale", d.Rationale, 0, maxRationaleBytes),
		among("decision.role", d.Role, "approver", "contributor"),
	); err != nil {
		return err
	}
	if n := len(d.Options); n < MinOptions || n > MaxOptions {
		return wrong("decision.options", "has %d options; a decision has %d to %d", n, MinOptions, MaxOptions)
	}
	var ids []string
	for n, o := range d.Options {
		if err := o.check(fmt.Sprintf("decision.options[%d]", n), ids); err != nil {
			return err
		}
		ids = append(ids, o.ID)
	}
	if d.Recommended != "" && !slices.Contains(ids, d.Recommended) {
		return wrong("decision.recommended", "%q is none of the options %s", d.Recommended, strings.Join(ids, ", "))
	}
	if n := len(d.Evidence); n > MaxEvidence {
		return wrong("decision.evidence", "has %d entries; a decision rests on at most %d", n, MaxEvidence)
	}
	for n, e := range d.Evidence {
		if err := e.check(fmt.Sprintf("decision.evidence[%d]", n)); err != nil {
			return err
		}
	}
	return d.Inform.check(by)
}

// Has reports whether an option is one of the decision's.
func (d *Decision) Has(option string) bool {
	return slices.ContainsFunc(d.Options, func(o Option) bool { return o.ID == option })
}

// OptionIDs names what there is to choose.
func (d *Decision) OptionIDs() []string {
	ids := make([]string, 0, len(d.Options))
	for _, o := range d.Options {
		ids = append(ids, o.ID)
	}
	return ids
}

func (o Option) check(path string, before []string) error {
	if len(o.ID) < 1 || len(o.ID) > maxOptionIDBytes || strings.Trim(o.ID, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		return wrong(path+".id", "must be 1 to %d of the signs a-z, 0-9, _ and -, not %q", maxOptionIDBytes, o.ID)
	}
	if slices.Contains(before, o.ID) {
		return wrong(path+".id", "%q is another option's already", o.ID)
	}
	return firstOf(text(path+".label", o.Label, 1, maxLabelBytes), text(path+".detail", o.Detail, 0, maxDetailBytes))
}

func (e Evidence) check(path string) error {
	if err := firstOf(
		among(path+".kind", e.Kind, EvidenceTask, EvidencePage, EvidenceTurn, EvidenceRun, EvidenceURL),
		text(path+".ref", e.Ref, 1, maxEvidenceRefBytes),
		text(path+".label", e.Label, 0, maxLabelBytes),
	); err != nil {
		return err
	}
	switch e.Kind {
	case EvidenceURL:
		if u, err := url.Parse(e.Ref); err != nil || u.Scheme != "https" || u.Host == "" {
			return wrong(path+".ref", "must be an https address, not %q", e.Ref)
		}
	case EvidencePage:
		if _, err := uuid.Parse(e.Ref); err != nil {
			return wrong(path+".ref", "must be a page's id, as get_page shows it, not %q", e.Ref)
		}
	}
	return nil
}

func (i *Inform) check(by Actor) error {
	if i == nil {
		return nil
	}
	if by.Kind != "agent" {
		return fault.New(fault.Forbidden, "decision.inform is a promise that only an agent can make: leave it out, and tell them yourself").
			WithField("decision.inform")
	}
	return firstOf(
		among("decision.inform.surface", i.Surface, "slack", "mattermost"),
		text("decision.inform.channel", i.Channel, 1, maxInformPlaceBytes),
	)
}

// AskedOf counts a question on the item and makes the colleague hear of it, unless they muted it.
func (i *Item) AskedOf(handle string) {
	i.OpenAsks++
	i.Watch(handle)
}

// Answered counts a question off.
func (i *Item) Answered() { i.OpenAsks = max(0, i.OpenAsks-1) }

// MayAnswer refuses an answer by somebody who was not asked. A person's own credential may answer for whoever was.
func (a *Ask) MayAnswer(by Actor) error {
	if by.Person() || by.Seat != "" && by.Seat == a.Asked {
		return nil
	}
	return fault.New(fault.Forbidden, "the question is @%s's to answer: only they or a person may", a.Asked).WithField("answers")
}

// Choose checks that an option is the question's.
func (a *Ask) Choose(option string) error {
	switch {
	case option == "":
		return nil
	case a.Decision == nil:
		return wrong("choice", "%q chooses nothing: the question has no options; answer it in body", option)
	case !a.Decision.Has(option):
		return wrong("choice", "%q is no option of the question; there are %s", option, strings.Join(a.Decision.OptionIDs(), ", "))
	default:
		return nil
	}
}

// AlreadyAnswered refuses a second answer and says who gave the first one and when.
func (a *Ask) AlreadyAnswered() error {
	at := ""
	if a.AnsweredAt != nil {
		at = a.AnsweredAt.UTC().Format(time.RFC3339)
	}
	return fault.New(fault.AlreadyAnswered, "the question was answered by %s at %s: read the answer with get_work_item", a.AnsweredBy, at).
		WithField("answers").WithReason(ReasonAnswered).WithFact("answered_by", a.AnsweredBy).WithFact("answered_at", at)
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func text(path, value string, least, most int) error {
	switch {
	case least > 0 && strings.TrimSpace(value) == "":
		return wrong(path, "must say something")
	case len(value) > most:
		return wrong(path, "is %d bytes long; at most %d are allowed", len(value), most)
	default:
		return nil
	}
}

func among(path, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return wrong(path, "must be one of %s, not %q", strings.Join(allowed, ", "), value)
}

// wrong refuses an argument; the sentence begins with its name.
func wrong(path, format string, args ...any) error {
	return fault.New(fault.Invalid, "%s %s", path, fmt.Sprintf(format, args...)).WithField(path)
}
