package approval

import "fmt"

// Parked is what the seat reads instead of a result while the question waits.
func (a *Approval) Parked() string {
	text := fmt.Sprintf("This call of `%s` was not made: it waits for a person, as approval %s, until %s.", a.Tool, a.ID, clock(a.ExpiresAt))
	if a.Reason != "" {
		text += " Why it needs one: " + a.Reason
	}
	return text + " You will get the decision, and the result if it is made, as mail in this conversation. Do not make the call again and " +
		"do not wait for it: go on with what does not depend on it, then submit."
}

// Decision is the line that says what became of the question.
func (a *Approval) Decision() string {
	switch a.State {
	case Waiting:
		return fmt.Sprintf("The call of `%s` waits for a person until %s.", a.Tool, clock(a.ExpiresAt))
	case Expired:
		return fmt.Sprintf("Nobody decided about the call of `%s` before %s; it was not made.", a.Tool, clock(a.ExpiresAt))
	case Cancelled:
		return fmt.Sprintf("The question about the call of `%s` was taken back by %s; it was not made.", a.Tool, a.DecidedBy)
	case Denied:
		return fmt.Sprintf("The call of `%s` was denied by %s; it was not made.%s", a.Tool, a.DecidedBy, a.noted())
	case Approved:
		return a.made()
	default:
		return fmt.Sprintf("The call of `%s` is %s.", a.Tool, a.State)
	}
}

// made says what became of a call that was approved.
func (a *Approval) made() string {
	switch a.Call.Status {
	case Running:
		return fmt.Sprintf("The call of `%s` was approved by %s and is being made.%s", a.Tool, a.DecidedBy, a.noted())
	case OK:
		return fmt.Sprintf("The call of `%s` was approved by %s and made.%s", a.Tool, a.DecidedBy, a.noted())
	case Unknown:
		return fmt.Sprintf("The call of `%s` was approved by %s, but its outcome is unknown: it may or may not have happened. Look before "+
			"you make it again.%s", a.Tool, a.DecidedBy, a.noted())
	default:
		return fmt.Sprintf("The call of `%s` was approved by %s, but it %s.%s", a.Tool, a.DecidedBy, failure(a.Call.Status), a.noted())
	}
}

func (a *Approval) noted() string {
	if a.Note == "" {
		return ""
	}
	return " They say: " + a.Note
}

func failure(status string) string {
	if status == Refused {
		return "was refused"
	}
	return "failed"
}
