// Package events says what this service announces, and encodes it.
package events

import (
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/company/internal/revision"
)

const (
	// TopicName is where activations are announced, and the CloudEvents type of each.
	TopicName = "bullpen.company.revision.v1"
	// key is the same for all, so that the compacted topic keeps the last one and all arrive in order.
	key = "active"
)

// Topic is the one topic of this service.
func Topic() bus.Topic { return bus.Topic{Name: TopicName, Partitions: 1, Compacted: true} }

// Activated encodes that a revision became the active one. Its sequence is the epoch.
func Activated(r revision.Revision) (outbox.Message, error) {
	id := uuid.Must(uuid.NewV7())
	payload, err := proto.Marshal(&companyv1.RevisionEvent{
		EventId: id.String(), OccurTime: timestamppb.New(r.ActivatedAt), Sequence: int64(r.Epoch),
		Fact: &companyv1.RevisionEvent_RevisionActivated{RevisionActivated: &companyv1.RevisionActivated{
			RevisionId: r.ID.String(), Epoch: r.Epoch,
		}},
	})
	return outbox.Message{Topic: TopicName, Key: key, EventID: id, Type: TopicName, Payload: payload}, err
}
