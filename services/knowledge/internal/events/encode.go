// Package events is the knowledge base's side of the bus: what it publishes, and the company that it follows.
package events

import (
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	knowledgev1 "github.com/bullpenhq/bullpen/gen/bullpen/knowledge/v1"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/knowledge/internal/convert"
	"github.com/bullpenhq/bullpen/services/knowledge/internal/store"
)

// Topic carries every fact about pages; the key is the page's id.
const Topic = "bullpen.knowledge.page.v1"

// Encode is the store's [store.Encoder].
func Encode(e store.Event) (outbox.Message, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return outbox.Message{}, err
	}
	payload, err := proto.Marshal(&knowledgev1.PageEvent{
		EventId:   id.String(),
		OccurTime: timestamppb.New(e.Page.UpdatedAt),
		Sequence:  e.Position.Sequence,
		Fact: &knowledgev1.PageEvent_PageCreated{PageCreated: &knowledgev1.PageCreated{
			Page: convert.Page(e.Page), Actor: e.By.Seat, Mentioned: e.Mentions,
		}},
	})
	return outbox.Message{Topic: Topic, Key: e.Page.ID.String(), EventID: id, Type: Topic, Payload: payload}, err
}
