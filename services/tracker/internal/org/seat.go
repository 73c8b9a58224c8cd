package org

import "slices"

// UnitOf answers the id of the unit that a seat is in; empty at the root and for a handle that nobody has.
func (o *Org) UnitOf(handle string) string {
	at := slices.IndexFunc(o.Seats, func(s Seat) bool { return s.Handle == handle })
	if at < 0 {
		return ""
	}
	return o.Seats[at].Unit
}
