package events

import (
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/services/tracker/internal/convert"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// workspaceKey is the key of events about no one project, so that they too keep their order.
const workspaceKey = "workspace"

// encodeProject is [Encode] for a change of a project alone.
func encodeProject(e store.Event) (outbox.Message, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return outbox.Message{}, err
	}
	changed := &trackerv1.ProjectChanged{Project: e.Project, Change: convert.Change(e.Entry())}
	if len(e.Concerns) > 0 {
		changed.Routing = bare(e)
	}
	payload, err := proto.Marshal(&trackerv1.ItemEvent{
		EventId:   id.String(),
		OccurTime: timestamppb.New(e.Change.At),
		Sequence:  e.Position.Sequence,
		Fact:      &trackerv1.ItemEvent_ProjectChanged{ProjectChanged: changed},
	})
	key := e.Project
	if key == "" {
		key = workspaceKey
	}
	return outbox.Message{Topic: Topic, Key: key, EventID: id, Type: Topic, Payload: payload}, err
}
