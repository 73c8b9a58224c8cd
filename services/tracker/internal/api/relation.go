package api

import (
	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// relationsOf is what an update changes in what the item is connected with.
func relationsOf(req *trackerv1.UpdateWorkItemRequest) (store.RelationUpdate, error) {
	u := store.RelationUpdate{DuplicateOf: req.DuplicateOf, Parent: req.Parent, Note: req.GetDependencyNote()}
	var err error
	for _, part := range []struct {
		argument string
		from     *trackerv1.SetChange
		to       **item.SetChange
	}{
		{"waiting_on", req.GetWaitingOn(), &u.WaitingOn},
		{"blocking", req.GetBlocking(), &u.Blocking},
		{"linked", req.GetLinked(), &u.Linked},
		{"linked_pages", req.GetLinkedPages(), &u.Pages},
	} {
		if *part.to, err = setChange(part.argument, part.from); err != nil {
			return u, err
		}
	}
	return u, nil
}
