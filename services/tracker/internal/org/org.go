// Package org is the part of the company that the tracker answers from: who there is, which unit files its work where, and
// which day it is.
//
// It is a value: a new revision makes a new one.
package org

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Seat is somebody work can be given to.
type Seat struct {
	Handle string
	Name   string
	Kind   string // agent or human
	Unit   string // its id, empty at the root
}

// Project is where a unit files its work.
type Project struct {
	Key     string
	Name    string
	Purpose string
	Unit    string
	Lead    string
}

// Org is the company as one revision describes it.
type Org struct {
	// Revision is its id, Epoch its place among activations.
	Revision string
	Epoch    int32
	Zone     *time.Location
	Seats    []Seat
	// Units are every unit, parents before children.
	Units    []Unit
	Projects []Project
}

// Clock is a moment on the company's clock: days are cut at its midnight.
func (o *Org) Clock(now time.Time) time.Time { return now.In(o.Zone) }

// Has reports whether a handle is a seat's.
func (o *Org) Has(handle string) bool {
	return slices.ContainsFunc(o.Seats, func(s Seat) bool { return s.Handle == handle })
}

// Handles answers every seat's handle, sorted.
func (o *Org) Handles() []string {
	handles := make([]string, 0, len(o.Seats))
	for _, s := range o.Seats {
		handles = append(handles, s.Handle)
	}
	slices.Sort(handles)
	return handles
}

// ProjectOf answers the project of a seat's own unit. A seat whose unit owns none, and a caller who is no seat, must say where.
func (o *Org) ProjectOf(handle string) (string, error) {
	for _, seat := range o.Seats {
		if seat.Handle != handle {
			continue
		}
		for _, project := range o.Projects {
			if project.Unit == seat.Unit && seat.Unit != "" {
				return project.Key, nil
			}
		}
	}
	return "", fault.New(fault.Invalid, "project is required, as your own unit owns none; there are %s", o.keys()).WithField("project")
}

// HasProject reports whether a key is a project's of the chart.
func (o *Org) HasProject(key string) bool {
	return slices.ContainsFunc(o.Projects, func(p Project) bool { return p.Key == key })
}

// NoProject refuses the key of a project that does not exist.
func (o *Org) NoProject(key string) error {
	return fault.New(fault.Invalid, "there is no project %q; there are %s", key, o.keys()).WithField("project")
}

func (o *Org) keys() string {
	if len(o.Projects) == 0 {
		return "none: the company document gives no unit a project"
	}
	keys := make([]string, 0, len(o.Projects))
	for _, p := range o.Projects {
		keys = append(keys, fmt.Sprintf("%s (%s)", p.Key, p.Name))
	}
	return strings.Join(keys, ", ")
}
