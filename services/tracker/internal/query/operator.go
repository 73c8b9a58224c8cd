package query

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// operators are all that a custom field can be asked, in the order that refusals name them.
var operators = []string{
	"is", "not", "in", "nin", "lt", "lte", "gt", "gte", "range", "contains", "lacks", "starts", "ends", "all", "none", "set", "unset",
}

// admissible are the operators of each type of field.
var admissible = map[string][]string{
	"text":         {"is", "not", "in", "nin", "contains", "lacks", "starts", "ends", "set", "unset"},
	"textarea":     {"contains", "lacks", "starts", "ends", "set", "unset"},
	"url":          {"is", "not", "in", "nin", "contains", "lacks", "starts", "ends", "set", "unset"},
	"email":        {"is", "not", "in", "nin", "contains", "lacks", "starts", "ends", "set", "unset"},
	"number":       {"is", "not", "in", "nin", "lt", "lte", "gt", "gte", "range", "set", "unset"},
	"progress":     {"is", "not", "in", "nin", "lt", "lte", "gt", "gte", "range", "set", "unset"},
	"date":         {"is", "lt", "lte", "gt", "gte", "range", "set", "unset"},
	"dropdown":     {"is", "not", "in", "nin", "all", "none", "set", "unset"},
	"labels":       {"is", "not", "in", "nin", "all", "none", "set", "unset"},
	"checkbox":     {"is", "not", "set", "unset"},
	"relationship": {"is", "not", "in", "nin", "set", "unset"},
	"people":       {"is", "not", "in", "nin", "set", "unset"},
}

// listing operators take several values, parted by commas.
var listing = []string{"in", "nin", "all", "none"}

// fieldCondition reads what is asked of a custom field: an operator and a value, or a value alone, which is what it must be.
func fieldCondition(key, value string) (Condition, error) {
	if !fieldKey(key) {
		return Condition{}, invalid(key, "%s names no custom field: after f. comes a slug of lower-case letters, digits, - and _", key)
	}
	c := Condition{Key: key, Op: "is", Operand: value}
	if op, operand, parted := strings.Cut(value, ":"); parted && slices.Contains(operators, op) {
		c.Op, c.Operand = op, operand
	} else if value == "set" || value == "unset" {
		c.Op, c.Operand = value, ""
	}
	switch {
	case c.Op == "set" || c.Op == "unset":
		if c.Operand != "" {
			return Condition{}, invalid(key, "%s: %s takes no value", key, c.Op)
		}
	case c.Operand == "":
		return Condition{}, invalid(key, "%s: %s needs a value, such as %s:3; for items without one, write unset", key, c.Op, c.Op)
	case slices.Contains(listing, c.Op):
		list, err := members(key, c.Operand)
		if err != nil {
			return Condition{}, err
		}
		c.Operand = strings.Join(list, ",")
	case len(c.Operand) > MaxValueBytes:
		return Condition{}, invalid(key, "%s: the value is %d bytes long, and at most %d are taken", key, len(c.Operand), MaxValueBytes)
	}
	return c, nil
}

// Bind checks a condition on a custom field against what the field is, and reads its values.
func (c Condition) Bind(f Field) (Condition, error) {
	allowed := admissible[f.Type]
	if !slices.Contains(allowed, c.Op) {
		return c, invalid(c.Key, "%s is a %s, which cannot be asked %s; it can be asked %s", c.Key, f.Type, c.Op, strings.Join(allowed, ", "))
	}
	c.Field = &f
	switch {
	case c.Op == "set" || c.Op == "unset":
		return c, nil
	case f.Type == "date":
		op := c.Op
		if op == "is" {
			op = "eq"
		}
		w, err := ParseWhen(c.Key, op+":"+c.Operand)
		c.When = &w
		return c, err
	case c.Op == "range":
		from, to, parted := strings.Cut(c.Operand, "..")
		if !parted {
			return c, invalid(c.Key, "%s: a range is written range:<from>..<to>, not %q", c.Key, c.Operand)
		}
		c.Values = []string{strings.TrimSpace(from), strings.TrimSpace(to)}
	case slices.Contains(listing, c.Op):
		c.Values = strings.Split(c.Operand, ",")
	default:
		c.Values = []string{c.Operand}
	}
	for n, value := range c.Values {
		read, err := c.value(f, value)
		if err != nil {
			return c, err
		}
		c.Values[n] = read
	}
	return c, nil
}

// value reads one value of a field as it is stored, in text.
func (c Condition) value(f Field, text string) (string, error) {
	switch f.Type {
	case "number", "progress":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
			return "", invalid(c.Key, "%s is a %s, and %q is no number", c.Key, f.Type, text)
		}
		return strconv.FormatFloat(n, 'f', -1, 64), nil
	case "checkbox":
		return text, oneOf(c.Key, "value of "+c.Key, text, truths)
	default:
		return text, nil
	}
}
