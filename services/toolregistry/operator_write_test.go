package toolregistry_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// writes records under which operation, and by whom, items were created.
type writes struct {
	mu         sync.Mutex
	operations []string
	by         []string
}

// onto makes the tracker record its writes.
func (w *writes) onto(n *neighbours) {
	n.create = func(ctx context.Context, _ *trackerv1.CreateWorkItemRequest) (*trackerv1.CreateWorkItemResponse, error) {
		from, _ := rpc.PrincipalFrom(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.operations = append(w.operations, rpc.OperationID(ctx))
		w.by = append(w.by, from.GetKind()+":"+from.GetId())
		return &trackerv1.CreateWorkItemResponse{Key: "OPS-1", Outcome: "applied", Position: "tracker@1:7", Version: 1}, nil
	}
}

// opIDOf reads the op_id of an answer.
func opIDOf(t *testing.T, answer mcpReply) string {
	t.Helper()
	require.Nil(t, answer.Error)
	var said struct {
		StructuredContent struct {
			OpID string `json:"op_id"`
		}
		Content []struct{ Text string }
	}
	require.NoError(t, json.Unmarshal(answer.Result, &said))
	if said.StructuredContent.OpID != "" {
		require.Contains(t, said.Content[0].Text, said.StructuredContent.OpID, "a model reads it too")
	}
	return said.StructuredContent.OpID
}

func TestAnOpIDFinishesTheCallThatAnsweredItAndNoOther(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	made := &writes{}
	made.onto(w.neighbours)
	c := w.modern(t)
	first := opIDOf(t, c.call("tools/call", `{"name":"create_work_item","arguments":{"title":"x","body":"y"}}`))
	require.NotEmpty(t, first)
	again := opIDOf(t, c.call("tools/call", `{"name":"create_work_item","arguments":{"body":"y","op_id":"`+first+`","title":"x"}}`))
	require.Equal(t, first, again)
	other := opIDOf(t, c.call("tools/call", `{"name":"create_work_item","arguments":{"title":"x","body":"y"}}`))
	require.Equal(t, []string{first, first, other}, made.operations)
	require.NotEqual(t, first, other, "without it a call is a new one")
	require.Equal(t, []string{"operator:token-1", "operator:token-1", "operator:token-1"}, made.by, "written in the token's name")

	for name, body := range map[string]string{
		"another argument": `{"name":"create_work_item","arguments":{"title":"z","body":"y","op_id":"` + first + `"}}`,
		"another tool":     `{"name":"comment_on_work_item","arguments":{"item":"OPS-1","body":"y","op_id":"` + first + `"}}`,
		"one made up":      `{"name":"create_work_item","arguments":{"title":"x","op_id":"op-1"}}`,
		"no string":        `{"name":"create_work_item","arguments":{"title":"x","op_id":7}}`,
		"not offered here": `{"name":"list_projects","arguments":{"op_id":"` + first + `"}}`,
	} {
		refused := c.call("tools/call", body)
		require.Nil(t, refused.Error, name)
		require.Contains(t, string(refused.Result), `"isError":true`, name)
		require.Contains(t, string(refused.Result), `"class":"invalid"`, name)
	}
	c.token = "ines"
	require.Contains(t, string(c.call("tools/call", `{"name":"create_work_item","arguments":{"title":"x","body":"y","op_id":"`+first+`"}}`).Result), "your token")
	hers := opIDOf(t, c.call("tools/call", `{"name":"create_work_item","arguments":{"title":"x"}}`))
	c.token = "ines-phone"
	require.Contains(t, string(c.call("tools/call", `{"name":"create_work_item","arguments":{"title":"x","op_id":"`+hers+`"}}`).Result), "your token")
	require.Len(t, made.operations, 4, "refused before anything is written")
}

func TestASeatsOpIDIsRefused(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	made := &writes{}
	made.onto(w.neighbours)
	opID := opIDOf(t, w.modern(t).call("tools/call", `{"name":"create_work_item","arguments":{"title":"x"}}`))
	_, err := call(t, w, "create_work_item", `{"title":"x","op_id":"`+opID+`"}`)
	f := refusal(t, err)
	require.Equal(t, fault.Invalid, f.Class)
	require.Equal(t, "op_id", f.Field)
	require.Len(t, made.operations, 1)
}

// What a client made up is neither kept, where it could be anything, nor handed back as if it could be used.
func TestARefusedOpIDIsNotKept(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	c := w.modern(t)
	for _, opID := range []string{`\u0000`, strings.Repeat("x", 100_000)} {
		refused := string(c.call("tools/call", `{"name":"create_work_item","arguments":{"title":"x","op_id":"`+opID+`"}}`).Result)
		require.Contains(t, refused, "OP_ID_REFUSED")
		require.NotContains(t, refused, `"op_id":`)
	}
	audited, err := w.console.ListCalls(asOperator(t.Context()), &toolregistryv1.ListCallsRequest{Tool: "create_work_item"})
	require.NoError(t, err)
	require.Len(t, audited.GetCalls(), 2, "refused calls are audited, too")
	for _, made := range audited.GetCalls() {
		require.Equal(t, "refused", made.GetStatus())
		require.Empty(t, made.GetOperationId())
	}
}

func TestAWriteThatMayHaveLandedSaysHowToFinishIt(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	w.neighbours.create = func(context.Context, *trackerv1.CreateWorkItemRequest) (*trackerv1.CreateWorkItemResponse, error) {
		return nil, fault.New(fault.Unavailable, "The database went away.").WithOutcome(fault.OutcomeUnknown)
	}
	answer := w.modern(t).call("tools/call", `{"name":"create_work_item","arguments":{"title":"x"}}`)
	var said struct {
		IsError           bool
		StructuredContent struct {
			Error struct {
				Outcome string
				OpID    string `json:"op_id"`
			}
		}
		Content []struct{ Text string }
	}
	require.NoError(t, json.Unmarshal(answer.Result, &said))
	require.True(t, said.IsError)
	require.Equal(t, "unknown", said.StructuredContent.Error.Outcome)
	require.Contains(t, said.Content[0].Text, `Send the same call again with op_id "`+said.StructuredContent.Error.OpID+`"`)
}

// gesture posts to /operator/act.
func (w *world) gesture(t *testing.T, tool, token, contentType, body string) (status int, header http.Header, answer map[string]any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/operator/act/"+tool, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", contentType)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &answer), "%s", text)
	return response.StatusCode, response.Header, answer
}

func newRequestID(t *testing.T) string {
	t.Helper()
	id, err := uuid.NewV7()
	require.NoError(t, err)
	return id.String()
}

func TestAGestureSentAgainIsTheSameWrite(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	made := &writes{}
	made.onto(w.neighbours)
	id := newRequestID(t)
	body := `{"request_id":"` + id + `","args":{"title":"x"}}`
	for range 2 {
		status, _, answer := w.gesture(t, "create_work_item", "ines", "application/json; charset=utf-8", body)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "create_work_item", answer["tool"])
		require.Equal(t, "applied", answer["outcome"])
		require.Equal(t, "tracker@1:7", answer["position"])
		require.Equal(t, "OPS-1", answer["receipt"].(map[string]any)["key"])
		require.Len(t, answer, 4)
	}
	_, _, _ = w.gesture(t, "create_work_item", "ines", "application/json", `{"request_id":"`+newRequestID(t)+`","args":{"title":"x"}}`)
	require.Len(t, made.operations, 3)
	require.Equal(t, made.operations[0], made.operations[1])
	require.NotEqual(t, made.operations[0], made.operations[2])
	_, _, _ = w.gesture(t, "create_work_item", "ines-phone", "application/json", body)
	require.Len(t, made.operations, 4)
	require.NotEqual(t, made.operations[0], made.operations[3], "another token of hers names another operation")
	require.Equal(t, []string{"person:ines", "person:ines", "person:ines", "person:ines"}, made.by)
	audited, err := w.console.ListCalls(asOperator(t.Context()), &toolregistryv1.ListCallsRequest{Tool: "create_work_item"})
	require.NoError(t, err)
	require.Len(t, audited.GetCalls(), 4)
	require.Equal(t, id, audited.GetCalls()[3].GetCallId(), "the audit knows the gesture")
}

func TestWhyAGestureIsRefused(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	classes := map[string]*fault.Error{}
	w.neighbours.create = func(_ context.Context, req *trackerv1.CreateWorkItemRequest) (*trackerv1.CreateWorkItemResponse, error) {
		return nil, classes[req.GetTitle()]
	}
	for class, status := range map[fault.Class]int{
		fault.Invalid: 422, fault.NotFound: 404, fault.Forbidden: 403, fault.StaleVersion: 409, fault.Conflict: 409, fault.Exists: 409,
		fault.AlreadyAnswered: 409, fault.ReassignmentBudget: 409, fault.InboxFull: 409, fault.NotRunning: 409, fault.SteerUnsupported: 409,
		fault.BudgetExhausted: 409, fault.LoopDetected: 409, fault.Unavailable: 503,
	} {
		classes[string(class)] = fault.New(class, "It is so.")
		got, _, answer := w.gesture(t, "create_work_item", "ines", "application/json", `{"request_id":"`+newRequestID(t)+`","args":{"title":"`+string(class)+`"}}`)
		require.Equal(t, status, got, class)
		require.Equal(t, map[string]any{"error": string(class), "tool": "create_work_item", "detail": "It is so."}, answer, class)
	}
	classes["lost"] = fault.New(fault.Unavailable, "It may have landed.").WithOutcome(fault.OutcomeUnknown)
	id, good := newRequestID(t), `{"title":"lost"}`
	for name, c := range map[string]struct {
		tool, token, contentType, body string
		status                         int
		says, outcome                  string
	}{
		"a write in doubt":       {"create_work_item", "ines", "application/json", `{"request_id":"` + id + `","args":` + good + `}`, 503, "unavailable", "unknown"},
		"no token":               {"create_work_item", "", "application/json", `{}`, 401, "invalid_token", ""},
		"a wrong token":          {"create_work_item", "bad", "application/json", `{}`, 401, "invalid_token", ""},
		"a machine's token":      {"create_work_item", "good", "application/json", `{}`, 403, "unbound", ""},
		"an unknown tool":        {"make_coffee", "ines", "application/json", `{}`, 404, "unknown_tool", ""},
		"a seat's tool":          {"reply", "ines", "application/json", `{}`, 404, "unknown_tool", ""},
		"a server's tool":        {"search", "ines", "application/json", `{}`, 404, "unknown_tool", ""},
		"a tool that reads":      {"list_projects", "ines", "application/json", `{}`, 400, "read_only_tool", ""},
		"a form":                 {"create_work_item", "ines", "application/x-www-form-urlencoded", `{}`, 415, "unsupported_media_type", ""},
		"no request id":          {"create_work_item", "ines", "application/json", `{"args":{}}`, 400, "invalid_request_id", ""},
		"a request id of four":   {"create_work_item", "ines", "application/json", `{"request_id":"` + uuid.NewString() + `","args":{}}`, 400, "invalid_request_id", ""},
		"the request id of none": {"create_work_item", "ines", "application/json", `{"request_id":"` + uuid.Nil.String() + `","args":{}}`, 400, "invalid_request_id", ""},
		"a body that is a list":  {"create_work_item", "ines", "application/json", `[]`, 400, "invalid_body", ""},
		"a member too many":      {"create_work_item", "ines", "application/json", `{"request_id":"` + id + `","args":{},"seat":"ada"}`, 400, "invalid_body", ""},
		"args that are a list":   {"create_work_item", "ines", "application/json", `{"request_id":"` + id + `","args":[]}`, 400, "invalid_body", ""},
		"a body too large":       {"create_work_item", "ines", "application/json", `{"request_id":"` + strings.Repeat("x", 1_114_112) + `"}`, 413, "body_too_large", ""},
		"an op_id in args":       {"create_work_item", "ines", "application/json", `{"request_id":"` + id + `","args":{"title":"x","op_id":"y"}}`, 422, "invalid", ""},
	} {
		status, header, answer := w.gesture(t, c.tool, c.token, c.contentType, c.body)
		require.Equal(t, c.status, status, name)
		require.Equal(t, c.says, answer["error"], name)
		require.Equal(t, c.tool, answer["tool"], name)
		require.NotEmpty(t, answer["detail"], name)
		require.Equal(t, c.says == "unbound", answer["hint"] != nil, name)
		if c.outcome == "" {
			require.NotContains(t, answer, "outcome", name)
		} else {
			require.Equal(t, c.outcome, answer["outcome"], name)
		}
		require.Equal(t, status == http.StatusUnauthorized, header.Get("WWW-Authenticate") != "", name)
	}
}
