package document

import (
	"strings"
)

// names is who and what the document declares, to look references up in. Names of seats and units are matched whatever
// their case.
type names struct {
	handles map[string]*draftSeat
	seats   map[string]*draftSeat
	units   map[string]*draftUnit
}

// checkReferences finds duplicates, what does not exist, and cycles.
func (d *draft) checkReferences(r *reader) {
	n := &names{handles: map[string]*draftSeat{}, seats: map[string]*draftSeat{}, units: map[string]*draftUnit{}}
	d.checkSeatNames(r, n)
	d.checkUnitNames(r, n)
	d.checkIdentities(r)
	d.checkProviders(r)
	d.checkEnvironments(r)
	for _, u := range d.units {
		if u.lead.given {
			if u.leader = n.seat(u.lead.v); u.leader == nil {
				r.add(u.lead.at, KindReference, "no seat has the handle or name %s; %s", quote(u.lead.v), r.suggestion(u.lead.v, d.seatNames()))
			}
		}
	}
	d.checkTargets(r)
	d.checkSkills(r)
	d.checkPolicy(r, n)
	d.checkManages(r, n)
}

// seat finds a seat by its handle, or else by its name.
func (n *names) seat(ref string) *draftSeat {
	if s := n.handles[ref]; s != nil {
		return s
	}
	return n.seats[strings.ToLower(ref)]
}

// unit finds a unit by its name or id.
func (n *names) unit(ref string) *draftUnit { return n.units[strings.ToLower(ref)] }

func (d *draft) seatNames() []string {
	out := make([]string, 0, len(d.seats))
	for _, s := range d.seats {
		if s.Name != "" && len(out) < maxCandidates {
			out = append(out, s.Name)
		}
	}
	return out
}

func (d *draft) checkSeatNames(r *reader, n *names) {
	for _, s := range d.seats {
		twin := n.seats[strings.ToLower(s.Name)]
		if s.Name != "" && twin != nil {
			r.add(s.named, KindDuplicate, "the role on line %d has this name too; names of roles are unique in a company", twin.named.line)
		} else if s.Name != "" {
			n.seats[strings.ToLower(s.Name)] = s
		}
		if s.Handle == "" {
			continue
		}
		first := n.handles[s.Handle]
		switch {
		case first == nil:
			n.handles[s.Handle] = s
		case twin != nil && s.auto && first.auto:
			// Two roles of one name are one mistake, and it has been named.
		case s.auto || first.auto:
			r.add(s.handleAt, KindDuplicate,
				"the handle `%s` on line %d is also that of the role on line %d, where it is made from the name; give one of them a `handle` of its own",
				s.Handle, s.handleAt.line, first.handleAt.line)
		default:
			r.add(s.handleAt, KindDuplicate, "the role on line %d has the handle `%s` too", first.handleAt.line, s.Handle)
		}
	}
}

func (d *draft) checkUnitNames(r *reader, n *names) {
	ids, projects, spaces := map[string]place{}, map[string]place{}, map[string]place{}
	once := func(seen map[string]place, v string, at place, sentence string) {
		if first, twice := seen[v]; twice {
			r.add(at, KindDuplicate, sentence, first.line)
		} else if v != "" {
			seen[v] = at
		}
	}
	for _, u := range d.units {
		if u.Name != "" && n.units[strings.ToLower(u.Name)] == nil {
			n.units[strings.ToLower(u.Name)] = u
		}
		once(ids, u.ID, u.named, "the unit on line %d has this name too, or one that differs only in signs; units are told apart by letters and digits")
		once(projects, u.Project, u.projectAt, "the unit on line %d owns this project already")
		once(spaces, u.Space, u.spaceAt, "the unit on line %d owns this space already")
	}
	for _, u := range d.units {
		if n.units[u.ID] == nil {
			n.units[u.ID] = u
		}
	}
}

// checkIdentities demands that whoever writes from outside is one seat: contact ids, addresses and Slack apps are unique.
func (d *draft) checkIdentities(r *reader) {
	type owner struct {
		seat *draftSeat
		at   place
		id   string
	}
	seen := map[string]owner{}
	once := func(s *draftSeat, kind, id string, at place) {
		key := kind + "\x00" + strings.ToLower(id)
		first, twice := seen[key]
		switch {
		case !twice:
			seen[key] = owner{s, at, id}
		case first.seat != s:
			r.add(at, KindDuplicate, "the seat on line %d has this %s too; an id belongs to one seat", first.at.line, kind)
		}
	}
	for _, s := range d.seats {
		kinds := map[string]draftContact{}
		for _, c := range s.contacts {
			if first, twice := kinds[c.kind]; twice && !strings.EqualFold(first.id, c.id) {
				r.add(c.at, KindValue, "differs from the seat's %s on line %d; keep one of them", c.kind, first.at.line)
			}
			kinds[c.kind] = c
			once(s, c.kind, c.id, c.at)
		}
		if s.email.v != "" {
			once(s, "email", s.email.v, s.email.at)
		}
		if s.app.v != "" {
			once(s, "Slack app", s.app.v, s.app.at)
		}
	}
}

func (d *draft) checkProviders(r *reader) {
	var keys []string
	for _, p := range d.providers {
		keys = append(keys, p.Key)
	}
	known := func(v value[string]) {
		if v.given && !contains(keys, v.v) {
			r.add(v.at, KindReference, "no provider under providers.llm has the key %s; %s", quote(v.v), r.suggestion(v.v, keys))
		}
	}
	var workers []string
	for _, w := range d.workers {
		known(w.model)
		workers = append(workers, w.name)
	}
	for _, s := range d.seats {
		for _, key := range s.chains {
			known(key)
		}
		for _, w := range s.workers {
			if !contains(workers, w.v) {
				r.add(w.at, KindReference, "no worker has the name %s; %s", quote(w.v), r.suggestion(w.v, workers))
			}
		}
	}
}

// checkEnvironments reads what units and seats declare for a server, now that its transport is known.
func (d *draft) checkEnvironments(r *reader) {
	servers := map[string]*draftServer{}
	var templates []string
	for i := range d.servers {
		servers[d.servers[i].Name] = &d.servers[i]
		if !d.servers[i].Shared {
			templates = append(templates, d.servers[i].Name)
		}
	}
	read := func(all []draftEnv) {
		for i, e := range all {
			transport := TransportStdio
			switch s := servers[e.server]; {
			case s == nil:
				r.add(e.at, KindReference, "no MCP server has the name %s; %s", quote(e.server), r.suggestion(e.server, templates))
			case s.Shared:
				r.add(e.at, KindReference, "the server on line %d is shared and acts for nobody; say `shared: false` there to give each seat its own", s.at.line)
			default:
				transport = s.Transport
			}
			all[i].vars = r.variables(r.object(e.node, e.at), transport)
		}
	}
	for _, u := range d.units {
		read(u.env)
	}
	for _, s := range d.seats {
		read(s.env)
	}
}

// checkTargets demands a lead who runs turns for schedules that are given to one.
func (d *draft) checkTargets(r *reader) {
	for _, u := range d.units {
		lead, said := u.effectiveLead()
		for _, at := range u.targets {
			switch {
			case lead == nil && said: // who it is was found wanting already
			case lead == nil:
				r.add(at, KindReference, "the unit has no lead to give the schedule to")
			case lead.Kind == KindHuman:
				r.add(at, KindReference, "the unit's lead is the person %s, who runs no schedules", quote(lead.Name))
			}
		}
	}
}
