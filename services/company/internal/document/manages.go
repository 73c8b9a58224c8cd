package document

import (
	"slices"
	"strings"
)

// checkManages finds whom each seat manages and refuses circles among what the document says. A name is a seat's before it is
// a unit's.
func (d *draft) checkManages(r *reader, n *names) {
	said := map[*draftSeat][]*draftSeat{}
	for _, s := range d.seats {
		for _, ref := range s.manages {
			found := d.managed(r, n, s, ref)
			for _, other := range found {
				if other == s {
					r.add(ref.at, KindCycle, "a seat cannot manage itself")
					continue
				}
				if path := chainOf(said, other, s); path != nil {
					r.add(ref.at, KindCycle, "the seats manage each other in a circle: %s", circle(s, path))
					continue
				}
				if !slices.Contains(said[s], other) {
					said[s] = append(said[s], other)
				}
			}
		}
	}
	d.manageUnsaid(said)
	for _, s := range d.seats {
		for _, other := range said[s] {
			s.Manages = append(s.Manages, other.Handle)
		}
	}
}

// managed answers the seats a reference means.
func (d *draft) managed(r *reader, n *names, by *draftSeat, ref value[string]) []*draftSeat {
	if s := n.seat(ref.v); s != nil {
		return []*draftSeat{s}
	}
	u := n.unit(ref.v)
	if u == nil {
		candidates := d.seatNames()
		for _, u := range d.units {
			candidates = append(candidates, u.Name)
		}
		r.add(ref.at, KindReference, "no role and no unit has the name %s; %s", quote(ref.v), r.suggestion(ref.v, candidates))
		return nil
	}
	var members []*draftSeat
	for _, s := range d.seats {
		if s.unit == u && s != by {
			members = append(members, s)
		}
	}
	return members
}

// manageUnsaid gives a unit's lead the direct members whom nobody manages. One who stands above the lead stays free.
func (d *draft) manageUnsaid(said map[*draftSeat][]*draftSeat) {
	managed := map[*draftSeat]bool{}
	for _, others := range said {
		for _, s := range others {
			managed[s] = true
		}
	}
	for _, s := range d.seats {
		lead, _ := s.unit.effectiveLead()
		if lead == nil || lead == s || managed[s] || chainOf(said, s, lead) != nil {
			continue
		}
		said[lead] = append(said[lead], s)
	}
}

// chainOf answers the seats from one down to another, both included, or nil when the first does not stand above the second.
func chainOf(said map[*draftSeat][]*draftSeat, from, to *draftSeat) []*draftSeat {
	seen := map[*draftSeat]bool{}
	var walk func(at *draftSeat) []*draftSeat
	walk = func(at *draftSeat) []*draftSeat {
		if at == to {
			return []*draftSeat{at}
		}
		if seen[at] {
			return nil
		}
		seen[at] = true
		for _, next := range said[at] {
			if rest := walk(next); rest != nil {
				return append([]*draftSeat{at}, rest...)
			}
		}
		return nil
	}
	return walk(from)
}

func circle(start *draftSeat, path []*draftSeat) string {
	parts := []string{start.Name}
	for _, s := range path {
		parts = append(parts, s.Name)
	}
	return strings.Join(parts, " → ")
}
