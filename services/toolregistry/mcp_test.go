package toolregistry_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
)

const object = `"inputSchema":{"type":"object","properties":{"id":{"type":"integer"}},"additionalProperties":false}`

// brought is what ada sees: a wiki that all share and a child of her own.
func brought() *mcphostv1.ListServerToolsResponse {
	return &mcphostv1.ListServerToolsResponse{Digest: "d1", Servers: []*mcphostv1.ServerTools{
		{Server: "wiki", State: "ready", ToolsJson: []string{`{"name":"search",` + object + `}`, `{"name":"list_projects",` + object + `}`, `{"name":"odd","inputSchema":{"type":"array"}}`}},
		{Server: "gh", Own: true, State: "ready", ToolPrefix: "gh_", Surfaces: []string{"github"}, ToolsJson: []string{
			`{"name":"get","title":"Get",` + object + `}`, `{"name":"comment",` + object + `}`,
		}},
		{Server: "slow", State: "failed", Reason: "exit status 127"},
	}}
}

func call(t *testing.T, w *world, tool, arguments string) (*toolregistryv1.CallToolResponse, error) {
	t.Helper()
	return w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{Tool: tool, ArgumentsJson: arguments, CallId: "c-" + tool})
}

func TestAnMcpToolIsCalledAsTheSeatWithItsArgumentsUntouched(t *testing.T) {
	t.Parallel()
	overBoth(t, options{still: true}, func(t *testing.T, w *world) {
		w.neighbours.bring("ada", brought())
		var asked *mcphostv1.CallServerToolRequest
		w.neighbours.call = func(_ context.Context, req *mcphostv1.CallServerToolRequest) (*mcphostv1.CallServerToolResponse, error) {
			asked = proto.CloneOf(req)
			return &mcphostv1.CallServerToolResponse{ResultJson: `{"content":[{"type":"text","text":"see ` + fakeToken + `"}],"_meta":{"n":9007199254740993}}`}, nil
		}
		answer, err := call(t, w, "gh_comment", `{ "id":9007199254740993 }`)
		require.NoError(t, err)
		require.Equal(t, "gh", asked.GetServer())
		require.Equal(t, "comment", asked.GetTool(), "the server's own name")
		require.Equal(t, "ada", asked.GetSeat())
		require.Equal(t, `{ "id":9007199254740993 }`, asked.GetArgumentsJson())
		require.Equal(t, 300*time.Second, asked.GetTimeout().AsDuration())
		require.Equal(t, "see [REDACTED:github_token]", answer.GetText())
		require.Contains(t, answer.GetResultJson(), "9007199254740993")
		require.Equal(t, "mcp:gh", answer.GetSource())
		require.Equal(t, "gh", answer.GetDelivered())
		require.Nil(t, answer.GetReceipt())

		answer, err = call(t, w, "gh_get", ``)
		require.NoError(t, err)
		require.Empty(t, answer.GetDelivered(), "the operator says that it only reads")
		_, err = call(t, w, "search", `{}`)
		require.NoError(t, err)
		require.Equal(t, 7*time.Second, asked.GetTimeout().AsDuration(), "the server's own limit")
	})
}

func TestAServersFailureIsAnAnswerWithoutAClass(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true})
	w.neighbours.bring("ada", brought())
	results := map[string]string{
		"search": `{"content":[{"type":"text","text":"rate limited"}],"isError":true}`,
		"gh_get": `{"content":[{"type":"text","text":"a\u0000b"}]}`,
	}
	w.neighbours.call = func(_ context.Context, req *mcphostv1.CallServerToolRequest) (*mcphostv1.CallServerToolResponse, error) {
		if req.GetTool() == "search" {
			return &mcphostv1.CallServerToolResponse{ResultJson: results["search"], Failed: true}, nil
		}
		return &mcphostv1.CallServerToolResponse{ResultJson: results["gh_get"]}, nil
	}
	answer, err := call(t, w, "search", `{}`)
	require.NoError(t, err)
	require.True(t, answer.GetFailed())
	require.Equal(t, "rate limited", answer.GetText())
	require.Empty(t, answer.GetDelivered())
	answer, err = call(t, w, "gh_get", `{}`)
	require.NoError(t, err)
	require.True(t, answer.GetFailed())
	require.Contains(t, answer.GetText(), "binary data")
}

func TestAServerThatCannotBeReachedIsUnknownForWritesOnly(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true})
	w.neighbours.bring("ada", brought())
	w.neighbours.call = func(context.Context, *mcphostv1.CallServerToolRequest) (*mcphostv1.CallServerToolResponse, error) {
		return nil, fault.New(fault.Unavailable, "The server died during the call.").WithOutcome(fault.OutcomeUnknown)
	}
	_, err := call(t, w, "gh_comment", `{}`)
	require.Equal(t, fault.OutcomeUnknown, refusal(t, err).Outcome)
	_, err = call(t, w, "gh_get", `{}`)
	require.Empty(t, refusal(t, err).Outcome)
}

func TestMcpCallsThatNeverReachAServer(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true})
	w.neighbours.bring("ada", brought())
	_, err := call(t, w, "gh_get", `{"idd":1}`)
	f := refusal(t, err)
	require.Equal(t, fault.Invalid, f.Class)
	require.Equal(t, "unknown argument `idd`; did you mean `id`?", f.Message)
	_, err = call(t, w, "odd", `{}`)
	require.Equal(t, "QUARANTINED", refusal(t, err).Reason)
	_, err = call(t, w, "slow_thing", `{}`)
	require.Contains(t, refusal(t, err).Message, "The tools of the server `slow` are missing now: exit status 127.")
}

func TestAnOperatorHasTheToolsOfSharedServersAndOfNoSeats(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true})
	w.neighbours.bring("", brought())
	w.neighbours.call = func(_ context.Context, req *mcphostv1.CallServerToolRequest) (*mcphostv1.CallServerToolResponse, error) {
		require.Empty(t, req.GetSeat())
		return &mcphostv1.CallServerToolResponse{ResultJson: `{"content":[{"type":"text","text":"found"}]}`}, nil
	}
	answer, err := w.console.CallTool(asOperator(t.Context()), &toolregistryv1.CallToolRequest{Tool: "search"})
	require.NoError(t, err)
	require.Equal(t, "found", answer.GetText())
	_, err = w.console.CallTool(asOperator(t.Context()), &toolregistryv1.CallToolRequest{Tool: "gh_get"})
	require.Equal(t, fault.Forbidden, refusal(t, err).Class)
}

func TestEachCallerSeesItsCatalogue(t *testing.T) {
	t.Parallel()
	overBoth(t, options{still: true}, func(t *testing.T, w *world) {
		w.neighbours.bring("ada", brought())
		own, err := w.turn.ListTools(asSeat(t.Context()), &toolregistryv1.ListToolsRequest{})
		require.NoError(t, err)
		byKey := map[string]*toolregistryv1.Tool{}
		for _, tool := range own.GetTools() {
			byKey[tool.GetSource()+" "+tool.GetName()] = tool
		}
		require.True(t, byKey["mcp:gh gh_get"].GetAnnotations().GetReadOnly())
		require.Nil(t, byKey["mcp:gh gh_comment"].GetAnnotations().ReadOnly, "unknown is not no")
		require.Equal(t, int32(1), byKey["mcp:gh gh_comment"].GetArgumentCount())
		require.NotEmpty(t, byKey["mcp:wiki odd"].GetQuarantine())
		require.Contains(t, byKey["mcp:wiki list_projects"].GetQuarantine(), "taken by the tool of builtin")
		require.Empty(t, byKey["builtin list_projects"].GetQuarantine())
		require.NotContains(t, byKey, "builtin get_page", "the company has no pages of its own")
		require.True(t, byKey["builtin submit_work"].GetEngineLocal())
		require.Equal(t, "slow", own.GetMissingServers()[0].GetServer())

		again, err := w.turn.ListTools(asSeat(t.Context()), &toolregistryv1.ListToolsRequest{KnownDigest: own.GetDigest()})
		require.NoError(t, err)
		require.True(t, again.GetUnchanged())
		require.Empty(t, again.GetTools())
		other, err := w.turn.ListTools(asSeat(t.Context()), &toolregistryv1.ListToolsRequest{KnownDigest: "another"})
		require.NoError(t, err)
		require.Len(t, other.GetTools(), len(own.GetTools()))
		same, err := w.console.ListTools(asOperator(t.Context()), &toolregistryv1.ListToolsRequest{Seat: "ada"})
		require.NoError(t, err)
		require.Equal(t, own.GetDigest(), same.GetDigest())
		only, err := w.console.ListTools(asOperator(t.Context()), &toolregistryv1.ListToolsRequest{Seat: "ada", Source: "mcp:gh"})
		require.NoError(t, err)
		require.Len(t, only.GetTools(), 2)
		whole, err := w.console.ListTools(asOperator(t.Context()), &toolregistryv1.ListToolsRequest{})
		require.NoError(t, err)
		var sources []string
		for _, tool := range whole.GetTools() {
			sources = append(sources, tool.GetSource())
		}
		require.Contains(t, sources, "mcp:gh", "a template's tools show once somebody has them")
		_, err = w.turn.ListTools(asSeat(t.Context()), &toolregistryv1.ListToolsRequest{Seat: "bo"})
		require.Equal(t, fault.Forbidden, refusal(t, err).Class)
		_, err = w.console.ListTools(asOperator(t.Context()), &toolregistryv1.ListToolsRequest{Seat: "nobody"})
		require.Equal(t, fault.NotFound, refusal(t, err).Class)
	})
}

func TestAnEventOfMcphostRefreshesTheSeatItNames(t *testing.T) {
	t.Parallel()
	w := build(t, options{bus: true})
	w.neighbours.bring("ada", &mcphostv1.ListServerToolsResponse{Digest: "d0"})
	before, err := w.turn.ListTools(asSeat(t.Context()), &toolregistryv1.ListToolsRequest{})
	require.NoError(t, err)
	w.neighbours.bring("ada", brought())
	event, err := proto.Marshal(&mcphostv1.ServerEvent{
		EventId: uuid.NewString(), Fact: &mcphostv1.ServerEvent_CatalogueChanged{CatalogueChanged: &mcphostv1.CatalogueChanged{Server: "gh", Seat: "ada"}},
	})
	require.NoError(t, err)
	require.NoError(t, w.bus.Publish(t.Context(), bus.Message{Topic: "bullpen.mcphost.server.v1", Key: "gh", Value: event}))
	require.Eventually(t, func() bool {
		after, err := w.turn.ListTools(asSeat(t.Context()), &toolregistryv1.ListToolsRequest{})
		return err == nil && after.GetDigest() != before.GetDigest()
	}, 20*time.Second, 10*time.Millisecond)
}

func TestListsOverPlainHTTP(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true})
	w.neighbours.bring("ada", brought())
	get := func(path, token string) (int, map[string]any) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+path, nil)
		require.NoError(t, err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		var answer map[string]any
		require.NoError(t, json.Unmarshal(body, &answer), "%s", body)
		return res.StatusCode, answer
	}
	status, answer := get("/tools?seat=ada&source=mcp:gh", "good")
	require.Equal(t, http.StatusOK, status)
	tools, _ := answer["tools"].([]any)
	comment, _ := tools[1].(map[string]any)
	require.Equal(t, "mcp:gh", comment["source"])
	require.Equal(t, "gh", comment["delivers"])
	require.InEpsilon(t, 1.0, comment["argument_count"], 0)
	annotations, _ := comment["annotations"].(map[string]any)
	require.Contains(t, annotations, "read_only")
	require.Nil(t, annotations["read_only"], "null: the server did not say")
	require.IsType(t, map[string]any{}, comment["input_schema"])

	status, answer = get("/mcp-servers", "good")
	require.Equal(t, http.StatusOK, status)
	all, _ := answer["servers"].([]any)
	wiki, _ := all[0].(map[string]any)
	gh, _ := all[1].(map[string]any)
	require.Equal(t, "not_reported", wiki["state"])
	cells, _ := wiki["nodes"].([]any)
	require.Len(t, cells, 2, "one for each node that lives")
	cell, _ := cells[1].(map[string]any)
	require.Equal(t, "n2", cell["node"])
	require.Equal(t, "not_reported", cell["state"])
	require.Equal(t, "failing", gh["state"])
	require.Equal(t, "bad token", gh["reason"])
	require.Equal(t, "ada", gh["seat"])
	require.Len(t, gh["nodes"], 1, "no other node has to run it")

	for _, path := range []string{"/tools", "/mcp-servers"} {
		for _, token := range []string{"", "bad"} {
			status, answer = get(path, token)
			require.Equal(t, http.StatusUnauthorized, status)
			require.Equal(t, "forbidden", answer["class"])
		}
	}
	status, _ = get("/tools?seat=nobody", "good")
	require.Equal(t, http.StatusNotFound, status)
}
