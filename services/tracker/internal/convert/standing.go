package convert

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// Standing says of an item how it stands among the others.
func Standing(out *trackerv1.WorkItem, s item.Standing) {
	out.Blocked, out.Flags, out.DuplicateOf, out.SubtaskCount = s.Blocked(), s.Flags, s.DuplicateOf, s.Subtasks
	for _, w := range s.Waiting {
		out.WaitingOn = append(out.WaitingOn, &trackerv1.WaitingOn{Item: w.Key, Open: w.Open, OneSided: w.OneSided, OneSidedFinal: w.OneSidedFinal})
	}
}

// Link answers an edge, seen from the item that was read.
func Link(l store.Link) *trackerv1.Relation {
	return &trackerv1.Relation{
		Kind: l.Kind, To: l.To, Title: l.Title, Status: l.Status, Note: l.Note, Author: l.Author, CreateTime: timestamppb.New(l.CreatedAt),
	}
}
