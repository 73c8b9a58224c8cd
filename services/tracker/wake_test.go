package tracker_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
)

// heard is whom an event concerns, as `handle reason`, with a mark on those who owe something.
func heard(e *trackerv1.ItemEvent) []string {
	routing := e.GetItemCreated().GetRouting()
	if routing == nil {
		routing = e.GetItemUpdated().GetRouting()
	}
	if routing == nil {
		routing = e.GetItemCommented().GetRouting()
	}
	list := []string{}
	for _, c := range routing.GetConcerns() {
		line := c.GetHandle() + " " + c.GetReason()
		if c.GetAddressed() {
			line += "!"
		}
		list = append(list, line)
	}
	return list
}

// Each write takes whom it concerns with it, as it is in that moment: what the pure rule says of it is what leaves.
func TestEveryWriteNamesWhomItConcerns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	subscription, err := b.bus.Subscribe("bullpen.tracker.item.v1", "heard")
	require.NoError(t, err)
	defer subscription.Close()
	ines, designer := member(t.Context(), "ines"), seat(t.Context(), "designer")
	var question string
	update := func(ctx context.Context, req *trackerv1.UpdateWorkItemRequest) error {
		req.Item = "OPS-1"
		_, err := b.client.UpdateWorkItem(ctx, req)
		return err
	}
	for _, step := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"a person files it for an agent and names the lead", func() error {
			_, err := b.client.CreateWorkItem(ines, &trackerv1.CreateWorkItemRequest{
				Title: "Renew", Project: "OPS", Assignee: "designer", Body: "Ask @ops-lead.",
			})
			return err
		}, []string{"ops-lead mention!", "designer assignee!", "ines watcher", "designer watcher", "ops-lead lead_fallback"}},
		{"it is begun", func() error {
			return update(designer, &trackerv1.UpdateWorkItemRequest{Status: proto.String("in_progress")})
		}, []string{"designer assignee", "ines watcher", "designer watcher", "ops-lead lead_fallback"}},
		{"the description names the lead again", func() error {
			return update(designer, &trackerv1.UpdateWorkItemRequest{Body: proto.String("Ask @ops-lead, soon."), IfMatch: proto.Int32(2)})
		}, []string{"designer assignee", "ines watcher", "designer watcher"}},
		{"the person asks the agent", func() error {
			res, err := b.client.CommentOnWorkItem(ines, &trackerv1.CommentOnWorkItemRequest{Item: "OPS-1", Body: "When?", Ask: "designer"})
			question = res.GetCommentId()
			return err
		}, []string{"designer asked!", "designer assignee!", "ines reporter", "ines watcher", "designer watcher", "ops-lead lead_fallback"}},
		{"the agent answers", func() error {
			_, err := b.client.CommentOnWorkItem(designer, &trackerv1.CommentOnWorkItemRequest{Item: "OPS-1", Body: "Today.", Answers: question})
			return err
		}, []string{"ines answered", "designer assignee", "ines reporter", "ines thread", "ines watcher", "designer watcher", "ops-lead lead_fallback"}},
		{"it is handed to the lead", func() error {
			return update(designer, &trackerv1.UpdateWorkItemRequest{Assignee: proto.String("ops-lead")})
		}, []string{"ops-lead assignee!", "designer unassigned", "ines reporter", "ines watcher", "designer watcher", "ops-lead watcher"}},
		{"it is finished", func() error {
			return update(designer, &trackerv1.UpdateWorkItemRequest{Status: proto.String("done")})
		}, []string{"ops-lead assignee!", "ines reporter", "ines watcher", "designer watcher", "ops-lead watcher", "ops-lead lead_fallback"}},
	} {
		require.NoError(t, step.do(), step.name)
		messages, err := subscription.Fetch(t.Context(), 1)
		require.NoError(t, err)
		event := &trackerv1.ItemEvent{}
		require.NoError(t, proto.Unmarshal(messages[0].Value, event))
		require.Equal(t, step.want, heard(event), step.name)
	}
}
