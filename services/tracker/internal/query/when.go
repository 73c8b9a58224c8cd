package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// When is a condition on a date, in the words it was written in.
type When struct {
	// Word is a stretch that has a name, such as next7; empty when Op says it.
	Word string
	// Op is eq, lt, lte, gt, gte or range.
	Op       string
	From, To Anchor // To is for a range alone
}

// Anchor is a day, or a point in time, that a date is compared with.
type Anchor struct {
	// Base is a word such as today, a day 2026-03-01, or a time 2026-03-01T15:00:00Z.
	Base string
	// Offset is added, in Unit: h, d, w, m or y; 0 for none.
	Offset int
	Unit   byte
}

// stretch answers the range that a word naming a span of days stands for.
func stretch(word string) When {
	switch word {
	case "next7":
		return between("today", 0, 'd', "today", 6, 'd')
	case "last7":
		return between("today", -6, 'd', "today", 0, 'd')
	case "thisweek":
		return between("sow", 0, 'd', "eow", 0, 'd')
	case "nextweek":
		return between("sow", 1, 'w', "eow", 1, 'w')
	case "lastweek":
		return between("sow", -1, 'w', "eow", -1, 'w')
	case "thismonth":
		return between("som", 0, 'd', "eom", 0, 'd')
	case "nextmonth":
		return between("som", 1, 'm', "eom", 1, 'm')
	case "lastmonth":
		return between("som", -1, 'm', "eom", -1, 'm')
	case "earlier":
		return When{Op: "lt", From: Anchor{Base: "som", Offset: -1, Unit: 'm'}}
	default:
		return When{}
	}
}

func between(from string, n int, unit byte, to string, m int, toUnit byte) When {
	return When{Op: "range", From: Anchor{Base: from, Offset: n, Unit: unit}, To: Anchor{Base: to, Offset: m, Unit: toUnit}}
}

func dateWords() []string {
	return []string{"overdue", "none", "any", "next7", "last7", "thisweek", "nextweek", "lastweek", "thismonth", "nextmonth", "lastmonth", "earlier"}
}

func dayBases() []string {
	return []string{"today", "tomorrow", "yesterday", "sow", "eow", "som", "eom", "soy", "eoy"}
}

// farthest is a hundred years in a unit, which keeps every date one that the database can hold; 0 when there is no such unit.
func farthest(unit byte) int {
	switch unit {
	case 'h':
		return 876_000
	case 'd':
		return 36_525
	case 'w':
		return 5_218
	case 'm':
		return 1_200
	case 'y':
		return 100
	default:
		return 0
	}
}

// ParseWhen reads a condition on a date. key is the one that it is for.
func ParseWhen(key, value string) (When, error) {
	text := strings.ToLower(strings.TrimSpace(value))
	if slices.Contains(dateWords(), text) {
		if text == "overdue" && key != "due" {
			return When{}, invalid(key, "overdue is said of due alone, not of %s", key)
		}
		return When{Word: text}, nil
	}
	op, rest, found := strings.Cut(text, ":")
	switch {
	case found && op == "range":
		from, to, parted := strings.Cut(rest, "..")
		if !parted {
			return When{}, invalid(key, "%s: a range is written range:<from>..<to>, such as range:sow..eow, not %q", key, value)
		}
		a, err := parseAnchor(key, from)
		if err != nil {
			return When{}, err
		}
		b, err := parseAnchor(key, to)
		return When{Op: "range", From: a, To: b}, err
	case found && slices.Contains([]string{"eq", "lt", "lte", "gt", "gte"}, op):
		a, err := parseAnchor(key, rest)
		return When{Op: op, From: a}, err
	default:
		a, err := parseAnchor(key, text)
		return When{Op: "eq", From: a}, err
	}
}

func parseAnchor(key, text string) (Anchor, error) {
	text = strings.TrimSpace(text)
	if at, err := time.Parse(time.RFC3339Nano, strings.ToUpper(text)); err == nil && plausible(at) {
		return Anchor{Base: at.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)}, nil
	}
	base, offset := split(text)
	a := Anchor{Base: base}
	if offset != "" {
		n, unit, ok := parseOffset(offset)
		if !ok {
			return Anchor{}, badDate(key, text)
		}
		if n != 0 {
			a.Offset, a.Unit = n, unit
		}
		switch {
		case base == "" && unit == 'h':
			a.Base = "now"
		case base == "":
			a.Base = "today"
		case unit == 'h' && base != "now":
			return Anchor{}, invalid(key, "%s: hours are counted from now, such as now%s, not from the day %s", key, offset, base)
		}
	}
	if a.Base == "now" || slices.Contains(dayBases(), a.Base) {
		return a, nil
	}
	if day, err := time.Parse(time.DateOnly, a.Base); err == nil && plausible(day) {
		return a, nil
	}
	return Anchor{}, badDate(key, text)
}

// plausible keeps years that a hundred more or less leave printable.
func plausible(t time.Time) bool { return t.UTC().Year() >= 200 && t.UTC().Year() <= 9800 }

// split parts an anchor from what is added to it. A day's own dashes are not taken for a minus.
func split(text string) (base, offset string) {
	from := 0
	if len(text) >= len(time.DateOnly) && text[0] >= '0' && text[0] <= '9' {
		from = len(time.DateOnly)
	}
	if at := strings.IndexAny(text[from:], "+-"); at >= 0 {
		return text[:from+at], text[from+at:]
	}
	return text, ""
}

// parseOffset reads +3d.
func parseOffset(text string) (n int, unit byte, ok bool) {
	if len(text) < 3 {
		return 0, 0, false
	}
	unit = text[len(text)-1]
	limit := farthest(unit)
	digits := text[1 : len(text)-1]
	if limit == 0 || strings.Trim(digits, "0123456789") != "" {
		return 0, 0, false
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n > limit {
		return 0, 0, false
	}
	if text[0] == '-' {
		n = -n
	}
	return n, unit, true
}

func badDate(key, text string) error {
	return invalid(key, "%s: %q is no date. Write a day 2026-03-01, a time 2026-03-01T15:00:00Z, now, %s, or one of these with an offset of at most "+
		"a hundred years such as +3d, -2w, today+1m; with lt:, lte:, gt:, gte: before it, or range:<from>..<to>; or one of %s",
		key, text, strings.Join(dayBases(), ", "), strings.Join(dateWords(), ", "))
}

// String is the form that is parsed.
func (w When) String() string {
	switch {
	case w.Word != "":
		return w.Word
	case w.Op == "range":
		return "range:" + w.From.String() + ".." + w.To.String()
	default:
		return w.Op + ":" + w.From.String()
	}
}

// String is the form that is parsed.
func (a Anchor) String() string {
	if a.Offset == 0 {
		return a.Base
	}
	return fmt.Sprintf("%s%+d%c", a.Base, a.Offset, a.Unit)
}
