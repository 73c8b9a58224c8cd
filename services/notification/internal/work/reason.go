package work

import "slices"

// Why a change concerns somebody; the tracker's words.
const (
	asked          = "asked"
	answered       = "answered"
	mention        = "mention"
	blocking       = "blocking"
	unblocked      = "unblocked"
	prioritised    = "prioritised"
	assignee       = "assignee"
	unassigned     = "unassigned"
	reporter       = "reporter"
	thread         = "thread"
	routedTo       = "routed_to"
	parentAssignee = "parent_assignee"
	checklist      = "checklist"
	collaborator   = "collaborator"
	watcher        = "watcher"
	unwatched      = "unwatched"
	purged         = "purged"
	leadFallback   = "lead_fallback"
)

// Reasons answers every reason, the strongest first: a total order, so that whoever has several is told by the same one every time.
//
// First what the change did to them in person: a question only they can settle, the answer to theirs, a call by name, their item in
// somebody's way or out of it, a place in their order of work. Then whose work it is or was, who filed it, who spoke. Then who answers
// for something near it, who helps, who listens. The lead who stands in for everybody else comes last.
func Reasons() []string {
	return []string{
		asked, answered, mention, blocking, unblocked, prioritised,
		assignee, unassigned, reporter, thread,
		routedTo, parentAssignee, checklist, collaborator, watcher, unwatched, purged,
		leadFallback,
	}
}

// strength orders reasons; a smaller one is stronger. A reason that this build does not know comes last: it is told, as somebody
// thought that it should be.
func strength(reason string) int {
	all := Reasons()
	if at := slices.Index(all, reason); at >= 0 {
		return at
	}
	return len(all)
}

// absorbed reports whether a reason wakes no agent when another program caused it and nothing is owed. Who has an item, helps with it,
// spoke on it or watches it reads what happened there the next time they work on it; a turn for each remark of a colleague would answer
// remarks with remarks.
func absorbed(reason string) bool {
	return slices.Contains([]string{assignee, thread, collaborator, watcher}, reason)
}

// sentence tells a reason to whom it concerns.
func sentence(reason string) string {
	switch reason {
	case asked:
		return "you are asked a question and owe the answer"
	case answered:
		return "your question was answered"
	case mention:
		return "you are mentioned"
	case blocking:
		return "one item waits for another now, and you have the one that is waited for"
	case unblocked:
		return "nothing stands in front of your item any more"
	case prioritised:
		return "it was put into your order of work"
	case assignee:
		return "it is yours"
	case unassigned:
		return "it is not yours any more"
	case reporter:
		return "you filed it"
	case thread:
		return "you spoke in its thread"
	case routedTo:
		return "it is routed to the unit that you lead"
	case parentAssignee:
		return "it is part of an item of yours"
	case checklist:
		return "a step of its checklist is yours now"
	case collaborator:
		return "you help with it"
	case watcher:
		return "you watch it"
	case unwatched:
		return "you were taken off the list of those who watch it"
	case purged:
		return "you lead its project"
	case leadFallback:
		return "you lead there, and nobody else hears of it"
	default:
		return "it concerns you (" + reason + ")"
	}
}
