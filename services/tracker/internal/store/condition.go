package store

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/query"
)

// statement is SQL in the making: what must hold, and the arguments.
type statement struct {
	parts []string
	args  []any
	// groups are the status groups that may be answered, as no condition of a list is as selective for so many items.
	groups []item.Group
	// ceiling is where counting stops.
	ceiling int32
	// unforeseen: the database cannot tell how much will match.
	unforeseen bool
	// asks is who asks, now the moment on the company's clock.
	asks Act
	now  time.Time
}

// arg makes a value an argument and answers how SQL names it.
func (s *statement) arg(value any) string {
	s.args = append(s.args, value)
	return "$" + strconv.Itoa(len(s.args))
}

func (s *statement) add(sql string) { s.parts = append(s.parts, sql) }

// fork answers a copy that can go its own way.
func (s *statement) fork() *statement {
	forked := *s
	forked.parts, forked.args = slices.Clip(s.parts), slices.Clip(s.args)
	return &forked
}

// where is everything that must hold, for items of the groups. They are named even when they are all, as they lead the indexes.
func (s *statement) where() string {
	names := make([]string, 0, len(s.groups))
	for _, g := range s.groups {
		names = append(names, strconv.Itoa(int(g)))
	}
	return strings.Join(s.parts, " and ") + " and i.status_group = any('{" + strings.Join(names, ",") + "}')"
}

func allGroups() []item.Group {
	return []item.Group{item.NotStarted, item.Active, item.Done, item.Closed}
}

// conditions writes what a query says when somebody asks it.
func conditions(q *query.Query, a Act) *statement {
	s := &statement{groups: allGroups(), ceiling: MaxCounted, asks: a, now: a.Org.Clock(a.At)}
	if q.Removed {
		s.add("i.removed_at is not null")
	} else {
		s.add("i.removed_at is null")
	}
	if q.Project != "" {
		s.add("i.project = " + s.arg(q.Project))
	}
	if q.Subtasks == "collapsed" {
		s.add("i.parent is null")
	}
	for _, c := range q.Where {
		s.require(c)
	}
	if len(q.Any) > 0 {
		alternatives := make([]string, 0, len(q.Any))
		for _, alternative := range q.Any {
			all := make([]string, 0, len(alternative))
			for _, c := range alternative {
				all = append(all, s.condition(c))
			}
			alternatives = append(alternatives, "("+strings.Join(all, " and ")+")")
		}
		s.add("(" + strings.Join(alternatives, " or ") + ")")
	}
	return s
}

// narrow keeps the groups that a condition leaves possible.
func (s *statement) narrow(c query.Condition) {
	possible := func(item.Group) bool { return true }
	open := func(g item.Group) bool { return g < item.Done }
	switch {
	case c.Key == "status_group":
		possible = func(g item.Group) bool { return slices.Contains(c.Values, g.String()) }
	case c.Key == "status":
		possible = func(g item.Group) bool {
			return slices.ContainsFunc(c.Values, func(status string) bool { return item.GroupOf(status) == g })
		}
	case c.Key == "show_closed" && c.Values[0] == "false":
		possible = func(g item.Group) bool { return g != item.Closed }
	case c.Key == "ready" && c.Values[0] == "true", c.When != nil && c.When.Span(s.now).Open:
		possible = open
	}
	s.groups = slices.DeleteFunc(s.groups, func(g item.Group) bool { return !possible(g) })
}

// require adds a condition. One that its groups say already is not looked for in every row too.
func (s *statement) require(c query.Condition) {
	s.groups = slices.Clone(s.groups)
	s.narrow(c)
	if c.Key == "status_group" || c.Key == "status" && s.whole(c.Values) {
		return
	}
	s.add(s.condition(c))
}

// whole reports whether statuses are all that the groups have.
func (s *statement) whole(chosen []string) bool {
	return !slices.ContainsFunc(query.Statuses(), func(status string) bool {
		return slices.Contains(s.groups, item.GroupOf(status)) && !slices.Contains(chosen, status)
	})
}

// columnOf answers the column of a condition that asks for one of some values; empty for others.
func columnOf(key string) string {
	switch key {
	case "key":
		return "i.id"
	case "unit":
		return "i.filed_unit"
	case "status", "type", "assignee", "reporter", "routing_unit", "parent":
		return "i." + key
	default:
		return ""
	}
}

// setOf answers the column of a condition that asks for a set; empty for others.
func setOf(key string) string {
	switch key {
	case "watcher":
		return "i.watchers"
	case "collaborator":
		return "i.collaborators"
	case "tag":
		return "i.labels"
	default:
		return ""
	}
}

// condition is what one condition says. It never answers null, so that it may be negated.
func (s *statement) condition(c query.Condition) string {
	if column := columnOf(c.Key); column != "" {
		return s.oneOf(c.Key, column, c.Values)
	}
	if column := setOf(c.Key); column != "" {
		return s.overlaps(column, c.Values)
	}
	if c.Field != nil {
		s.ceiling = maxSought
		return s.field(c)
	}
	switch c.Key {
	case "q":
		return s.text(c.Values[0])
	case "status_group":
		numbers := make([]int16, 0, len(c.Values))
		for _, g := range allGroups() {
			if slices.Contains(c.Values, g.String()) {
				numbers = append(numbers, int16(g))
			}
		}
		return "i.status_group = any(" + s.arg(numbers) + ")"
	case "priority":
		ranks := make([]int16, 0, len(c.Values))
		for _, p := range c.Values {
			ranks = append(ranks, item.Rank(p))
		}
		return "i.priority = any(" + s.arg(ranks) + ")"
	case "due", "start":
		return s.moment("i."+c.Key, c.When.Span(s.now))
	case "updated", "created", "done":
		return s.point("i."+c.Key+"_at", c.When.Span(s.now))
	case "show_closed":
		return s.showClosed(c.Values[0])
	case "root":
		return "i.id in (with recursive tree as (select id from items where id = " + s.arg(c.Values[0]) +
			" union all select below.id from items below join tree on below.parent = tree.id) select id from tree)"
	case "asked_of":
		return "i.id in (select c.item_id from comments c where c.asked <> '' and c.answered_at is null and c.asked = any(" + s.arg(c.Values) + "))"
	case "asked_by":
		return "i.id in (select c.item_id from comments c where c.asked <> '' and c.answered_at is null and c.author = any(" + s.arg(c.Values) + "))"
	case "priorities":
		return "i.id = any(coalesce((select priorities from persons where handle = " + s.arg(c.Values[0]) + "), '{}'))"
	case "flag":
		flags := make([]string, 0, len(c.Values))
		s.ceiling = maxSought
		for _, flag := range c.Values {
			flags = append(flags, flagged(flag))
		}
		return "(" + strings.Join(flags, " or ") + ")"
	default: // true or false
		fact := fact(c.Key)
		if c.Key != "has_open_asks" {
			s.ceiling = maxSought
		}
		if c.Key == "ready" {
			fact = readyFor(len(s.args) + 1)
			s.args = append(s.args, readyArgs(s.asks)...)
		}
		if c.Values[0] == "false" {
			return "not " + fact
		}
		return fact
	}
}

// oneOf asks for one of some values. What nobody has is asked for as nobody, and what is part of nothing as none.
func (s *statement) oneOf(key, column string, values []string) string {
	switch {
	case key == "key" || key == "parent" && values[0] != "none":
		return column + " = any(" + s.arg(values) + "::uuid[])"
	case key == "parent":
		return column + " is null"
	case len(values) == 1:
		return column + " = " + s.arg(nobody(values[0]))
	default:
		named := make([]string, 0, len(values))
		for _, value := range values {
			named = append(named, nobody(value))
		}
		return column + " = any(" + s.arg(named) + ")"
	}
}

func nobody(value string) string {
	if value == "nobody" {
		return ""
	}
	return value
}

// overlaps asks for a set that holds one of some members; none and nobody ask for an empty one.
func (s *statement) overlaps(column string, values []string) string {
	none := func(value string) bool { return value == "none" || value == "nobody" }
	held := slices.DeleteFunc(slices.Clone(values), none)
	s.ceiling = maxSought
	empty, some := column+" = '{}'", ""
	if len(held) > 0 {
		some = fmt.Sprintf("(%[1]s && %[2]s and %[1]s <> '{}')", column, s.arg(held))
	}
	switch {
	case some == "":
		return empty
	case len(held) == len(values):
		return some
	default:
		return "(" + some + " or " + empty + ")"
	}
}

// moment asks for a date that is a day or a point in time. The outer bounds let an index find the range; which of the two an item has
// decides at its edges.
func (s *statement) moment(name string, span query.Span) string {
	at, day := name+"_at", name+"_all_day"
	parts := []string{at + " is not null"}
	if span.Absent {
		return at + " is null"
	}
	if span.From != nil {
		outer := *span.From
		if span.FromDay.Before(outer) {
			outer = *span.FromDay
		}
		parts = append(parts, at+" >= "+s.arg(outer), fmt.Sprintf("%s >= case when %s then %s::timestamptz else %s end", at, day, s.arg(*span.FromDay), s.arg(*span.From)))
	}
	if span.To != nil {
		outer := *span.To
		if span.ToDay.After(outer) {
			outer = *span.ToDay
		}
		parts = append(parts, at+" < "+s.arg(outer), fmt.Sprintf("%s < case when %s then %s::timestamptz else %s end", at, day, s.arg(*span.ToDay), s.arg(*span.To)))
	}
	if span.Open {
		parts = append(parts, "i.status_group < 2")
	}
	return "(" + strings.Join(parts, " and ") + ")"
}

// point asks for a point in time.
func (s *statement) point(column string, span query.Span) string {
	parts := []string{column + " is not null"}
	if span.Absent {
		return column + " is null"
	}
	if span.From != nil {
		parts = append(parts, column+" >= "+s.arg(*span.From))
	}
	if span.To != nil {
		parts = append(parts, column+" < "+s.arg(*span.To))
	}
	return "(" + strings.Join(parts, " and ") + ")"
}

func (s *statement) showClosed(value string) string {
	switch n, unit, recent := query.Recent(value); {
	case recent:
		since := query.When{Op: "gte", From: query.Anchor{Base: "now", Offset: -n, Unit: unit}}.Span(s.now).From
		return "(i.status_group < 3 or i.closed_at >= " + s.arg(*since) + ")"
	case value == "false":
		return "i.status_group < 3"
	default:
		return "true"
	}
}

// text asks for a part of the title, or for the beginning of a key. Titles are found by three letters in a row; a key without them is
// looked for among keys alone.
func (s *statement) text(text string) string {
	s.ceiling, s.unforeseen = maxSought, true
	project, number, ok := splitKey(text)
	switch {
	case !ok && short(text):
		return fmt.Sprintf("(i.title ilike %s or i.title ilike %s)", s.arg(likeLiteral(text)+"%"), s.arg("% "+likeLiteral(text)+"%"))
	case !ok:
		return "i.title ilike " + s.arg("%"+likeLiteral(text)+"%")
	}
	var found []string
	if len(project) >= 3 || number > 99 {
		found = append(found, "select id from items where title ilike "+s.arg("%"+likeLiteral(text)+"%"))
	}
	// Numbers that begin with these digits, as ranges: the index of keys knows nothing of digits.
	name := s.arg(project)
	for low, high := int64(number), int64(number); low < 1<<31; low, high = low*10, high*10+9 {
		found = append(found, fmt.Sprintf("select id from items where project = %s and number between %d and %d", name, low, min(high, 1<<31-1)))
	}
	return "i.id in (" + strings.Join(found, " union all ") + ")"
}

// short reports whether a text has no three letters or digits in a row, by which titles are found. Such a text is looked for at the beginnings
// of words, unless its script may have no spaces.
func short(text string) bool {
	longest, run := 0, 0
	for _, r := range text {
		switch {
		case r >= utf8.RuneSelf:
			return false
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			run++
		default:
			run = 0
		}
		longest = max(longest, run)
	}
	return longest == 1 || longest == 2
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

func likeLiteral(text string) string { return likeEscaper.Replace(text) }

// waits is an edge to something that is not finished.
const waits = `exists (select from relations r where r.from_id = i.id and r.kind = 'waiting_on' and r.cleared_at is null and r.to_open)`

// hasDependencies is one question of two parts: as two that either may answer, each would be answered for all items first.
const hasDependencies = `exists (select from relations r where r.from_id = i.id and r.kind = 'waiting_on' and r.cleared_at is null
	union all select from relations r where r.to_id = i.id and r.kind = 'waiting_on' and r.cleared_at is null)`

// fact is what is true of an item or not.
func fact(key string) string {
	switch key {
	case "has_open_asks":
		return "(i.open_asks > 0)"
	case "blocked":
		return waits
	default:
		return hasDependencies
	}
}

const edge = "r.from_id = i.id and r.kind = 'waiting_on' and r.cleared_at is null"

// lost is an edge whose other side can never know of it.
const lost = `(not exists (select from items t where t.id = r.to_id and t.removed_at is null) or r.one_sided and (select count(*) from relations d
	where d.to_id = r.to_id and d.kind = 'waiting_on' and d.cleared_at is null and not d.one_sided) >= 64)`

// inCycle is waiting for itself, through others.
const inCycle = `i.id in (select w.from_id from relations w where w.kind = 'waiting_on' and w.cleared_at is null and w.from_id in (
	with recursive reach (id) as (
		select w.to_id union
		select r.to_id from reach join items t on t.id = reach.id and t.status_group < 2 and t.removed_at is null
			join relations r on r.from_id = reach.id and r.kind = 'waiting_on' and r.cleared_at is null)
	select reach.id from reach join items t on t.id = reach.id and t.status_group < 2 and t.removed_at is null))`

// flagged is what may be odd about an item; see [standings], which says it of items that are shown.
func flagged(flag string) string {
	switch flag {
	case "cycle":
		return inCycle
	case "too_deep":
		return "i.depth > " + maxDepth
	case "inconsistent_project":
		return "exists (select from items p where p.id = i.parent and p.project <> i.project)"
	case "one_sided":
		return "exists (select from relations r where " + edge + " and r.one_sided and not " + lost + ")"
	case "one_sided_final":
		return "exists (select from relations r where " + edge + " and " + lost + ")"
	default: // key_collision: keys are unique in the database; the flag is understood and holds of nothing
		return "false"
	}
}

const maxDepth = "7"
