package imports

import (
	"bufio"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
)

// jiraFile is what an export of Jira's issue navigator says of itself. It is held whole: a part names its whole by a number, and a
// remark its author by an account, that other rows give a name to, and the newest row comes first.
type jiraFile struct {
	rows []row
	// keys are by Jira's number, people by account.
	keys, people map[string]string
}

// readJiraCSV reads an export of Jira's issue navigator. Columns repeat: one for each label, comment and link.
func readJiraCSV(r *bufio.Reader, o Options) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		file := jiraFile{keys: map[string]string{}, people: map[string]string{}}
		for w, err := range o.rows(r, "Summary", "Issue key") {
			if err != nil {
				yield(Record{}, err)
				return
			}
			file.rows = append(file.rows, w)
			file.learn(w)
		}
		for _, w := range file.rows {
			if !yield(file.record(w, o), nil) {
				return
			}
		}
	}
}

// learn keeps which key a number has, and whose accounts are whose.
func (f jiraFile) learn(w row) {
	f.keys[w.get("Issue id")] = w.get("Issue key")
	for _, role := range []string{"Project lead", "Assignee", "Reporter", "Creator", "Watchers"} {
		names, accounts := w.all(role), w.all(role+" Id")
		for n := range min(len(names), len(accounts)) {
			f.people[accounts[n]] = names[n]
		}
	}
	delete(f.keys, "")
}

func (f jiraFile) record(w row, o Options) Record {
	r := Record{Place: fmt.Sprintf("row %d", w.number)}
	key := w.get("Issue key")
	if key == "" {
		r.Problem = "it has no Issue key, so it could not be told from others"
		return r
	}
	r.Place += " (" + key + ")"
	if !w.inUTF8() {
		r.warn("some of its text is not UTF-8 and cannot be read: save the file as UTF-8")
	}
	r.Item = &trackerv1.ImportedItem{
		ExternalId: key, Title: w.get("Summary"), Body: f.prose(w.get("Description")), Labels: w.all("Labels"), Reporter: w.get("Reporter", "Creator"),
		Due:    o.day(&r, "Due date", w.get("Due date")),
		Points: points(w.get("Custom field (Story Points)", "Custom field (Story point estimate)", "Story Points")),
	}
	i := r.Item
	i.Type = o.kind(&r, w.get("Issue Type"))
	i.Status = o.status(&r, w.get("Status"), w.get("Status Category"), w.get("Resolution"))
	i.Priority = o.priority(&r, w.get("Priority"))
	i.CreateTime, i.UpdateTime = o.when(&r, "Created", w.get("Created")), o.when(&r, "Updated", w.get("Updated"))
	i.DoneTime = o.when(&r, "Resolved", w.get("Resolved"))
	i.EstimateMinutes = minutes(w.get("Original Estimate"))
	i.WaitingOn = append(w.all("Inward issue link (Blocks)"), w.all("Inward issue link (Blocker)")...)
	facts := r.assignJira(o, jiraPerson{Name: w.get("Assignee"), Account: w.get("Assignee Id")})
	i.Parent = f.parent(w)
	if stranger := w.get("Parent", "Parent id"); i.GetParent() == "" && stranger != "" {
		facts = append(facts, fact{"Parent", stranger + " " + w.get("Parent summary")})
	}
	for _, text := range w.all("Comment") {
		i.Comments = append(i.Comments, f.comment(o, &r, text))
	}
	for _, attached := range w.all("Attachment") {
		facts = append(facts, fact{"Attachment", attachment(attached)})
	}
	if len(w.all("Log Work")) > 0 {
		r.warn("its log of work is not imported")
	}
	for _, other := range w.rest(inJira) {
		if strings.Contains(other.value, "\n") {
			other.value = f.prose(other.value)
		}
		facts = append(facts, other)
	}
	r.fit(facts)
	return r
}

// prose turns a text into Markdown, with people by name.
func (f jiraFile) prose(text string) string {
	return wiki(account.ReplaceAllStringFunc(text, func(mention string) string {
		if name, ok := f.people[account.FindStringSubmatch(mention)[1]]; ok {
			return "@" + name
		}
		return mention
	}))
}

// parent answers the key of what an item is part of: the parent's own, the parent's by number, or the epic's.
func (f jiraFile) parent(w row) string {
	for _, name := range []string{"Parent key", "Parent", "Parent id", "Custom field (Epic Link)", "Epic Link", "Custom field (Parent Link)"} {
		parent := w.get(name)
		if key, ok := f.keys[parent]; ok {
			return key
		}
		if strings.Contains(parent, "-") {
			return parent
		}
	}
	return ""
}

// comment reads `time;author;text`.
func (f jiraFile) comment(o Options, r *Record, text string) *trackerv1.ImportedComment {
	at, rest, found := strings.Cut(text, ";")
	author, body, also := strings.Cut(rest, ";")
	if _, ok := o.parse(at); !found || !also || !ok {
		return &trackerv1.ImportedComment{Body: f.prose(text)}
	}
	return &trackerv1.ImportedComment{Author: or(f.people[author], author), Body: f.prose(body), CreateTime: o.when(r, "a comment's time", at)}
}

// attachment reads `time;account;name;address`.
func attachment(text string) string {
	if parts := strings.SplitN(text, ";", 4); len(parts) == 4 {
		return parts[2] + " " + parts[3]
	}
	return text
}

// inJira reports whether a column of Jira is read, or says nothing of an item that anybody would miss.
func inJira(name string) bool {
	switch name {
	case "summary", "issue key", "issue id", "parent", "parent id", "parent key", "parent summary", "issue type", "status", "status category",
		"status category changed", "project key", "project name", "project type", "project lead", "project description", "project url",
		"priority", "assignee", "reporter", "creator", "created", "updated", "last viewed", "resolved", "due date", "votes", "labels",
		"description", "watchers", "log work", "original estimate", "remaining estimate", "time spent", "work ratio", "comment", "attachment",
		"inward issue link (blocks)", "inward issue link (blocker)", "story points", "custom field (story points)",
		"custom field (story point estimate)", "epic link", "custom field (epic link)", "custom field (parent link)", "custom field (rank)",
		"custom field (development)", "custom field (epic color)", "custom field (epic colour)", "custom field (epic status)":
		return true
	}
	return strings.HasPrefix(name, "σ") || strings.HasSuffix(name, " id") || strings.HasSuffix(name, ")id")
}

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
