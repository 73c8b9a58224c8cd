package query

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
)

// operator reports whether a word is one of all that a custom field can be asked; which of them, its type says.
func operator(word field.Operator) bool {
	switch word {
	case field.Eq, field.Ne, field.Lt, field.Lte, field.Gt, field.Gte, field.Range, field.In, field.NotIn, field.Contains, field.NotContains,
		field.StartsWith, field.Any, field.All, field.None, field.IsSet, field.Unset:
		return true
	default:
		return false
	}
}

// listing reports whether an operator takes several values, parted by commas.
func listing(o field.Operator) bool {
	return slices.Contains([]field.Operator{field.In, field.NotIn, field.Any, field.All, field.None}, o)
}

// fieldCondition reads what is asked of a custom field: an operator and a value, or a value alone, which the field's usual operator takes.
func fieldCondition(key, value string) (Condition, error) {
	if !fieldKey(key) {
		return Condition{}, invalid(key, "%s names no custom field: after f. comes a slug of lower-case letters, digits, - and _", key)
	}
	c := Condition{Key: key, Operand: value}
	if op, operand, parted := strings.Cut(value, ":"); parted && operator(field.Operator(op)) {
		c.Op, c.Operand = field.Operator(op), operand
	} else if o := field.Operator(value); o == field.IsSet || o == field.Unset {
		c.Op, c.Operand = o, ""
	}
	switch {
	case c.Op == field.IsSet || c.Op == field.Unset:
		if c.Operand != "" {
			return Condition{}, invalid(key, "%s: %s takes no value", key, c.Op)
		}
	case c.Operand == "":
		return Condition{}, invalid(key, "%s needs a value, such as 3 or gte:3; for items without one, write unset", key)
	case len(c.Operand) > MaxMembers*MaxValueBytes || !listing(c.Op) && len(c.Operand) > MaxValueBytes:
		return Condition{}, invalid(key, "%s: the value is %d bytes long, and at most %d are taken", key, len(c.Operand), MaxValueBytes)
	}
	return c, nil
}

// Names resolves what the values of a custom field name outside of it.
type Names struct {
	// Item answers the id of the item that a key names, Colleague the handle of whom a text names; both refuse with a fault.
	Item, Colleague func(text string) (string, error)
}

// Bind checks a condition on a custom field against the field's declaration, and reads its values into the forms that are stored.
func (c Condition) Bind(d field.Declaration, names Names) (Condition, error) {
	c.Field = &d
	given := c.Op
	if c.Op == "" {
		c.Op = d.Operators()[0]
	}
	if err := d.Admit(c.Key, c.Op); err != nil {
		return c, err
	}
	switch {
	case c.Op == field.IsSet || c.Op == field.Unset:
		return c, nil
	case d.Kind() == field.Days:
		text := c.Operand
		switch given {
		case "":
		case field.Ne:
			text = "eq:" + text
		default:
			text = string(given) + ":" + text
		}
		w, err := ParseWhen(c.Key, text)
		c.When = &w
		return c, err
	case c.Op == field.Range:
		from, to, parted := strings.Cut(c.Operand, "..")
		if !parted {
			return c, invalid(c.Key, "%s: a range is written range:<from>..<to>, not %q", c.Key, c.Operand)
		}
		c.Values = []string{strings.TrimSpace(from), strings.TrimSpace(to)}
	case listing(c.Op):
		var err error
		if c.Values, err = members(c.Key, c.Operand); err != nil {
			return c, err
		}
	default:
		c.Values = []string{c.Operand}
	}
	for n, text := range c.Values {
		read, err := c.stored(d, names, text)
		if err != nil {
			return c, err
		}
		c.Values[n] = read
	}
	return c, nil
}

// stored reads one value of a field in the form that is stored.
func (c Condition) stored(d field.Declaration, names Names, text string) (string, error) {
	switch d.Kind() {
	case field.Amounts:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
			return "", invalid(c.Key, "%s is a %s, and %q is no number", c.Key, d.Type, text)
		}
		return strconv.FormatFloat(n, 'f', -1, 64), nil
	case field.Truths:
		return text, oneOf(c.Key, "value of "+c.Key, text, truths())
	case field.Choices:
		if o, ok := d.Option(text); ok {
			return o.ID, nil
		}
		slugs := make([]string, 0, len(d.Options))
		for _, o := range d.Options {
			slugs = append(slugs, o.Slug)
		}
		return "", unknown(c.Key, "option of "+c.Key, text, slugs)
	case field.Marks:
		if d.Type == field.People {
			return names.Colleague(text)
		}
		return names.Item(text)
	default:
		return text, nil
	}
}
