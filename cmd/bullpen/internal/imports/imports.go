// Package imports reads what other trackers export and turns it into items of ours.
//
// It is pure but for the reader it is given: a file goes in, one record after another comes out, each with what had to be said of it.
// The idea to hold: nothing is dropped in silence. What has no place in an item of ours is written under its description, a text that is
// too long goes on in the thread, and what cannot be taken at all is a problem that names the record.
package imports

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"
	"time"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
)

// Record is one item of a file.
type Record struct {
	// Item is nil when the record cannot be read; Problem says why.
	Item *trackerv1.ImportedItem
	// Place names the record for a person: `row 12`, `issue 34`.
	Place string
	// Problem is why it is refused; empty when it is not.
	Problem string
	// Warnings say what was changed or could not be understood.
	Warnings []string
}

// Options say how a file is to be understood. All maps are by what the file says, in any case.
type Options struct {
	// Users maps who is who to handles; whoever is not in it is kept as text.
	Users map[string]string
	// Statuses, Types and Priorities map to ours.
	Statuses, Types, Priorities map[string]string
	// Columns map the names of a CSV's columns to those that the tracker gives them in English.
	Columns map[string]string
	// Zone is the clock of times that name none; nil means UTC.
	Zone *time.Location
	// DayFirst reads 3/4/25 as the third of April.
	DayFirst bool

	words vocabulary
}

// Kinds are the trackers whose exports are understood.
func Kinds() []string { return []string{"github", "jira", "linear"} }

// Read answers the records of an export of a kind, in the order of the file. A file that cannot be read any further ends the sequence
// with an error.
func Read(kind string, r io.Reader, o Options) iter.Seq2[Record, error] {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	o.words = newVocabulary()
	o.Users, o.Columns = lower(o.Users), lower(o.Columns)
	o.Statuses, o.Types, o.Priorities = lower(o.Statuses), lower(o.Types), lower(o.Priorities)
	buffered := decoded(r)
	switch kind {
	case "github":
		return readGitHub(buffered, o)
	case "jira":
		if isJSON(buffered) {
			return readJiraJSON(buffered, o)
		}
		return readJiraCSV(buffered, o)
	case "linear":
		return readLinear(buffered, o)
	default:
		return func(yield func(Record, error) bool) {
			yield(Record{}, fmt.Errorf("nothing is known of exports of %q; there are %s", kind, strings.Join(Kinds(), ", ")))
		}
	}
}

// isJSON looks at the first byte that is no space.
func isJSON(r *bufio.Reader) bool {
	for n := 1; n <= 512; n++ {
		head, err := r.Peek(n)
		if err != nil {
			return false
		}
		switch c := head[n-1]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == '{' || c == '['
		}
	}
	return false
}

func lower(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for from, to := range m {
		out[strings.ToLower(strings.TrimSpace(from))] = to
	}
	return out
}

// person answers the handle of somebody, and whether there is one.
func (o Options) person(name string) (string, bool) {
	handle, ok := o.Users[strings.ToLower(strings.TrimSpace(name))]
	return handle, ok
}

// ranked is what stands before the name of a priority in many trackers.
var ranked = regexp.MustCompile(`^(p|prio|priority|sev)?\s*\d+\s*[-–:.)]+\s*`)

// status answers ours for theirs. resolution tells what was done from what was given up; category, in Jira's words, helps where the
// name says nothing.
func (o Options) status(r *Record, name, category, resolution string) string {
	key := strings.ToLower(strings.TrimSpace(name))
	if to, ok := o.Statuses[key]; ok {
		return to
	}
	to, ok := o.words.statuses[key]
	if !ok {
		switch strings.ToLower(strings.TrimSpace(category)) {
		case "done":
			to = "done"
		case "indeterminate", "in progress":
			to = "in_progress"
		case "new", "to do":
			to = "todo"
		default:
			to = "todo"
			r.warn("status %q is not known here and became todo; --status '%s=…' says otherwise", name, name)
		}
	}
	if (to == "done" || to == "closed") && slices.Contains(o.words.abandoned, strings.ToLower(resolution)) {
		return "cancelled"
	}
	return to
}

// priority answers ours for theirs, with or without a rank before it: `P2-High` is high.
func (o Options) priority(r *Record, name string) string {
	key := strings.ToLower(strings.TrimSpace(name))
	if to, ok := o.Priorities[key]; ok {
		return to
	}
	to, ok := o.words.priorities[key]
	if !ok {
		to, ok = o.words.priorities[ranked.ReplaceAllString(key, "")]
	}
	if !ok {
		r.warn("priority %q is not known here and became none; --priority '%s=…' says otherwise", name, name)
		return "none"
	}
	return to
}

// kind answers our type for theirs; one that is not known is kept as a label.
func (o Options) kind(r *Record, name string) string {
	key := strings.ToLower(strings.TrimSpace(name))
	if to, ok := o.Types[key]; ok {
		return to
	}
	if to, ok := o.words.types[key]; ok {
		return to
	}
	r.warn("type %q is not known here: the item is a task with that label; --type '%s=…' says otherwise", name, name)
	r.Item.Labels = append(r.Item.Labels, name)
	return "task"
}

func (r *Record) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}
