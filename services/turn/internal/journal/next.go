package journal

// Act is what a turn does next.
type Act string

// The acts.
const (
	// Ask the model.
	Ask Act = "ask"
	// Dispatch the current call, which is planned.
	Dispatch Act = "dispatch"
	// Settle the current call, which was found dispatched: repeat it or call it unknown.
	Settle Act = "settle"
	// End the turn without a submission; see Step.Kind.
	End Act = "end"
)

// Kinds of end that a journal can tell by itself.
const (
	KindMaxRounds    = "max_rounds"
	KindToolLoop     = "tool_loop"
	KindRefused      = "refused"
	KindContextFull  = "context_full"
	KindLength       = "length"
	KindNotSubmitted = "not_submitted"
)

// maxReminders is how often in a row a seat that calls nothing is told to submit.
const maxReminders = 2

// Step is the next thing to do.
type Step struct {
	Act Act
	// Kind says why the turn ends.
	Kind string
	// Looped is set when the call to dispatch is not to be executed: it was made too often in a row.
	Looped int
}

// Limits bound a turn.
type Limits struct {
	// MaxRounds of answers.
	MaxRounds int
	// IdenticalCalls in a row that are executed.
	IdenticalCalls int
}

// Next answers what the journal says is next.
func (j *Journal) Next(l Limits) Step {
	if call := j.current(); call != nil {
		if call.State == Dispatched {
			return Step{Act: Settle}
		}
		switch streak := j.streak(); {
		case streak > l.IdenticalCalls+1:
			return Step{Act: End, Kind: KindToolLoop}
		case streak == l.IdenticalCalls+1:
			return Step{Act: Dispatch, Looped: streak - 1}
		default:
			return Step{Act: Dispatch}
		}
	}
	if len(j.Rounds) == 0 {
		return Step{Act: Ask}
	}
	switch j.Rounds[len(j.Rounds)-1].Stop {
	case StopRefusal:
		return Step{Act: End, Kind: KindRefused}
	case StopContext:
		return Step{Act: End, Kind: KindContextFull}
	case StopLength:
		return Step{Act: End, Kind: KindLength}
	}
	switch {
	case len(j.Rounds) >= l.MaxRounds:
		return Step{Act: End, Kind: KindMaxRounds}
	case j.silent() > maxReminders:
		return Step{Act: End, Kind: KindNotSubmitted}
	default:
		return Step{Act: Ask}
	}
}

// silent counts the rounds without a call at the end.
func (j *Journal) silent() int {
	n := 0
	for i := len(j.Rounds) - 1; i >= 0 && len(j.Rounds[i].Calls) == 0; i-- {
		n++
	}
	return n
}

// streak counts how many calls up to and with the current one are the same. It looks back no further than they reach.
func (j *Journal) streak() int {
	current := j.current()
	same, n, found := Hash(current.Tool, current.Args), 0, false
	for i := len(j.Rounds) - 1; i >= 0; i-- {
		calls := j.Rounds[i].Calls
		for k := len(calls) - 1; k >= 0; k-- {
			found = found || &calls[k] == current
			switch {
			case !found:
			case calls[k].Tool == current.Tool && Hash(calls[k].Tool, calls[k].Args) == same:
				n++
			default:
				return n
			}
		}
	}
	return n
}
