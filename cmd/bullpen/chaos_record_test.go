package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"

	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/notification/v1/notificationv1connect"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/turn/v1/turnv1connect"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// record is an installation as an operator sees it.
type record struct {
	turns         turnv1connect.TurnServiceClient
	notifications notificationv1connect.NotificationServiceClient
	registry      toolregistryv1connect.ToolRegistryServiceClient
}

func newRecord(client func(service string) *connect.Client) *record {
	return &record{
		turns:         turnv1connect.NewTurnServiceClient(client("turn")),
		notifications: notificationv1connect.NewNotificationServiceClient(client("notification")),
		registry:      toolregistryv1connect.NewToolRegistryServiceClient(client("toolregistry")),
	}
}

// list answers every turn, newest first.
func (r *record) list(ctx context.Context) ([]*turnv1.Turn, error) {
	var all []*turnv1.Turn
	request := &turnv1.ListTurnsRequest{Limit: 200}
	for {
		response, err := r.turns.ListTurns(ctx, request)
		if err != nil {
			return nil, err
		}
		all = append(all, response.GetTurns()...)
		if request.Cursor = response.GetNextCursor(); request.GetCursor() == "" {
			return all, nil
		}
	}
}

// journals answers every turn with its journal.
func (r *record) journals(t *testing.T) []*turnv1.GetTurnResponse {
	t.Helper()
	listed, err := r.list(t.Context())
	require.NoError(t, err)
	var all []*turnv1.GetTurnResponse
	for _, turn := range listed {
		journal, err := r.turns.GetTurn(t.Context(), &turnv1.GetTurnRequest{TurnId: turn.GetTurnId()})
		require.NoError(t, err)
		all = append(all, journal)
	}
	return all
}

// ended adds the names of all questions, and the ids of all turns, that have ended since it was asked last. It says which turn
// runs, if one does.
func (r *record) ended(ctx context.Context, known map[string]bool) (running string, err error) {
	listed, err := r.list(ctx)
	if err != nil {
		return "", err
	}
	for _, turn := range listed {
		if turn.GetState() == "running" {
			running = "turn " + turn.GetTurnId() + " runs"
		}
		if turn.GetState() != "done" || known[turn.GetTurnId()] {
			continue
		}
		journal, err := r.turns.GetTurn(ctx, &turnv1.GetTurnRequest{TurnId: turn.GetTurnId()})
		if err != nil {
			return "", err
		}
		known[turn.GetTurnId()] = true
		for _, name := range namesOf(journal) {
			known[name] = true
		}
	}
	return running, nil
}

// busy says what is still under way, and nothing once all is quiet.
func (r *record) busy(ctx context.Context) (string, error) {
	for _, state := range []string{"ready", "held", "running"} {
		response, err := r.turns.ListMail(ctx, &turnv1.ListMailRequest{State: state, Limit: 200})
		if err != nil {
			return "", err
		}
		if n := len(response.GetMail()); n > 0 {
			return fmt.Sprintf("%d deliveries are %s, the first because %q", n, state, response.GetMail()[0].GetReason()), nil
		}
	}
	for _, state := range []string{"queued", "sending", "unknown"} {
		response, err := r.notifications.ListOutbound(ctx, &notificationv1.ListOutboundRequest{State: state, Limit: 200})
		if err != nil {
			return "", err
		}
		if n := len(response.GetMessages()); n > 0 {
			return fmt.Sprintf("%d answers are %s, the first because %q", n, state, response.GetMessages()[0].GetDetail()), nil
		}
	}
	return "", nil
}

// deadLetters answers the reasons of all dead letters.
func (r *record) deadLetters(t *testing.T) []string {
	t.Helper()
	reasons := []string{}
	events, err := r.turns.ListDeadLetters(t.Context(), &turnv1.ListDeadLettersRequest{})
	require.NoError(t, err)
	for _, d := range events.GetDeadLetters() {
		reasons = append(reasons, d.GetTopic()+": "+d.GetReason())
	}
	webhooks, err := r.notifications.ListDeadLetters(t.Context(), &notificationv1.ListDeadLettersRequest{})
	require.NoError(t, err)
	for _, d := range webhooks.GetDeadLetters() {
		reasons = append(reasons, d.GetTopic()+": "+d.GetReason())
	}
	return reasons
}

// call calls a tool as an operator and reads its result.
func (r *record) call(t *testing.T, tool string, args object, result any) {
	t.Helper()
	arguments, err := json.Marshal(args)
	require.NoError(t, err)
	ctx := rpc.As(t.Context(), &rpc.Principal{Kind: rpc.KindOperator, Id: "tests", DisplayName: "tests"})
	response, err := r.registry.CallTool(ctx, &toolregistryv1.CallToolRequest{Tool: tool, ArgumentsJson: string(arguments)})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(response.GetResultJson()), result))
}
