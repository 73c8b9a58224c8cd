// Package query is the grammar of lists: which conditions, orders, columns and sums can be asked for, as text keys with text values.
//
// It is pure: it knows neither the database nor who is who. Parse reads a query and refuses whatever it does not understand, so that
// no condition is ever dropped in silence; Params prints it back, and what is printed reads as the same query. Dates keep the words
// they were written in and are cut into spans of time only when the company's clock is known, because a saved view is asked again
// on other days.
//
// The idea to hold: a query is layered. A preset says what is usual, a saved view says more, and the arguments of a call win, key by
// key ([Merge]).
package query

import (
	"strings"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
)

// Limits of a query.
const (
	MaxLimit        = 500
	DefaultLimit    = 50
	MaxGroupLimit   = 100
	DefaultGroups   = 20
	MaxAlternatives = 8
	MaxTotals       = 8
	MaxMembers      = 64  // of a list of values
	MaxValueBytes   = 400 // of one value
	maxAnyBytes     = 16 << 10
)

// Params is a query as text.
type Params map[string]string

// Query is a query that was understood.
type Query struct {
	// Project narrows to one project by its key; empty for the whole company.
	Project string
	// Where must hold, all of it; sorted by key.
	Where []Condition
	// Any holds alternatives of which one must hold too; empty for none.
	Any [][]Condition
	// Removed asks for the trash and nothing else.
	Removed bool
	// Subtasks is collapsed, expanded, separate or empty.
	Subtasks string
	Sort     Sort
	// GroupBy is empty for a plain list.
	GroupBy string
	// GroupField is set when the columns are a custom field's values, once bound.
	GroupField *field.Declaration
	// Group asks for one column by its value, empty for items without one; nil for all columns.
	Group      *string
	GroupLimit int
	Totals     []Total
	Limit      int
}

// Condition is one thing that must hold of an item. Which part is set depends on the key.
type Condition struct {
	Key string
	// Values are what the item must have one of.
	Values []string
	// When is set for dates.
	When *When
	// Op and Operand are set for a custom field, whose key is `f.` and its slug.
	Op      field.Operator
	Operand string
	// Field is what the field is declared as; nil until the condition is bound to a catalogue.
	Field *field.Declaration
}

// Slug answers the slug of a custom field's key, empty for any other key.
func Slug(key string) string {
	slug, ok := strings.CutPrefix(key, "f.")
	if !ok {
		return ""
	}
	return slug
}

// Sort is an order. Items without a value come last in both directions.
type Sort struct {
	Key        string
	Descending bool
	// Field is set for a custom field, once bound.
	Field *field.Declaration
}

// String is the form that is parsed.
func (s Sort) String() string {
	if s.Descending {
		return "-" + s.Key
	}
	return s.Key
}

// Total is a number over all matches.
type Total struct {
	// Func is count, sum, avg, min, max, median or p90.
	Func string
	// Of is estimate, points or a custom field's key; empty for count.
	Of string
	// Field is set for a custom field, once bound.
	Field *field.Declaration
}

// String is the form that is parsed.
func (t Total) String() string {
	if t.Of == "" {
		return t.Func
	}
	return t.Func + ":" + t.Of
}

// Find answers the condition on a key.
func (q *Query) Find(key string) (Condition, bool) {
	for _, c := range q.Where {
		if c.Key == key {
			return c, true
		}
	}
	return Condition{}, false
}

func invalid(key, format string, args ...any) error {
	return fault.New(fault.Invalid, format, args...).WithField(key)
}
