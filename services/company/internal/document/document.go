// Package document reads the company document: YAML in, a company or everything that is wrong with it out.
//
// It is pure: no clock, no network, no contract. Three steps follow each other. Decoding walks the tree and checks each
// value where it stands: keys, types, bounds, shapes. References are checked when all is known: who leads, who manages,
// which provider, which server. Inheritance is worked out last, and only for a document without problems, so a [Company]
// is complete: nobody after this package asks which unit a channel comes from.
//
// Two ideas to hold. A document is refused for everything at once, in its own order, with line and column: whoever wrote
// it corrects it in one pass. And a block that this build cannot honour is refused, not ignored, unless it is switched
// off: a setting that is silently dropped looks exactly like one that works.
//
// Sentences never repeat a credential. A value is quoted only when it is short and does not look like one.
package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/services/company/internal/yamltree"
)

// The kinds of problem.
const (
	KindUnknownKey  = "unknown_key"
	KindType        = "type"
	KindRequired    = "required"
	KindValue       = "value"
	KindReference   = "reference"
	KindDuplicate   = "duplicate"
	KindCycle       = "cycle"
	KindUnsupported = "unsupported"
	KindSecret      = "secret"
	KindSyntax      = "syntax"
)

// maxProblems bounds one answer; the last one then counts the rest.
const maxProblems = 500

// MaxBytes is the largest document.
const MaxBytes = yamltree.MaxBytes

// Problem is one thing wrong with a document.
type Problem struct {
	// Path is where, such as "units[0].roles[1].handle"; empty for the document as a whole.
	Path string
	// Line and Column are from 1, and 0 when the fault has no place.
	Line, Column int
	// Message says what is wrong and what would be right.
	Message string
	// Kind is one of the kinds.
	Kind string
	// Seat is the handle of the seat and Unit the id of the unit that it is in; empty outside of one.
	Seat, Unit string
}

// String answers the problem as a compiler would print it, without the file's name: "12:3: units[0].lead: …".
func (p Problem) String() string {
	text := p.Message
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	if p.Line > 0 {
		text = fmt.Sprintf("%d:%d: %s", p.Line, p.Column, text)
	}
	return text
}

// Parse reads a document. It answers a company and no problem, or nil and at least one problem, in the order of the document.
func Parse(text string) (*Company, []Problem) {
	root, flaw := yamltree.Parse(text)
	if flaw != nil {
		return nil, []Problem{{Line: flaw.Line, Column: flaw.Column, Message: flaw.Message, Kind: KindSyntax}}
	}
	r := &reader{}
	d := r.draft(root)
	r.checkTexts(root)
	if len(d.seats) <= maxSeats {
		d.checkReferences(r)
	}
	if len(r.problems) > 0 {
		return nil, d.located(r.sorted())
	}
	return d.resolve(), nil
}

// located says which seat and which unit each problem is in.
func (d *draft) located(problems []Problem) []Problem {
	seats, units := map[string]string{}, map[string]string{}
	for _, s := range d.seats {
		seats[s.at.path] = s.Handle
	}
	for _, u := range d.units {
		units[strings.TrimSuffix(u.named.path, ".name")] = u.ID
	}
	for i := range problems {
		p := &problems[i]
		for end, c := range p.Path + "." {
			if c != '.' {
				continue
			}
			p.Seat = cmp.Or(seats[p.Path[:end]], p.Seat)
			p.Unit = cmp.Or(units[p.Path[:end]], p.Unit)
		}
	}
	return problems
}

// sorted answers the problems in document order, at most [maxProblems] of them.
func (r *reader) sorted() []Problem {
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	all := slices.Compact(r.problems)
	if more := len(all) - maxProblems; more > 0 {
		all = append(all[:maxProblems:maxProblems], Problem{
			Kind: KindSyntax, Message: fmt.Sprintf("%d more problems are not listed", more),
		})
	}
	return all
}
