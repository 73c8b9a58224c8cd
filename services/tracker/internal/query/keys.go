package query

import (
	"maps"
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
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

var truths = []string{"true", "false"}

var (
	statuses = []string{"todo", "in_progress", "in_review", "done", "cancelled", "closed"}
	groups   = []string{"not_started", "active", "done", "closed"}
	flags    = []string{"cycle", "too_deep", "inconsistent_project", "key_collision", "one_sided", "one_sided_final"}
)

// Statuses answers the closed set of statuses in the order that boards show them.
func Statuses() []string { return slices.Clone(statuses) }

// StatusGroups answers the closed set of groups in the order of an item's life.
func StatusGroups() []string { return slices.Clone(groups) }

// keys are all that a query may say, but for `f.` and a field's slug.
var keys = map[string]key{
	"q":                {kind: text},
	"key":              {kind: words},
	"status":           {kind: closed, set: statuses},
	"status_group":     {kind: closed, set: groups},
	"priority":         {kind: closed, set: item.Priorities()},
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
	"flag":             {kind: closed, set: flags},
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

// aliases are what list_work_items calls some keys.
var aliases = map[string]string{"project": "container", "text": "q", "label": "tag", "open_only": "status_group"}

// Canonical answers the key that an alias stands for.
func Canonical(key string) string {
	if to, ok := aliases[key]; ok {
		return to
	}
	return key
}

// Keys answers every key, sorted, `f.<slug>` with them.
func Keys() []string {
	return append(slices.Sorted(maps.Keys(keys)), "f.<slug>")
}

// unknown refuses a word outside a closed set and names what is nearest and what there is.
func unknown(field, what, given string, set []string) error {
	hint := ""
	if near := nearest(given, set); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return invalid(field, "there is no %s %q%s It is one of %s", what, given, orDot(hint), strings.Join(set, ", "))
}

func orDot(hint string) string {
	if hint == "" {
		return "."
	}
	return hint
}

// nearest answers the member that a typo may have meant: at most a third of its letters away. Empty when none is that near.
func nearest(given string, set []string) string {
	given = strings.ToLower(given)
	best, distance := "", 1<<30
	for _, member := range set {
		if d := edits(given, member); d < distance {
			best, distance = member, d
		}
	}
	if distance > max(1, len(best)/3) {
		return ""
	}
	return best
}

// edits counts the letters to put in, take out, replace or swap. Long texts are no typos of anything.
func edits(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	before, last, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(last[j]+1, next[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, last, next = last, next, before
	}
	return last[len(b)]
}
