package imports

import (
	"bufio"
	"fmt"
	"iter"
	"strings"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
)

// readLinear reads Linear's CSV export of a workspace or a team.
func readLinear(r *bufio.Reader, o Options) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for w, err := range o.rows(r, "ID", "Title", "Status") {
			if err != nil {
				yield(Record{}, err)
				return
			}
			if !yield(linearRow(w, o), nil) {
				return
			}
		}
	}
}

func linearRow(w row, o Options) Record {
	r := Record{Place: fmt.Sprintf("row %d", w.number)}
	id := w.get("ID")
	if id == "" {
		r.Problem = "it has no ID, so it could not be told from others"
		return r
	}
	r.Place += " (" + id + ")"
	r.Item = &trackerv1.ImportedItem{
		ExternalId: id, Title: w.get("Title"), Body: w.get("Description"), Type: "task", Reporter: w.get("Creator"), Parent: w.get("Parent issue"),
		Points: points(w.get("Estimate")), Url: w.get("URL"),
	}
	i := r.Item
	switch {
	case w.get("Canceled") != "":
		i.Status = "cancelled"
	case w.get("Completed") != "":
		i.Status = "done"
	default:
		i.Status = o.status(&r, w.get("Status"), w.get("Status Type"), "")
	}
	if to, ok := o.Statuses[strings.ToLower(w.get("Status"))]; ok {
		i.Status = to
	}
	i.Priority = o.priority(&r, w.get("Priority"))
	i.CreateTime, i.UpdateTime = o.when(&r, "Created", w.get("Created")), o.when(&r, "Updated", w.get("Updated"))
	i.DoneTime = o.when(&r, "Completed", or(w.get("Completed"), w.get("Canceled")))
	i.Due = o.day(&r, "Due Date", w.get("Due Date"))
	for label := range strings.SplitSeq(w.get("Labels"), ",") {
		if label = strings.TrimSpace(label); label != "" {
			i.Labels = append(i.Labels, label)
			if to, ok := o.Types[strings.ToLower(label)]; ok {
				i.Type = to
			} else if strings.EqualFold(label, "bug") {
				i.Type = "bug"
			}
		}
	}
	for blocker := range strings.SplitSeq(w.get("Blocked by"), ",") {
		if blocker = strings.TrimSpace(blocker); blocker != "" {
			i.WaitingOn = append(i.WaitingOn, blocker)
		}
	}
	facts := append(r.assign(o, githubUser{Login: w.get("Assignee")}), w.rest(inLinear)...)
	r.fit(facts)
	return r
}

// inLinear reports whether a column of Linear is read, or says nothing of an item that anybody would miss.
func inLinear(name string) bool {
	switch name {
	case "id", "uuid", "title", "description", "status", "status type", "estimate", "priority", "creator", "assignee", "labels",
		"cycle number", "cycle start", "cycle end", "created", "updated", "started", "triaged", "completed", "canceled", "due date",
		"parent issue", "blocked by", "url", "project id", "project milestone id":
		return true
	}
	return false
}
