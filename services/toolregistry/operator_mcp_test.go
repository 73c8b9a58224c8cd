package toolregistry_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
)

// bothEras runs a test as a client of the newest revision and as one of an older.
func bothEras(t *testing.T, w *world, test func(t *testing.T, c *client)) {
	t.Helper()
	t.Run("2026-07-28", func(t *testing.T) { test(t, w.modern(t)) })
	t.Run("2025-11-25", func(t *testing.T) { test(t, w.legacy(t, "{}")) })
}

func TestTheOperatorCatalogueIsListedAsItsOwnersWroteIt(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	bothEras(t, w, func(t *testing.T, c *client) {
		listed := c.call("tools/list", "{}")
		require.Nil(t, listed.Error)
		var list struct {
			Tools      []json.RawMessage
			CacheScope string
		}
		require.NoError(t, json.Unmarshal(listed.Result, &list))
		byName := map[string]string{}
		for _, tool := range list.Tools {
			var named struct{ Name string }
			require.NoError(t, json.Unmarshal(tool, &named))
			byName[named.Name] = string(tool)
		}
		require.Equal(t, shared().GetServers()[0].GetToolsJson()[0], byName["search"], "to the byte")
		require.Contains(t, byName, "n_add", "under the company's prefix")
		require.Contains(t, byName["create_work_item"], `"op_id":{"type":"string"`)
		require.NotContains(t, byName["list_projects"], "op_id")
		require.Contains(t, byName["list_projects"], `"readOnlyHint":true`)
		require.NotContains(t, byName, "reply", "a seat's tool")
		require.NotContains(t, byName, "submit_work", "the engine's tool")
		again := c.call("tools/list", "{}")
		require.Equal(t, string(listed.Result), string(again.Result), "in the same order")
		if c.session == "" {
			require.Equal(t, "private", list.CacheScope)
			require.Contains(t, string(listed.Result), `"resultType":"complete"`)
			require.Contains(t, string(listed.Result), `"io.modelcontextprotocol/serverInfo":{"name":"bullpen"`)
		}
	})
}

func TestACallOfASharedServersToolIsRelayedWhole(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	var asked atomic.Pointer[mcphostv1.ExchangeRequest]
	w.neighbours.exchange = func(_ context.Context, req *mcphostv1.ExchangeRequest, say func(*mcphostv1.ExchangeResponse)) *mcphostv1.ExchangeResponse {
		asked.Store(proto.CloneOf(req))
		say(notification(`{"method":"notifications/progress","params":{"progressToken":77,"progress":1}}`))
		say(notification(`{"method":"notifications/message","params":{"level":"info","data":"secret ` + fakeToken + `"}}`))
		say(notification(`{"method":"notifications/other","params":{}}`))
		return result("{\"content\":[{\"type\":\"text\",\"text\":\"see " + fakeToken + "\"}],\n\"structuredContent\":9007199254740993}")
	}
	bothEras(t, w, func(t *testing.T, c *client) {
		meta := `"_meta":{"progressToken":"p-1","trace":"t"}`
		if c.session == "" {
			meta = `"_meta":{"progressToken":"p-1","trace":"t","io.modelcontextprotocol/logLevel":"info",` + c.meta() + `}`
		} else {
			require.Nil(t, c.call("logging/setLevel", `{"level":"info"}`).Error)
		}
		answer := c.call("tools/call", `{"name":"search","arguments":{ "id":9007199254740993 },`+meta+`}`)
		require.Nil(t, answer.Error)
		require.Equal(t, `"r-1"`, string(answer.ID))
		require.Contains(t, string(answer.Result), `"structuredContent":9007199254740993`)
		require.Contains(t, string(answer.Result), "see [REDACTED:github_token]")
		require.Equal(t, "wiki", asked.Load().GetServer())
		require.Empty(t, asked.Load().GetSeat())
		require.Contains(t, asked.Load().GetParamsJson(), `"name":"search","arguments":{ "id":9007199254740993 }`)
		require.Contains(t, asked.Load().GetParamsJson(), `"trace":"t"`)
		require.NotContains(t, asked.Load().GetParamsJson(), "io.modelcontextprotocol/")
		require.Equal(t, "info", asked.Load().GetLogLevel())
		require.Len(t, c.notifications, 2)
		require.Contains(t, c.notifications[0], `"progressToken":"p-1"`)
		require.Contains(t, c.notifications[1], "secret [REDACTED:github_token]")
	})
}

func TestAServersProtocolErrorIsPassedOn(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	w.neighbours.exchange = func(context.Context, *mcphostv1.ExchangeRequest, func(*mcphostv1.ExchangeResponse)) *mcphostv1.ExchangeResponse {
		return failure(`{"code":-32021,"message":"needs sampling","data":{"requiredCapabilities":{"sampling":{}}}}`)
	}
	bothEras(t, w, func(t *testing.T, c *client) {
		answer := c.call("tools/call", `{"name":"search","arguments":{}}`)
		require.Equal(t, -32021, answer.Error.Code)
		require.JSONEq(t, `{"requiredCapabilities":{"sampling":{}}}`, string(answer.Error.Data))
		if c.session == "" {
			require.Equal(t, http.StatusBadRequest, answer.status)
		}
	})
}

func TestAToolThatIsNotThereIsAnErrorOfTheProtocolAndABadArgumentIsNot(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	bothEras(t, w, func(t *testing.T, c *client) {
		answer := c.call("tools/call", `{"name":"serch","arguments":{}}`)
		require.Equal(t, -32602, answer.Error.Code)
		require.Contains(t, answer.Error.Message, "Did you mean `search`?")
		answer = c.call("tools/call", `{"name":"create_work_item","arguments":{"titel":"x"}}`)
		require.Nil(t, answer.Error)
		require.Contains(t, string(answer.Result), `"isError":true`)
		require.Contains(t, string(answer.Result), `"class":"invalid"`)
		require.Contains(t, string(answer.Result), "unknown argument `titel`")
	})
}

// asksWho is a server that wants a name before it answers.
func asksWho(_ context.Context, req *mcphostv1.ExchangeRequest, _ func(*mcphostv1.ExchangeResponse)) *mcphostv1.ExchangeResponse {
	if strings.Contains(req.GetParamsJson(), `"inputResponses":{"who":{"action":"accept","content":{"name":"Ada"}}}`) &&
		strings.Contains(req.GetParamsJson(), `"requestState":"the server's"`) {
		return result(`{"resultType":"complete","content":[{"type":"text","text":"Hello, Ada."}]}`)
	}
	return result(`{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"Who?"}}},"requestState":"the server's"}`)
}

func TestAServerThatAsksIsAnsweredByAClientOfTheNewestRevision(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	w.neighbours.exchange = asksWho
	c := w.modern(t)
	c.capabilities = `{"elicitation":{}}`
	asked := c.call("tools/call", `{"name":"search","arguments":{"id":1}}`)
	require.Nil(t, asked.Error)
	var wants struct{ ResultType, RequestState string }
	require.NoError(t, json.Unmarshal(asked.Result, &wants))
	require.Equal(t, "input_required", wants.ResultType)
	require.NotContains(t, string(asked.Result), "the server's", "the state is sealed")
	again := func(arguments, state string) mcpReply {
		return c.call("tools/call", `{"name":"search","arguments":`+arguments+`,"inputResponses":{"who":{"action":"accept","content":{"name":"Ada"}}},"requestState":"`+state+`"}`)
	}
	answer := again(`{ "id": 1 }`, wants.RequestState)
	require.Nil(t, answer.Error)
	require.Contains(t, string(answer.Result), "Hello, Ada.")
	for name, refused := range map[string]mcpReply{
		"another argument":  again(`{"id":2}`, wants.RequestState),
		"a tampered state":  again(`{"id":1}`, wants.RequestState+"x"),
		"a state made up":   again(`{"id":1}`, "the server's"),
		"no object at all":  c.call("tools/call", `{"name":"search","arguments":{"id":1},"inputResponses":null}`),
		"for another thing": c.call("prompts/get", `{"name":"search","arguments":{"id":1},"requestState":"`+wants.RequestState+`"}`),
	} {
		require.NotNil(t, refused.Error, name)
		require.Equal(t, -32602, refused.Error.Code, name)
	}
	c.token = "ines"
	require.Equal(t, -32602, again(`{"id":1}`, wants.RequestState).Error.Code, "another token's")
}

func TestAClientThatCannotBeAskedIsTold(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	w.neighbours.exchange = asksWho
	bothEras(t, w, func(t *testing.T, c *client) {
		answer := c.call("tools/call", `{"name":"search","arguments":{"id":1}}`)
		require.Equal(t, -32021, answer.Error.Code)
		require.JSONEq(t, `{"requiredCapabilities":{"elicitation":{}}}`, string(answer.Error.Data))
	})
}

func TestAServerThatAsksIsAnsweredOverASession(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	w.neighbours.exchange = asksWho
	c := w.legacy(t, `{"elicitation":{}}`)
	c.answerQuestion = func(_ json.RawMessage, method string) string {
		require.Equal(t, "elicitation/create", method)
		return `"result":{"action":"accept","content":{"name":"Ada"}}`
	}
	answer := c.call("tools/call", `{"name":"search","arguments":{"id":1}}`)
	require.Nil(t, answer.Error)
	require.Equal(t, `{"content":[{"type":"text","text":"Hello, Ada."}]}`, string(answer.Result))
	require.Len(t, c.questions, 1)
	require.Contains(t, c.questions[0], `"params":{"message":"Who?"}`)

	c.answerQuestion = func(json.RawMessage, string) string { return `"error":{"code":-1,"message":"no"}` }
	answer = c.call("tools/call", `{"name":"search","arguments":{"id":1}}`)
	require.Equal(t, -1, answer.Error.Code)
}
