package document

import "strings"

// hierarchy is who manages whom, by the seats' places in the document. It is made for companies of two thousand seats in
// which every seat manages every unit.
type hierarchy struct {
	seats   []*draftSeat
	index   map[*draftSeat]int
	members map[*draftUnit][]int
	// below holds for each seat those it manages, each once; by holds the reference that said so.
	below [][]int
	by    [][]value[string]
}

// checkManages finds whom each seat manages and refuses circles. A name is a seat's before it is a unit's.
func (d *draft) checkManages(r *reader, n *names) {
	h := &hierarchy{
		seats: d.seats, index: map[*draftSeat]int{}, members: map[*draftUnit][]int{},
		below: make([][]int, len(d.seats)), by: make([][]value[string], len(d.seats)),
	}
	for i, s := range d.seats {
		h.index[s] = i
		h.members[s.unit] = append(h.members[s.unit], i)
	}
	seen := make([]int, len(d.seats))
	for i, s := range d.seats {
		for _, ref := range s.manages {
			for _, other := range h.managed(d, r, n, s, ref) {
				if other != i && seen[other] != i+1 {
					seen[other] = i + 1
					h.below[i] = append(h.below[i], other)
					h.by[i] = append(h.by[i], ref)
				}
			}
		}
	}
	h.circles(r)
	d.hierarchy = h
}

// managed answers the seats a reference means: one, or the direct members of a unit.
func (h *hierarchy) managed(d *draft, r *reader, n *names, by *draftSeat, ref value[string]) []int {
	if s := n.seat(ref.v); s != nil {
		if s == by {
			r.add(ref.at, KindCycle, "a seat cannot manage itself")
		}
		return []int{h.index[s]}
	}
	if u := n.unit(ref.v); u != nil {
		return h.members[u]
	}
	candidates := d.seatNames()
	for _, u := range d.units[:min(len(d.units), maxCandidates)] {
		candidates = append(candidates, u.Name)
	}
	r.add(ref.at, KindReference, "no role and no unit has the name %s; %s", quote(ref.v), r.suggestion(ref.v, candidates))
	return nil
}

// circles walks down from each seat, and reports each reference that leads back to one the walk came by.
func (h *hierarchy) circles(r *reader) {
	const (
		fresh = iota
		onPath
		done
	)
	state := make([]int, len(h.seats))
	reported := map[place]bool{}
	var path []int
	var walk func(at int)
	walk = func(at int) {
		state[at] = onPath
		path = append(path, at)
		for k, next := range h.below[at] {
			ref := h.by[at][k]
			switch {
			case state[next] == fresh:
				walk(next)
			case state[next] == onPath && !reported[ref.at]:
				reported[ref.at] = true
				r.add(ref.at, KindCycle, "the seats manage each other in a circle: %s", h.circle(path, next))
			}
		}
		path = path[:len(path)-1]
		state[at] = done
	}
	for i := range h.seats {
		if state[i] == fresh {
			walk(i)
		}
	}
}

// circle names the seats of a circle that the path closes by going to next, the last one first.
func (h *hierarchy) circle(path []int, next int) string {
	parts := []string{h.seats[path[len(path)-1]].Name}
	for i, at := range path {
		if at == next {
			for _, s := range path[i:] {
				parts = append(parts, h.seats[s].Name)
			}
			break
		}
	}
	if len(parts) > maxListed {
		parts = append(append(parts[:maxListed/2:maxListed/2], "…"), parts[len(parts)-maxListed/2:]...)
	}
	return strings.Join(parts, " → ")
}

// complete gives each unit's lead the direct members whom nobody manages; one who stands above the lead stays free. Then it
// writes down whom each seat manages.
func (h *hierarchy) complete() {
	managed := make([]bool, len(h.seats))
	for _, below := range h.below {
		for _, s := range below {
			managed[s] = true
		}
	}
	for i, s := range h.seats {
		lead, _ := s.unit.effectiveLead()
		if lead == nil || lead == s || managed[i] {
			continue
		}
		if l := h.index[lead]; !h.above(i, l) {
			h.below[l] = append(h.below[l], i)
		}
	}
	for i, s := range h.seats {
		for _, other := range h.below[i] {
			s.Manages = append(s.Manages, h.seats[other].Handle)
		}
	}
}

// above reports whether a seat manages another, directly or through others.
func (h *hierarchy) above(upper, lower int) bool {
	seen := make([]bool, len(h.seats))
	next := []int{upper}
	for len(next) > 0 {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		if at == lower {
			return true
		}
		for _, s := range h.below[at] {
			if !seen[s] {
				seen[s] = true
				next = append(next, s)
			}
		}
	}
	return false
}
