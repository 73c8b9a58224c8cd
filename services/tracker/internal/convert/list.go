package convert

import (
	"time"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// Row answers an item as lists show it: without its description and what else only who opens it looks at, with how it stands among the others.
func Row(row store.Row, s item.Standing, now time.Time) *trackerv1.WorkItem {
	out := Item(row.Item, now)
	out.Body, out.BodyBytes = nil, row.BodyBytes
	out.Checklists, out.Muted, out.BodyVersion = nil, nil, 0
	out.Blocked, out.Flags, out.DuplicateOf, out.SubtaskCount = s.Blocked(), s.Flags, s.DuplicateOf, s.Subtasks
	for _, w := range s.Waiting {
		out.WaitingOn = append(out.WaitingOn, &trackerv1.WaitingOn{Item: w.Key, Open: w.Open, OneSided: w.OneSided, OneSidedFinal: w.OneSidedFinal})
	}
	return out
}

// Totals answers the numbers of a list.
func Totals(numbers []store.Number) []*trackerv1.Total {
	var out []*trackerv1.Total
	for _, n := range numbers {
		out = append(out, &trackerv1.Total{Name: n.Name, Value: n.Value})
	}
	return out
}
