package document

// The shape of the keys of projects and containers.
const (
	containerShape = `^[A-Z][A-Z0-9]{0,9}$`
	containerWords = "1 to 10 capitals and digits, a capital first"
)

// draftUnit is a unit as it was written.
type draftUnit struct {
	Unit
	named, projectAt, spaceAt place
	parent                    *draftUnit
	lead                      value[string]
	// leader is found by checkReferences; nil when the unit names no lead of its own or a wrong one.
	leader *draftSeat
	env    []draftEnv
	// targets are schedules that need a lead who runs turns.
	targets []place
}

func (r *reader) unit(d *draft, i item, parent *draftUnit) {
	o := r.object(i.node, i.at)
	if o.wrong {
		return
	}
	u := &draftUnit{parent: parent}
	name := o.required("name")
	r.within(name, maxName)
	u.Name, u.named, u.ID = name.v, name.at, slug(name.v)
	if u.Name != "" && u.ID == "" {
		r.add(u.named, KindValue, "a unit's name needs a Latin letter or a digit: its id is made of them")
	}
	u.Type, u.Purpose = o.text("type").v, o.text("purpose").v
	u.lead = o.text("lead")
	u.Goals = plain(o.texts("goals"))
	u.Channel = o.text("channel").v
	project, space := o.text("project"), o.text("space")
	u.Project = r.matching(project, containerShape, containerWords)
	u.Space = r.matching(space, containerShape, containerWords)
	u.projectAt, u.spaceAt = project.at, space.at
	u.env = r.environments(o.object("mcp_env"))
	u.targets = r.schedules(o.list("schedules"), true)
	d.units = append(d.units, u)
	for _, seat := range o.list("roles") {
		r.seat(d, seat, u)
	}
	for _, child := range o.list("children") {
		r.unit(d, child, u)
	}
	o.done()
}

// effectiveLead is the unit's own lead, or that of the nearest unit above that names one. Said without a lead means that the
// name is nobody's.
func (u *draftUnit) effectiveLead() (lead *draftSeat, said bool) {
	for ; u != nil; u = u.parent {
		if u.lead.given {
			return u.leader, true
		}
	}
	return nil, false
}
