// Package convert turns the tracker's values into those of its contract, for answers and events alike.
package convert

import (
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// Item answers an item, its body included, as it is at a moment of the company's clock.
func Item(i *item.Item, now time.Time) *trackerv1.WorkItem {
	out := &trackerv1.WorkItem{
		Id:              i.ID.String(),
		Key:             i.Key(),
		FormerKeys:      i.FormerKeys,
		Project:         i.Project,
		Type:            i.Type,
		Title:           i.Title,
		Body:            &i.Body,
		Status:          i.Status,
		StatusGroup:     item.GroupOf(i.Status).String(),
		Priority:        i.Priority,
		Reporter:        i.Reporter,
		Assignee:        i.Assignee,
		Due:             i.Due.String(),
		Overdue:         i.Overdue(now),
		EstimateMinutes: i.EstimateMinutes,
		Watchers:        i.Watchers,
		Reassignments:   i.Reassignments,
		Version:         i.Version,
		CreateTime:      timestamppb.New(i.CreatedAt),
		UpdateTime:      timestamppb.New(i.UpdatedAt),
		DoneTime:        moment(i.DoneAt),
	}
	if i.Parent != nil {
		out.Parent = i.Parent.String()
	}
	out.Start, out.Points, out.Labels, out.Collaborators, out.Muted = i.Start.String(), i.Points, i.Labels, i.Collaborators, i.Muted
	out.FiledUnit, out.RoutingUnit, out.Rank, out.Depth = i.FiledUnit, i.RoutingUnit, i.Rank, int32(i.Depth)
	out.StatusTime, out.CloseTime, out.Reopens, out.OpenAsks = timestamppb.New(i.StatusEnteredAt), moment(i.ClosedAt), i.Reopens, i.OpenAsks
	out.BodyBytes, out.BodyVersion = int32(len(i.Body)), i.BodyVersion
	if i.Claim.Live(now) {
		out.Claim = &trackerv1.Claim{Holder: i.Claim.Holder, ExpireTime: timestamppb.New(i.Claim.Until)}
	}
	if i.Removal != nil {
		out.Removal = &trackerv1.Removal{Actor: i.Removal.By, ActorKind: i.Removal.Kind, RemoveTime: timestamppb.New(i.Removal.At)}
	}
	for _, c := range i.Checklists {
		steps := make([]*trackerv1.ChecklistItem, 0, len(c.Items))
		for _, step := range c.Items {
			steps = append(steps, &trackerv1.ChecklistItem{Id: step.ID, Name: step.Name, Done: step.Done, Assignee: step.Assignee})
		}
		out.Checklists = append(out.Checklists, &trackerv1.Checklist{Id: c.ID, Name: c.Name, Items: steps})
	}
	return out
}

// Comment answers a remark with as much of its body as it holds.
func Comment(c *store.Comment) *trackerv1.Comment {
	out := &trackerv1.Comment{
		Id:         c.ID.String(),
		Author:     c.Author.Name,
		AuthorKind: c.Author.Kind,
		Body:       c.Body,
		BodyBytes:  max(c.Bytes, int32(len(c.Body))),
		Mentions:   c.Mentions,
		CreateTime: timestamppb.New(c.CreatedAt),
		Ask:        Ask(c.Ask),
		Choice:     c.Choice,
	}
	if c.ReplyTo != nil {
		out.ReplyTo = c.ReplyTo.String()
	}
	if c.Answers != nil {
		out.Answers = c.Answers.String()
	}
	return out
}

// Change answers a row of history.
func Change(e store.Entry) *trackerv1.Change {
	c := e.Change
	fields := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for name, f := range c.Fields {
		fields.Fields[name] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			"from": structpb.NewStringValue(f.From),
			"to":   structpb.NewStringValue(f.To),
		}})
	}
	out := &trackerv1.Change{
		Position:   e.Position.String(),
		Kind:       c.Kind,
		Actor:      c.By.Name,
		ActorKind:  c.By.Kind,
		Fields:     fields,
		TurnId:     c.By.Turn,
		Version:    c.Version,
		ChangeTime: timestamppb.New(c.At),
		Project:    e.Project,
		Notified:   e.Notified,
		Excerpt:    e.Excerpt,
	}
	if e.ItemID != nil {
		out.ItemId = e.ItemID.String()
	}
	out.Reassignments = c.Reassignments
	if e.CommentID != nil {
		out.CommentId = e.CommentID.String()
	}
	return out
}

func moment(t *time.Time) *timestamppb.Timestamp {
	if t == nil {
		return nil
	}
	return timestamppb.New(*t)
}
