package document

import "maps"

// resolve works out what each unit and seat inherits. It is called for a document without problems only.
func (d *draft) resolve() *Company {
	c := d.company
	d.hierarchy.complete()
	for _, p := range d.providers {
		c.Providers = append(c.Providers, p.Provider)
	}
	for _, s := range d.servers {
		c.Servers = append(c.Servers, s.Server)
	}
	for _, u := range d.units {
		c.Units = append(c.Units, u.resolve())
	}
	for _, s := range d.seats {
		c.Seats = append(c.Seats, s.resolve())
	}
	return &c
}

func (u *draftUnit) resolve() Unit {
	out := u.Unit
	if u.parent != nil {
		out.ParentID = u.parent.ID
	}
	if lead, _ := u.effectiveLead(); lead != nil {
		out.Lead = lead.Handle
	}
	for above := u; out.Channel == "" && above != nil; above = above.parent {
		out.Channel = above.Channel
	}
	return out
}

func (s *draftSeat) resolve() Seat {
	out := s.Seat
	out.Contacts = map[string]string{}
	for _, c := range s.contacts {
		out.Contacts[c.kind] = c.id
	}
	if s.unit != nil {
		out.UnitID = s.unit.ID
	}
	if s.Kind == KindAgent {
		out.Env = s.environment()
	}
	return out
}

// environment is what the unit declares with the seat's own laid over it, variable by variable. Only the unit the seat stands
// in gives: what is declared further up is not for its children.
func (s *draftSeat) environment() map[string]map[string]string {
	out := map[string]map[string]string{}
	layers := [][]draftEnv{s.env}
	if s.unit != nil {
		layers = [][]draftEnv{s.unit.env, s.env}
	}
	for _, layer := range layers {
		for _, e := range layer {
			if out[e.server] == nil {
				out[e.server] = map[string]string{}
			}
			maps.Copy(out[e.server], e.vars)
		}
	}
	return out
}
