package org

import (
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Unit is a part of the company.
type Unit struct {
	ID   string
	Name string
	// Parent is the id of the unit above, empty at the top.
	Parent string
	// Lead is a handle, that of a unit above when the unit names none of its own; empty when none does.
	Lead string
}

// Unit finds a unit by its id or its name, in any case. An id goes before a name.
func (o *Org) Unit(text string) (Unit, bool) {
	text = strings.TrimSpace(text)
	for _, names := range []func(Unit) string{func(u Unit) string { return u.ID }, func(u Unit) string { return u.Name }} {
		at := slices.IndexFunc(o.Units, func(u Unit) bool { return text != "" && strings.EqualFold(names(u), text) })
		if at >= 0 {
			return o.Units[at], true
		}
	}
	return Unit{}, false
}

// NoUnit refuses a text that names no unit. argument is the one that it came in.
func (o *Org) NoUnit(argument, text string) error {
	there := "the company has no units"
	if len(o.Units) > 0 {
		ids := make([]string, 0, len(o.Units))
		for _, u := range o.Units {
			ids = append(ids, u.ID)
		}
		there = "there are " + strings.Join(ids, ", ")
	}
	return fault.New(fault.Invalid, "%s names no unit: there is no %q; %s", argument, text, there).WithField(argument)
}

// LeadOf answers who leads a unit, given by id; empty when nobody does or the chart no longer has it.
func (o *Org) LeadOf(unit string) string {
	u, _ := o.unit(unit)
	return u.Lead
}

// Leads reports whether a seat leads a unit, given by id, or any unit above it.
func (o *Org) Leads(handle, unit string) bool {
	if handle == "" {
		return false
	}
	// A chart has no circles; counting keeps a broken one from hanging whoever asks.
	for range o.Units {
		u, ok := o.unit(unit)
		if !ok {
			return false
		}
		if u.Lead == handle {
			return true
		}
		unit = u.Parent
	}
	return false
}

func (o *Org) unit(id string) (Unit, bool) {
	at := slices.IndexFunc(o.Units, func(u Unit) bool { return u.ID == id })
	if id == "" || at < 0 {
		return Unit{}, false
	}
	return o.Units[at], true
}

// Project finds a project of the chart by its key, in any case.
func (o *Org) Project(key string) (Project, bool) {
	at := slices.IndexFunc(o.Projects, func(p Project) bool { return strings.EqualFold(p.Key, key) })
	if at < 0 {
		return Project{}, false
	}
	return o.Projects[at], true
}
