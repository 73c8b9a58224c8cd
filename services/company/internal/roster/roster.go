// Package roster answers who is who in a company.
//
// It is pure and knows one revision. A colleague is looked for in three passes, each wider than the one before, and the
// first that finds anybody ends the search: the whole handle, name or contact id; a part of one; a spelling close to one.
// Case never matters. When a pass finds several, all of them are the answer. A handle that is given whole is always one
// seat, so that asking again by a candidate's handle cannot come back ambiguous.
package roster

import (
	"maps"
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/services/company/internal/document"
)

// How a seat was found.
const (
	ByHandle  = "handle"
	ByName    = "name"
	ByContact = "contact"
	Similar   = "similar"
)

// minPart is the shortest part of a name that is looked for; shorter ones fit too many.
const minPart = 2

// Roster is a company's seats, ready to be looked up. It is safe for concurrent use.
type Roster struct {
	seats []entry
	units map[string]string
}

// entry is a seat with what it is found by, in lower case.
type entry struct {
	seat     *document.Seat
	handle   string
	name     string
	contacts []string
}

// New reads a company, which must not change afterwards.
func New(c *document.Company) *Roster {
	r := &Roster{units: map[string]string{}}
	for _, u := range c.Units {
		r.units[u.ID] = u.Name
	}
	for i := range c.Seats {
		s := &c.Seats[i]
		e := entry{seat: s, handle: s.Handle, name: strings.ToLower(s.Name)}
		for _, id := range slices.Sorted(maps.Values(s.Contacts)) {
			e.contacts = append(e.contacts, strings.ToLower(id))
		}
		if s.Email != "" {
			e.contacts = append(e.contacts, strings.ToLower(s.Email))
		}
		r.seats = append(r.seats, e)
	}
	return r
}

// Seat answers the seat with exactly this handle.
func (r *Roster) Seat(handle string) (*document.Seat, bool) {
	for _, e := range r.seats {
		if e.handle == handle {
			return e.seat, true
		}
	}
	return nil, false
}

// UnitName answers the name of the unit a seat is in, or nothing at the root.
func (r *Roster) UnitName(s *document.Seat) string { return r.units[s.UnitID] }

// Handles answers every handle in document order.
func (r *Roster) Handles() []string {
	out := make([]string, 0, len(r.seats))
	for _, e := range r.seats {
		out = append(out, e.handle)
	}
	return out
}

// Match is a seat that fits a query.
type Match struct {
	Seat *document.Seat
	// By is [ByHandle], [ByName], [ByContact] or [Similar].
	By string
}

// Lookup answers the seats that fit, in document order: none, one, or all that fit equally well.
func (r *Roster) Lookup(query string) []Match {
	q := strings.ToLower(bare(query))
	if q == "" {
		return nil
	}
	for _, e := range r.seats {
		if e.handle == q {
			return []Match{{Seat: e.seat, By: ByHandle}}
		}
	}
	for _, fits := range []func(e entry) string{
		func(e entry) string { return e.by(func(s string) bool { return s == q }) },
		func(e entry) string {
			if len(q) < minPart {
				return ""
			}
			return e.by(func(s string) bool { return strings.Contains(s, q) })
		},
		func(e entry) string { return e.similar(q) },
	} {
		var found []Match
		for _, e := range r.seats {
			if by := fits(e); by != "" {
				found = append(found, Match{Seat: e.seat, By: by})
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// bare takes off what chat and mail put round an id: @ada, <@U01>, <@U01|ada>, mailto:a@b.
func bare(query string) string {
	q := strings.TrimSpace(query)
	if inner, ok := strings.CutPrefix(q, "<"); ok {
		q = strings.TrimSuffix(inner, ">")
		q, _, _ = strings.Cut(q, "|")
	}
	q = strings.TrimPrefix(q, "mailto:")
	return strings.TrimSpace(strings.TrimPrefix(q, "@"))
}

// by answers which of a seat's names fits.
func (e entry) by(fits func(string) bool) string {
	switch {
	case fits(e.handle):
		return ByHandle
	case fits(e.name):
		return ByName
	case slices.ContainsFunc(e.contacts, fits):
		return ByContact
	}
	return ""
}

// similar forgives one slip in three letters, in the whole handle or name or in one word of the name.
func (e entry) similar(q string) string {
	words := append(strings.Fields(e.name), e.handle, e.name)
	for _, word := range words {
		a, b := []rune(q), []rune(word)
		if limit := max(len(a), len(b)) / 3; limit > 0 && near(a, b, limit) {
			return Similar
		}
	}
	return ""
}

// near reports whether a becomes b by at most limit letters put in, taken out or changed.
func near(a, b []rune, limit int) bool {
	if d := len(a) - len(b); d > limit || -d > limit {
		return false
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		corner := row[0]
		row[0] = i + 1
		for j := range b {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)] <= limit
}
