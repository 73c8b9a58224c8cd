package field

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Kind is how kept values compare.
type Kind int

// The kinds. Words and marks are texts; a mark is only ever equal or not.
const (
	Words   Kind = iota // text, textarea, url, email
	Amounts             // number, progress: JSON numbers
	Days                // date: texts that sort as time does, days or points in time
	Choices             // dropdown, labels: lists of option ids
	Truths              // checkbox: booleans
	Marks               // relationship, people: an item's id, a handle
)

// Kind answers how the field's values compare.
func (d Declaration) Kind() Kind {
	switch d.Type {
	case Number, Progress:
		return Amounts
	case Date:
		return Days
	case Dropdown, Labels:
		return Choices
	case Checkbox:
		return Truths
	case Relationship, People:
		return Marks
	default:
		return Words
	}
}

// Operator is a question about a value.
type Operator string

// The operators.
const (
	Eq          Operator = "eq"
	Ne          Operator = "ne"
	Lt          Operator = "lt"
	Lte         Operator = "lte"
	Gt          Operator = "gt"
	Gte         Operator = "gte"
	Range       Operator = "range" // both ends belong to it
	In          Operator = "in"
	NotIn       Operator = "not_in"
	Contains    Operator = "contains"
	NotContains Operator = "not_contains"
	StartsWith  Operator = "starts_with"
	Any         Operator = "any"
	All         Operator = "all"
	None        Operator = "none"
	IsSet       Operator = "set"
	Unset       Operator = "unset"
)

// Operators answers what may be asked of the field; the first is meant where none is named. Only what takes several options can be asked
// for some or all of them, and a textarea is too long to be equal to anything.
func (d Declaration) Operators() []Operator {
	if d.Type == Textarea {
		return []Operator{Contains, NotContains, IsSet, Unset}
	}
	switch d.Kind() {
	case Words:
		return []Operator{Eq, Ne, In, NotIn, Contains, NotContains, StartsWith, IsSet, Unset}
	case Amounts:
		return []Operator{Eq, Ne, Lt, Lte, Gt, Gte, Range, In, NotIn, IsSet, Unset}
	case Days:
		return []Operator{Eq, Ne, Lt, Lte, Gt, Gte, Range, IsSet, Unset}
	case Truths:
		return []Operator{Eq, Ne, IsSet, Unset}
	case Choices:
		if d.several() {
			return []Operator{Any, All, None, IsSet, Unset}
		}
	case Marks:
	}
	return []Operator{Eq, Ne, In, NotIn, IsSet, Unset}
}

// Admit refuses an operator that the field does not have, naming those it has. argument is the one that it came in.
func (d Declaration) Admit(argument string, o Operator) error {
	if slices.Contains(d.Operators(), o) {
		return nil
	}
	names := make([]string, 0, len(d.Operators()))
	for _, admitted := range d.Operators() {
		names = append(names, string(admitted))
	}
	return fault.New(fault.Invalid, "%s is %s and does not take %q; it takes %s", d.Slug, withArticle(d.Type), string(o), strings.Join(names, ", ")).
		WithField(argument)
}

func withArticle(fieldType string) string {
	switch fieldType {
	case Labels, People:
		return fmt.Sprintf("of type %s", fieldType)
	case Email:
		return "an " + fieldType
	default:
		return "a " + fieldType
	}
}
