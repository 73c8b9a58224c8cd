package events

import (
	"maps"
	"slices"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/notification/internal/work"
)

// told is a fact of the tracker, whichever it is.
type told struct {
	item    *trackerv1.WorkItem // nil when it is about no one item
	row     *trackerv1.Change
	comment *trackerv1.Comment // nil when nothing was said
	routing *trackerv1.RoutingSnapshot
}

// factOf answers false for a fact that is nobody's to hear: one that this build does not know, or a change of a project that concerns
// nobody.
func factOf(event *trackerv1.ItemEvent) (told, bool) {
	switch fact := event.GetFact().(type) {
	case *trackerv1.ItemEvent_ItemCreated:
		f := fact.ItemCreated
		return told{item: f.GetItem(), row: f.GetChange(), routing: f.GetRouting()}, true
	case *trackerv1.ItemEvent_ItemUpdated:
		f := fact.ItemUpdated
		return told{item: f.GetItem(), row: f.GetChange(), routing: f.GetRouting()}, true
	case *trackerv1.ItemEvent_ItemCommented:
		f := fact.ItemCommented
		return told{item: f.GetItem(), row: f.GetChange(), comment: f.GetComment(), routing: f.GetRouting()}, true
	case *trackerv1.ItemEvent_ItemPurged:
		f := fact.ItemPurged
		return told{item: &trackerv1.WorkItem{Id: f.GetItemId(), Key: f.GetKey()}, row: f.GetChange(), routing: f.GetRouting()}, true
	case *trackerv1.ItemEvent_ProjectChanged:
		f := fact.ProjectChanged
		return told{row: f.GetChange(), routing: f.GetRouting()}, len(f.GetRouting().GetConcerns()) > 0
	default:
		return told{}, false
	}
}

// readChange reads an event of the tracker; nil without an error is nobody's to hear.
func readChange(payload []byte) (*work.Change, error) {
	event := &trackerv1.ItemEvent{}
	if err := proto.Unmarshal(payload, event); err != nil {
		return nil, fault.New(fault.Invalid, "The message is no event of a work item.").WithCause(err)
	}
	fact, ok := factOf(event)
	if !ok {
		return nil, nil
	}
	at, err := ops.ParsePosition(fact.row.GetPosition())
	if err != nil {
		return nil, err
	}
	c := &work.Change{
		Position: at.String(), Epoch: at.Epoch, Sequence: at.Sequence, Kind: fact.row.GetKind(),
		Actor: fact.routing.GetActor(), ActorKind: fact.row.GetActorKind(), Fields: fieldsOf(fact.row.GetFields()),
		Reason: fact.routing.GetReason(), Comment: commentOf(fact.comment), Excerpt: fact.row.GetExcerpt(),
		At: event.GetOccurTime().AsTime(), Muted: fact.routing.GetMuted(),
	}
	if c.Actor == "" {
		c.Token = fact.row.GetActor()
	}
	if fact.item != nil {
		if c.Item, err = itemOf(fact.item.GetId(), fact.item.GetKey(), fact.item.GetTitle()); err != nil {
			return nil, err
		}
		c.Item.Status, c.Item.Assignee, c.Item.Priority = fact.item.GetStatus(), fact.item.GetAssignee(), fact.item.GetPriority()
	}
	for _, concern := range fact.routing.GetConcerns() {
		one := work.Concern{
			Handle: concern.GetHandle(), Reason: concern.GetReason(), Addressed: concern.GetAddressed(),
			OwesSurface: concern.GetOwesSurface(), OwesChannel: concern.GetOwesChannel(),
		}
		if concern.GetAboutId() != "" {
			about, err := itemOf(concern.GetAboutId(), concern.GetAboutKey(), concern.GetAboutTitle())
			if err != nil {
				return nil, err
			}
			one.About = &about
		}
		c.Concerns = append(c.Concerns, one)
	}
	return c, nil
}

func itemOf(id, key, title string) (work.Item, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return work.Item{}, fault.New(fault.Invalid, "The work item's id %.80q is no UUID.", id)
	}
	return work.Item{ID: parsed, Key: key, Title: title}, nil
}

func commentOf(c *trackerv1.Comment) *work.Comment {
	if c == nil {
		return nil
	}
	decision := c.GetAsk().GetDecision()
	said := &work.Comment{
		ID: c.GetId(), Body: c.GetBody(), Asked: c.GetAsk().GetAsked(), Question: decision.GetQuestion(), Recommended: decision.GetRecommended(),
		Answers: c.GetAnswers(), Choice: c.GetChoice(),
	}
	for _, o := range decision.GetOptions() {
		said.Options = append(said.Options, work.Option{ID: o.GetId(), Label: o.GetLabel(), Detail: o.GetDetail()})
	}
	return said
}

// fieldsOf answers what changed in the order of the names.
func fieldsOf(changed *structpb.Struct) []work.Field {
	var fields []work.Field
	for _, name := range slices.Sorted(maps.Keys(changed.GetFields())) {
		sides := changed.GetFields()[name].GetStructValue().GetFields()
		fields = append(fields, work.Field{Name: name, From: sides["from"].GetStringValue(), To: sides["to"].GetStringValue()})
	}
	return fields
}
