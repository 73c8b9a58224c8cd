// Package sighting decides whether a tool of an MCP server is still what it was when it was first seen. It is pure.
//
// The rule. What an instance of a server shows first of a tool is known from then on, for that instance: a shared server has one
// instance, a template has one for each seat, and two seats may well be shown different things under their own credentials. What
// an operator accepts is known for every seat. Anything else is changed. So a list that differs by seat never flaps, what a new
// seat is shown cannot pass for what others were shown, and a tool that returns to what is known is known again.
package sighting

import "cmp"

// Listing is the whole list of tools that one instance of a server shows.
type Listing struct {
	Server string
	// Seat is whose instance it is; empty for a shared server.
	Seat  string
	Tools []Tool
}

// Tool is one of them: the server's name for it, and the digest of its definition.
type Tool struct {
	Name, Digest string
	// Definition answers what a person judges, JSON. It is asked for only when it is written down.
	Definition func() string
}

// Entry is a definition that is known or changed. A seat that is empty means every seat where it is known.
type Entry struct {
	Server, Seat, Tool, Digest string
}

// Sight is an entry to write down, with its definition.
type Sight struct {
	Entry
	Definition func() string
}

// Verdict is what follows from what is shown.
type Verdict struct {
	// Changed has the entries that are not known.
	Changed map[Entry]bool
	// Learn are known from now on.
	Learn []Sight
	// Note are changed, and not noted as that yet.
	Note []Sight
	// Forget are noted as changed and no longer so.
	Forget []Entry
}

// Settled reports whether nothing has to be written down.
func (v Verdict) Settled() bool { return len(v.Learn)+len(v.Note)+len(v.Forget) == 0 }

// Judge compares what instances show with what is known and with what is noted as changed. Both may hold more than is shown; what
// is noted of instances that are not among the listings stays.
func Judge(listings []Listing, known, noted []Entry) Verdict {
	v := Verdict{Changed: map[Entry]bool{}}
	knows, seen := map[Entry]bool{}, map[Entry]bool{}
	for _, e := range known {
		knows[e] = true
		e.Digest = ""
		seen[e] = true
	}
	changed := map[Entry]Entry{}
	for _, e := range noted {
		changed[place(e)] = e
	}
	for _, listing := range listings {
		shown := map[string]bool{}
		for _, tool := range listing.Tools {
			if shown[tool.Name] {
				continue // the list has it twice; the first is the one that can be called
			}
			shown[tool.Name] = true
			e := Entry{listing.Server, listing.Seat, tool.Name, tool.Digest}
			note, isNoted := changed[place(e)]
			switch {
			case knows[e], knows[Entry{e.Server, "", e.Tool, e.Digest}]:
				if isNoted {
					v.Forget = append(v.Forget, note)
				}
			case !seen[place(e)]:
				v.Learn = append(v.Learn, Sight{e, tool.Definition})
			default:
				v.Changed[e] = true
				if note != e {
					v.Note = append(v.Note, Sight{e, tool.Definition})
				}
			}
		}
		for _, e := range noted {
			if e.Server == listing.Server && e.Seat == listing.Seat && !shown[e.Tool] {
				v.Forget = append(v.Forget, e)
			}
		}
	}
	return v
}

// place is an entry without what is shown there.
func place(e Entry) Entry {
	e.Digest = ""
	return e
}

// Compare orders entries by server, tool and seat.
func Compare(a, b Entry) int {
	return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Seat, b.Seat), cmp.Compare(a.Digest, b.Digest))
}
