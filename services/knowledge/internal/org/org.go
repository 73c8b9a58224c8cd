// Package org is the part of the company that the knowledge base answers from: who there is, and where each unit writes.
//
// It is a value: a new revision makes a new one.
package org

import (
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/knowledge/internal/page"
)

// Container is where pages are kept.
type Container struct {
	Key     string
	Name    string
	Purpose string
	Unit    string // its id; empty for the reserved ones
}

// Org is the company as one revision describes it.
type Org struct {
	Revision string
	Epoch    int32
	// Units holds each seat's unit by the seat's handle.
	Units map[string]string
	// Containers, the reserved ones included.
	Containers []Container
	// Skills are the containers of tool skills, which are not searched.
	Skills []string
}

// Reserve gives the company the containers that every company has, and the one where it keeps its tool skills, when that is
// another.
func (o *Org) Reserve(skills string) {
	o.Skills = []string{page.Skills}
	if skills != "" && skills != page.Skills {
		o.Skills = append(o.Skills, skills)
	}
	o.Containers = append(o.Containers, Container{Key: page.Root, Name: "Home", Purpose: "What everybody should know"})
	for _, key := range o.Skills {
		o.Containers = append(o.Containers, Container{Key: key, Name: "Tool skills", Purpose: "How tools are to be used"})
	}
}

// Reserved reports whether a container is kept by people.
func (o *Org) Reserved(key string) bool { return key == page.Root || slices.Contains(o.Skills, key) }

// Has reports whether a handle is a seat's.
func (o *Org) Has(handle string) bool {
	_, ok := o.Units[handle]
	return ok
}

// Container answers the container of a key, or the caller's own unit's when key is empty.
func (o *Org) Container(key, seat string) (string, error) {
	unit := o.Units[seat]
	for _, c := range o.Containers {
		if key != "" && strings.EqualFold(c.Key, key) || key == "" && unit != "" && c.Unit == unit {
			return c.Key, nil
		}
	}
	if key == "" {
		return "", fault.New(fault.Invalid, "container is required, as your own unit owns none; there are %s", o.keys()).WithField("container")
	}
	return "", fault.New(fault.Invalid, "there is no container %q; there are %s", key, o.keys()).WithField("container")
}

func (o *Org) keys() string {
	keys := make([]string, 0, len(o.Containers))
	for _, c := range o.Containers {
		keys = append(keys, c.Key+" ("+c.Name+")")
	}
	slices.Sort(keys)
	return strings.Join(keys, ", ")
}
