package imports

import (
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
)

// readJiraCSV reads an export of Jira's issue navigator. Columns repeat: one for each label, comment and link. A subtask names its parent
// by number, so keys are learned on the way: a parent that comes later is named by its number, which the second name of its item.
func readJiraCSV(r io.Reader, o Options) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		keys := map[string]string{} // by Jira's number
		for w, err := range rows(r, "Summary", "Issue key") {
			if err != nil {
				yield(Record{}, err)
				return
			}
			keys[w.get("Issue id")] = w.get("Issue key")
			if !yield(jiraRow(w, o, keys), nil) {
				return
			}
		}
	}
}

func jiraRow(w row, o Options, keys map[string]string) Record {
	r := Record{Place: fmt.Sprintf("row %d", w.number)}
	key := w.get("Issue key")
	if key == "" {
		r.Problem = "it has no Issue key, so it could not be told from others"
		return r
	}
	r.Place += " (" + key + ")"
	r.Item = &trackerv1.ImportedItem{
		ExternalId: key, Title: w.get("Summary"), Body: wiki(w.get("Description")), Labels: w.all("Labels"), Reporter: w.get("Reporter", "Creator"),
		Due:    o.dayOf(&r, "Due date", w.get("Due date", "Due Date")),
		Points: points(w.get("Custom field (Story Points)", "Custom field (Story point estimate)", "Story Points")),
	}
	i := r.Item
	i.Type = o.kind(&r, w.get("Issue Type"))
	i.Status = o.status(&r, w.get("Status"), w.get("Status Category"), w.get("Resolution"))
	i.Priority = o.priority(&r, w.get("Priority"))
	i.CreateTime, i.UpdateTime = o.when(&r, "Created", w.get("Created")), o.when(&r, "Updated", w.get("Updated"))
	i.DoneTime = o.when(&r, "Resolved", w.get("Resolved"))
	i.EstimateMinutes = minutes(w.get("Original Estimate", "Original estimate"))
	i.Parent = parentKey(w, keys)
	for name := range w.columns {
		if inward := strings.TrimSuffix(strings.TrimPrefix(name, "inward issue link ("), ")"); inward != name && blocks(inward) {
			i.WaitingOn = append(i.WaitingOn, w.all(name)...)
		}
	}
	for _, text := range w.all("Comment") {
		i.Comments = append(i.Comments, jiraComment(o, &r, text))
	}
	facts := r.assign(o, githubUser{Login: w.get("Assignee")})
	for _, name := range []string{"Component/s", "Components", "Fix Version/s", "Fix versions", "Affects Version/s", "Affects versions", "Sprint", "Environment", "Resolution"} {
		if values := w.all(name); len(values) > 0 {
			facts = append(facts, fact{name, strings.Join(values, ", ")})
		}
	}
	r.fit(facts)
	return r
}

// parentKey answers the key of what an item is part of: the parent's own, the parent's by number, or the epic's.
func parentKey(w row, keys map[string]string) string {
	for _, name := range []string{"Parent key", "Parent", "Parent id", "Custom field (Epic Link)", "Epic Link"} {
		parent := w.get(name)
		if parent == "" {
			continue
		}
		if key, ok := keys[parent]; ok {
			return key
		}
		if strings.Contains(parent, "-") {
			return parent
		}
	}
	return ""
}

// blocks reports whether a kind of link means that the one on this side waits.
func blocks(kind string) bool {
	switch strings.ToLower(kind) {
	case "blocks", "blocker", "is blocked by", "depends", "depends on", "dependency", "required":
		return true
	}
	return false
}

// jiraComment reads `time;author;text`.
func jiraComment(o Options, r *Record, text string) *trackerv1.ImportedComment {
	at, rest, found := strings.Cut(text, ";")
	author, body, also := strings.Cut(rest, ";")
	if _, ok := o.parse(at); !found || !also || !ok {
		return &trackerv1.ImportedComment{Body: wiki(text)}
	}
	return &trackerv1.ImportedComment{Author: author, Body: wiki(body), CreateTime: o.when(r, "a comment's time", at)}
}

// dayOf is day, for a field that may hold a time as well.
func (o Options) dayOf(r *Record, what, text string) string { return o.day(r, what, text) }

// minutes reads an estimate in seconds.
func minutes(text string) *int32 {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || seconds < 60 || seconds > 525600*60 {
		return nil
	}
	whole := int32(math.Round(seconds / 60))
	return &whole
}

func points(text string) *float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 0 || n > 1000000 || math.IsNaN(n) {
		return nil
	}
	return &n
}
