package query

import (
	"maps"
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/services/tracker/internal/nearest"
)

// kind is how the value of a key reads.
type kind int

const (
	words  kind = iota // one or more words, parted by commas
	word               // exactly one word
	closed             // one or more of a closed set
	one                // exactly one of a closed set
	when               // a date
	truth              // true or false
	text               // anything
	shape              // says how to show, not what
)

type key struct {
	kind kind
	set  []string // of closed and one
}

// priorities rise.
var priorities = []string{"none", "low", "normal", "high", "urgent"}

func truths() []string { return []string{"true", "false"} }

func flags() []string {
	return []string{"cycle", "too_deep", "inconsistent_project", "key_collision", "one_sided", "one_sided_final"}
}

// Statuses answers the closed set of statuses in the order that boards show them.
func Statuses() []string {
	return []string{"todo", "in_progress", "in_review", "done", "cancelled", "closed"}
}

// StatusGroups answers the closed set of groups in the order of an item's life.
func StatusGroups() []string { return []string{"not_started", "active", "done", "closed"} }

// Priorities answers the closed set of priorities, the most urgent first.
func Priorities() []string {
	falling := slices.Clone(priorities)
	slices.Reverse(falling)
	return falling
}

// keys are all that a query may say, but for `f.` and a field's slug.
func keys() map[string]key {
	return map[string]key{
		"q":                {kind: text},
		"key":              {kind: words},
		"status":           {kind: closed, set: Statuses()},
		"status_group":     {kind: closed, set: StatusGroups()},
		"priority":         {kind: closed, set: priorities},
		"type":             {kind: words},
		"tag":              {kind: words},
		"assignee":         {kind: words},
		"reporter":         {kind: words},
		"watcher":          {kind: words},
		"collaborator":     {kind: words},
		"unit":             {kind: words},
		"routing_unit":     {kind: words},
		"parent":           {kind: word},
		"root":             {kind: word},
		"due":              {kind: when},
		"start":            {kind: when},
		"updated":          {kind: when},
		"created":          {kind: when},
		"done":             {kind: when},
		"flag":             {kind: closed, set: flags()},
		"asked_of":         {kind: words},
		"asked_by":         {kind: words},
		"has_open_asks":    {kind: truth},
		"has_dependencies": {kind: truth},
		"blocked":          {kind: truth},
		"ready":            {kind: truth},
		"priorities":       {kind: word},
		"show_closed":      {kind: one},
		"container":        {kind: shape},
		"removed":          {kind: shape},
		"subtasks":         {kind: shape},
		"any":              {kind: shape},
		"sort":             {kind: shape},
		"group_by":         {kind: shape},
		"group":            {kind: shape},
		"group_limit":      {kind: shape},
		"totals":           {kind: shape},
		"limit":            {kind: shape},
	}
}

// keyOf answers how a key reads; false when there is no such key.
func keyOf(name string) (key, bool) {
	k, known := keys()[name]
	return k, known
}

// Canonical answers the key that one of list_work_items stands for.
func Canonical(key string) string {
	switch key {
	case "project":
		return "container"
	case "text":
		return "q"
	case "label":
		return "tag"
	case "open_only":
		return "status_group"
	default:
		return key
	}
}

// Keys answers every key, sorted, `f.<slug>` with them.
func Keys() []string {
	return append(slices.Sorted(maps.Keys(keys())), "f.<slug>")
}

// unknown refuses a word outside a closed set and names what is nearest and what there is.
func unknown(field, what, given string, set []string) error {
	hint := ""
	if near := nearest.Few(given, set, 1); len(near) > 0 {
		hint = ", did you mean " + near[0]
	}
	return invalid(field, "there is no %s %q%s; there are %s", what, given, hint, strings.Join(set, ", "))
}
