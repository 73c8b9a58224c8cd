package surface

// registrar gives names to tools, each to one.
type registrar struct {
	canonical, wire map[string]*Tool
	// lost says why a tool that has its canonical name cannot be called all the same.
	lost map[*Tool]string
}

func newRegistrar() registrar {
	return registrar{canonical: map[string]*Tool{}, wire: map[string]*Tool{}, lost: map[*Tool]string{}}
}

// holder answers who has a name of either kind; nil when nobody has.
func (r registrar) holder(name string) *Tool {
	if tool := r.canonical[name]; tool != nil {
		return tool
	}
	return r.wire[name]
}

// give lets a group of tools take the names that are free. One that is quarantined already keeps a name only until another wants
// it. Canonical names go first, so that within a group it does not matter who is listed first.
func (r registrar) give(tools []*Tool) {
	for _, tool := range tools {
		holder := r.holder(tool.Name)
		if holder == nil || holder.Quarantine != "" && tool.Quarantine == "" {
			r.canonical[tool.Name] = tool
		}
	}
	for _, tool := range tools {
		wire := WireName(tool.Name)
		if r.canonical[tool.Name] != tool || tool.Quarantine != "" || wire == tool.Name {
			continue
		}
		if holder := r.holder(wire); holder != nil && holder.Quarantine == "" {
			r.lost[tool] = "the name that model providers would call it by, `" + wire + "`, is taken by the tool of " + holder.Source
			continue
		}
		r.wire[wire] = tool
	}
}

// settle answers a tool's row as it stands once all names are given: with its wire name, or with the reason why it has no name.
func (r registrar) settle(tool *Tool) *Tool {
	row := *tool
	switch has := r.canonical[tool.Name] == tool; {
	case tool.Quarantine != "":
		return tool
	case !has:
		row.Wire, row.Quarantine = "", "its name is taken by the tool of "+r.holder(tool.Name).Source
		return &row
	case r.lost[tool] != "":
		row.Wire, row.Quarantine = "", r.lost[tool]
		r.canonical[tool.Name] = &row
		return &row
	}
	wire := WireName(tool.Name)
	if tool.Wire == wire {
		return tool
	}
	row.Wire = wire
	r.canonical[tool.Name] = &row
	if r.wire[wire] == tool {
		r.wire[wire] = &row
	}
	return &row
}
