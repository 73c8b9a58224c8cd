package wake

import (
	"slices"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// audience is how far a kind of change is heard.
type audience int

const (
	// silent changes concern only those whom they name.
	silent audience = iota
	// holders have the item or help with it.
	holders
	// everybody is holders and watchers.
	everybody
)

// audienceOf answers who hears of a kind of change beside those whom it names. Who watches, what is labelled, who works on it and where
// it stands in a list change often and ask nobody for anything: those kinds, and any that is not here, are silent.
func audienceOf(kind string) audience {
	switch kind {
	case "created", "status", "assignee", "fields", "comment", "relations", "routed", "moved", "reparented", "removed", "restored":
		return everybody
	case "collaborators", "checklist":
		return holders
	default:
		return silent
	}
}

// Resolve answers everybody whom a change concerns, one entry for each reason and item, the strongest reasons first.
func Resolve(f Facts) []Concern {
	var r resolution
	switch {
	case f.Change.Kind == "purged":
		r.add(f.ProjectLead, Purged, false) // nobody else: even that it was there is not told
		return r.concerns
	case f.Change.Kind == "imported":
		return nil // it brings what happened elsewhere, long ago
	case f.After == nil:
		r.prioritised(f)
		return r.concerns
	}
	c := read(f)
	r.add(f.Asked, Asked, true)
	r.put(Concern{Handle: f.Asker, Reason: Answered, Owes: f.Promised})
	for _, handle := range f.Mentions {
		if !slices.Contains(c.mentionedBefore, handle) {
			r.add(handle, Mention, true)
		}
	}
	r.about(Blocking, false, f.Blocking...)
	r.about(Unblocked, false, f.Unblocked...)
	r.prioritised(f)
	if c.heard >= holders {
		owes := c.created || c.handed || c.crossed || c.comment && person(f.Change.By)
		r.add(f.After.Assignee, Assignee, owes)
	}
	if c.handed {
		r.add(f.Before.Assignee, Unassigned, false)
	}
	if c.finished || c.comment || c.handed || c.trashed {
		r.reporter(f.After)
	}
	if c.comment {
		for _, handle := range f.Thread[:min(len(f.Thread), MaxThread)] {
			r.add(handle, Thread, false)
		}
	}
	if _, routed := f.Change.Fields["routing_unit"]; routed && !c.created {
		r.add(f.RoutingLead, RoutedTo, false)
	}
	if c.created || c.crossed || c.trashed || f.Change.Kind == "reparented" {
		r.add(f.ParentAssignee, ParentAssignee, false)
	}
	for _, handle := range newSteps(f.Before, f.After) {
		r.add(handle, ChecklistStep, false)
	}
	r.listeners(f, c.heard)
	if c.fallsBack {
		r.add(f.RoutingLead, LeadFallback, false)
		r.add(f.ProjectLead, LeadFallback, false)
	}
	return r.concerns
}

// happening is what a change amounts to.
type happening struct {
	heard             audience
	created, comment  bool
	handed            bool // it has another assignee
	crossed, finished bool // it became open or ceased to be; it ceased to be
	trashed           bool // it went into the trash or came out of it
	fallsBack         bool
	mentionedBefore   []string
}

func read(f Facts) happening {
	h := happening{heard: audienceOf(f.Change.Kind), created: f.Before == nil, comment: f.Change.Kind == "comment"}
	h.fallsBack = slices.Contains([]string{"created", "status", "moved", "removed", "comment", "routed"}, f.Change.Kind)
	if f.Before == nil {
		return h
	}
	h.handed = f.Before.Assignee != f.After.Assignee
	h.crossed = f.Before.Open() != f.After.Open()
	h.finished = h.crossed && !f.After.Open()
	h.trashed = (f.Before.Removal == nil) != (f.After.Removal == nil)
	if !h.comment {
		h.mentionedBefore = item.Mentions(f.Before.Body)
	}
	return h
}

// newSteps answers to whom the change gave steps that are to be done.
func newSteps(before, after *item.Item) []string {
	had := map[string]string{}
	if before != nil {
		for _, l := range before.Checklists {
			for _, s := range l.Items {
				had[s.ID] = s.Assignee
			}
		}
	}
	var handles []string
	for _, l := range after.Checklists {
		for _, s := range l.Items {
			if s.Assignee != had[s.ID] && !s.Done {
				handles = append(handles, s.Assignee)
			}
		}
	}
	return handles
}

// person reports whether a person acts, under their own name or a token's.
func person(a item.Actor) bool { return a.Kind == "human" || a.Kind == "operator" }

// resolution gathers concerns, each once.
type resolution struct{ concerns []Concern }

func (r *resolution) add(handle, reason string, addressed bool) {
	r.put(Concern{Handle: handle, Reason: reason, Addressed: addressed})
}

func (r *resolution) put(c Concern) {
	if c.Handle == "" || slices.ContainsFunc(r.concerns, c.same) {
		return
	}
	r.concerns = append(r.concerns, c)
}

func (c Concern) same(other Concern) bool {
	return c.Handle == other.Handle && c.Reason == other.Reason && id(c.About) == id(other.About)
}

func id(about *uuid.UUID) uuid.UUID {
	if about == nil {
		return uuid.Nil
	}
	return *about
}

func (r *resolution) about(reason string, addressed bool, neighbours ...Neighbour) {
	for _, n := range neighbours {
		r.put(Concern{Handle: n.Assignee, Reason: reason, Addressed: addressed, About: &n.ID, AboutKey: n.Key, AboutTitle: n.Title})
	}
}

// prioritised tells whose order of work changed of each item that is new in it, or of the changed item itself.
func (r *resolution) prioritised(f Facts) {
	if len(f.Listed) == 0 && f.After != nil {
		r.add(f.Prioritised, Prioritised, true)
	}
	for _, n := range f.Listed {
		n.Assignee = f.Prioritised
		r.about(Prioritised, true, n)
	}
}

// reporter tells who filed it, unless that was a program, which has no inbox.
func (r *resolution) reporter(i *item.Item) {
	if i.ReporterKind == "agent" || i.ReporterKind == "human" {
		r.add(i.Reporter, Reporter, false)
	}
}

// listeners tells those who help, those who watch, and those whom somebody else took off the list.
func (r *resolution) listeners(f Facts, heard audience) {
	if heard >= holders {
		for _, handle := range f.After.Collaborators {
			r.add(handle, Collaborator, false)
		}
	}
	if heard >= everybody {
		for _, handle := range f.After.Watchers {
			r.add(handle, Watcher, false)
		}
	}
	if f.Before == nil {
		return
	}
	for _, handle := range f.Before.Watchers {
		if handle != f.Change.By.Seat && !slices.Contains(f.After.Watchers, handle) {
			r.add(handle, Unwatched, false)
		}
	}
}
