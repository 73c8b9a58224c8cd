package item

import (
	"slices"

	"github.com/google/uuid"
)

// Limits of what an item is connected with.
const (
	// MaxWaitingOn is how many items one may wait for, MaxDependents how many may wait for one.
	MaxWaitingOn  = 64
	MaxDependents = 64
	// MaxRelations is how many other relations an item may have.
	MaxRelations = 128
	// MaxDescendants is how many items may be part of one, however deep.
	MaxDescendants = 1000
)

// What may be odd about an item.
const (
	FlagCycle               = "cycle"
	FlagTooDeep             = "too_deep"
	FlagInconsistentProject = "inconsistent_project"
	FlagOneSided            = "one_sided"
	FlagOneSidedFinal       = "one_sided_final"
)

// Waiting is an item that another one waits for.
type Waiting struct {
	ID  uuid.UUID
	Key string
	// Open: it is not finished, so it blocks. What is in the trash or destroyed is not open: nobody waits for ever for what will not be
	// done.
	Open bool
	// OneSided: it does not know yet that it is waited for. OneSidedFinal: it cannot know, as it is in the trash, destroyed, or waited
	// for by as many as may be.
	OneSided, OneSidedFinal bool
}

// Standing is how an item stands among the others.
type Standing struct {
	// Waiting is what it waits for, finished or not, the oldest edge first.
	Waiting []Waiting
	// Flags say what is odd about it, in the order of the constants.
	Flags []string
	// DuplicateOf is the key of the item that it is a duplicate of; empty for none.
	DuplicateOf string
	// Subtasks counts what is directly part of it, without the trash.
	Subtasks int32
}

// Blocked reports whether something that it waits for is open.
func (s Standing) Blocked() bool {
	return slices.ContainsFunc(s.Waiting, func(w Waiting) bool { return w.Open })
}

// Cyclic answers the nodes of a graph that can be reached from themselves. Edges go from a node to what it waits for.
func Cyclic(edges map[uuid.UUID][]uuid.UUID) map[uuid.UUID]bool {
	w := walk{edges: edges, index: map[uuid.UUID]int{}, low: map[uuid.UUID]int{}, onPath: map[uuid.UUID]bool{}, cyclic: map[uuid.UUID]bool{}}
	for node := range edges {
		if _, seen := w.index[node]; !seen {
			w.from(node)
		}
	}
	return w.cyclic
}

// walk finds strongly connected components, after Tarjan: one of more than one node is a cycle, and so is a node with an edge to
// itself.
type walk struct {
	edges      map[uuid.UUID][]uuid.UUID
	index, low map[uuid.UUID]int
	path       []uuid.UUID
	onPath     map[uuid.UUID]bool
	cyclic     map[uuid.UUID]bool
}

func (w *walk) from(node uuid.UUID) {
	w.index[node], w.low[node] = len(w.index), len(w.index)
	w.path, w.onPath[node] = append(w.path, node), true
	for _, next := range w.edges[node] {
		if _, seen := w.index[next]; !seen {
			w.from(next)
			w.low[node] = min(w.low[node], w.low[next])
		} else if w.onPath[next] {
			w.low[node] = min(w.low[node], w.index[next])
		}
	}
	if w.low[node] != w.index[node] {
		return
	}
	at := slices.Index(w.path, node)
	component := w.path[at:]
	for _, member := range component {
		w.onPath[member] = false
		if len(component) > 1 || slices.Contains(w.edges[member], member) {
			w.cyclic[member] = true
		}
	}
	w.path = w.path[:at]
}

// Flag notes something odd, once.
func (s *Standing) Flag(flag string) {
	if !slices.Contains(s.Flags, flag) {
		s.Flags = append(s.Flags, flag)
	}
}
