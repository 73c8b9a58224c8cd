package toolregistry_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/libs/bus"
)

// patience bounds what must happen; tests end long before.
const patience = time.Minute

// events are the messages of a stream.
type events struct {
	t     *testing.T
	close func()
	lines *bufio.Scanner
}

// next answers the next message; the stream must not end before.
func (e *events) next() string {
	e.t.Helper()
	for e.lines.Scan() {
		if data, ok := strings.CutPrefix(e.lines.Text(), "data: "); ok {
			return data
		}
	}
	require.Fail(e.t, "the stream ended", "%v", e.lines.Err())
	return ""
}

func eventsOf(t *testing.T, response *http.Response, cancel func()) *events {
	t.Helper()
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	closed := sync.OnceFunc(func() { cancel(); _ = response.Body.Close() })
	t.Cleanup(closed)
	return &events{t: t, close: closed, lines: bufio.NewScanner(response.Body)}
}

// listen opens a stream of the newest revision.
func (c *client) listen(wish string) *events {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	c.header["Mcp-Method"] = "subscriptions/listen"
	return eventsOf(c.t, c.post(ctx, `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":`+wish+`,"_meta":{`+c.meta()+`}}}`), cancel)
}

// stream opens the stream of a session.
func (c *client) stream() *events {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	require.NoError(c.t, err)
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Mcp-Session-Id", c.session)
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(request)
	require.NoError(c.t, err)
	return eventsOf(c.t, response, cancel)
}

// tells publishes a fact of mcphost's.
func (w *world) tells(t *testing.T, event *mcphostv1.ServerEvent) {
	t.Helper()
	event.EventId = uuid.NewString()
	value, err := proto.Marshal(event)
	require.NoError(t, err)
	require.NoError(t, w.bus.Publish(t.Context(), bus.Message{Topic: "bullpen.mcphost.server.v1", Key: "wiki", Value: value}))
}

func catalogueChanged() *mcphostv1.ServerEvent {
	return &mcphostv1.ServerEvent{Fact: &mcphostv1.ServerEvent_CatalogueChanged{CatalogueChanged: &mcphostv1.CatalogueChanged{Server: "wiki"}}}
}

func resourceUpdated(uri string) *mcphostv1.ServerEvent {
	return &mcphostv1.ServerEvent{Fact: &mcphostv1.ServerEvent_ResourceUpdated{ResourceUpdated: &mcphostv1.ResourceUpdated{Server: "wiki", Uri: uri}}}
}

// followed records what is followed upstream.
type followed struct {
	calls chan string
}

// onto makes the servers let resources be followed. The wiki has two.
func (f *followed) onto(n *neighbours) {
	f.calls = make(chan string, 16)
	n.exchange = func(_ context.Context, req *mcphostv1.ExchangeRequest, _ func(*mcphostv1.ExchangeResponse)) *mcphostv1.ExchangeResponse {
		switch {
		case req.GetMethod() == "resources/list" && req.GetServer() == "wiki":
			return result(`{"resources":[{"uri":"wiki:a","name":"a"},{"uri":"wiki:b","name":"b"}]}`)
		case req.GetMethod() == "resources/list":
			return result(`{"resources":[]}`)
		case req.GetMethod() == "resources/templates/list":
			return result(`{"resourceTemplates":[]}`)
		default:
			f.calls <- req.GetServer() + " " + req.GetMethod() + " " + req.GetParamsJson()
			return result(`{}`)
		}
	}
}

func (f *followed) next(t *testing.T) string {
	t.Helper()
	select {
	case call := <-f.calls:
		return call
	case <-time.After(patience):
		require.Fail(t, "no server was asked")
		return ""
	}
}

func TestClientsHearOfACatalogueThatIsAnother(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{bus: true})
	(&followed{}).onto(w.neighbours)
	modern := w.modern(t).listen(`{"toolsListChanged":true,"rootsListChanged":true,"resourceSubscriptions":["wiki:a"]}`)
	acknowledged := modern.next()
	require.Contains(t, acknowledged, `"method":"notifications/subscriptions/acknowledged"`)
	require.Contains(t, acknowledged, `"io.modelcontextprotocol/subscriptionId":7`)
	require.Contains(t, acknowledged, `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["wiki:a"]}`, "what nobody announces is not granted")
	c := w.legacy(t, "{}")
	legacy := c.stream()
	require.Nil(t, c.call("resources/subscribe", `{"uri":"wiki:a"}`).Error)

	// An announcement alone is no change: what follows it comes first.
	w.tells(t, catalogueChanged())
	w.tells(t, resourceUpdated("wiki:b"))
	w.tells(t, resourceUpdated("wiki:a"))
	require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"wiki:a","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`, modern.next())
	require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"wiki:a"}}`, legacy.next())

	changed := shared()
	changed.Digest = "s2"
	changed.Servers[0].ToolsJson = changed.GetServers()[0].GetToolsJson()[:1]
	w.neighbours.bring("", changed)
	w.tells(t, catalogueChanged())
	require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`, modern.next())
	require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`, legacy.next())
}

func listsChanged(seat string, prompts, resources bool) *mcphostv1.ServerEvent {
	return &mcphostv1.ServerEvent{Fact: &mcphostv1.ServerEvent_ListsChanged{ListsChanged: &mcphostv1.ListsChanged{
		Server: "wiki", Seat: seat, Prompts: prompts, Resources: resources,
	}}}
}

func TestClientsHearOfPromptsAndResourcesThatAServerAnnounces(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{bus: true})
	(&followed{}).onto(w.neighbours)
	modern := w.modern(t).listen(`{"promptsListChanged":true,"resourcesListChanged":false,"resourceSubscriptions":["wiki:a"]}`)
	require.Contains(t, modern.next(), `"notifications":{"promptsListChanged":true,"resourceSubscriptions":["wiki:a"]}`)
	legacy := w.legacy(t, "{}").stream()
	discovered := string(w.modern(t).call("server/discover", "{}").Result)
	require.Contains(t, discovered, `"prompts":{"listChanged":true}`)
	require.Contains(t, discovered, `"resources":{"listChanged":true,"subscribe":true}`)

	// A seat's own server is nothing of an operator's, and resources are not what this client asked for.
	w.tells(t, listsChanged("ada", true, true))
	w.tells(t, listsChanged("", false, true))
	require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{}}`, legacy.next())
	w.tells(t, resourceUpdated("wiki:a"))
	require.Contains(t, modern.next(), "notifications/resources/updated")

	w.tells(t, listsChanged("", true, false))
	require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`, modern.next())
	require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{}}`, legacy.next())

	// A server that goes takes its prompts with it.
	without := shared()
	without.Digest = "s2"
	without.Servers[0].State = "failed"
	w.neighbours.bring("", without)
	w.tells(t, catalogueChanged())
	require.Contains(t, modern.next(), "notifications/prompts/list_changed")
}

func TestAResourceIsFollowedUpstreamForAsLongAsSomebodyDoes(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{bus: true})
	upstream := &followed{}
	upstream.onto(w.neighbours)
	c := w.legacy(t, "{}")
	require.Nil(t, c.call("resources/subscribe", `{"uri":"wiki:a"}`).Error)
	require.Equal(t, `wiki resources/subscribe {"uri":"wiki:a"}`, upstream.next(t))
	listening := w.modern(t).listen(`{"resourceSubscriptions":["wiki:a"]}`)
	listening.next()
	require.Nil(t, c.call("resources/unsubscribe", `{"uri":"wiki:a"}`).Error)
	require.Empty(t, upstream.calls, "the other still follows")
	w.tells(t, &mcphostv1.ServerEvent{Fact: &mcphostv1.ServerEvent_InstanceChanged{InstanceChanged: &mcphostv1.InstanceChanged{Server: "wiki", State: "ready"}}})
	require.Equal(t, `wiki resources/subscribe {"uri":"wiki:a"}`, upstream.next(t), "a server that began anew is asked again")
	listening.close()
	require.Equal(t, `wiki resources/unsubscribe {"uri":"wiki:a"}`, upstream.next(t))

	require.Nil(t, c.call("resources/subscribe", `{"uri":"wiki:b"}`).Error)
	require.Equal(t, `wiki resources/subscribe {"uri":"wiki:b"}`, upstream.next(t))
	require.Equal(t, http.StatusNoContent, c.plain(http.MethodDelete))
	require.Equal(t, `wiki resources/unsubscribe {"uri":"wiki:b"}`, upstream.next(t), "it ends with the session")
}

func TestASessionHasOneStream(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{bus: true})
	c := w.legacy(t, "{}")
	c.stream()
	require.Equal(t, http.StatusConflict, c.plain(http.MethodGet))
}

func TestACallThatIsGivenUpIsGivenUpAtTheServer(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	began, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	w.neighbours.exchange = func(ctx context.Context, _ *mcphostv1.ExchangeRequest, _ func(*mcphostv1.ExchangeResponse)) *mcphostv1.ExchangeResponse {
		began <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return result(`{}`)
	}
	await := func(happened <-chan struct{}) {
		select {
		case <-happened:
		case <-time.After(patience):
			require.Fail(t, "it did not happen")
		}
	}
	modern := w.modern(t)
	modern.header["Mcp-Method"], modern.header["Mcp-Name"] = "tools/call", "search"
	ctx, hangUp := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	calling.Go(func() {
		request := modern.request(ctx, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","_meta":{`+modern.meta()+`}}}`)
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
		}
	})
	await(began)
	hangUp()
	await(ended)

	legacy := w.legacy(t, "{}")
	calling.Go(func() {
		request := legacy.request(t.Context(), `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"search"}}`)
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
		}
	})
	await(began)
	require.Equal(t, http.StatusBadRequest, legacy.send(`{"jsonrpc":"2.0","id":5,"method":"ping"}`).status, "an id that is under way")
	require.Equal(t, http.StatusAccepted, legacy.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`).status)
	await(ended)
	calling.Wait()
}

func TestPromptsAndResourcesAreThoseOfTheServersThatHaveThem(t *testing.T) {
	t.Parallel()
	w := operatorWorld(t, options{still: true})
	var mu sync.Mutex
	var asked []string
	w.neighbours.exchange = func(_ context.Context, req *mcphostv1.ExchangeRequest, _ func(*mcphostv1.ExchangeResponse)) *mcphostv1.ExchangeResponse {
		mu.Lock()
		asked = append(asked, req.GetServer()+" "+req.GetMethod())
		mu.Unlock()
		switch req.GetServer() + " " + req.GetMethod() {
		case "wiki prompts/list":
			return result(`{"prompts":[{"name":"greet","_meta":{"n":9007199254740993}}]}`)
		case "notes prompts/list":
			return result(`{"prompts":[{"name":"greet"},{"bad":1}]}`)
		case "wiki resources/list":
			return failure(`{"code":-32603,"message":"broken"}`)
		case "notes resources/list":
			return result(`{"resources":[{"uri":"notes:1","name":"one"}]}`)
		case "wiki resources/templates/list":
			return result(`{"resourceTemplates":[{"uriTemplate":"wiki:{page}","name":"page"}]}`)
		case "notes resources/templates/list":
			return result(`{"resourceTemplates":[]}`)
		case "wiki resources/read", "notes resources/read":
			if strings.Contains(req.GetParamsJson(), "missing") {
				return failure(`{"code":-32002,"message":"no such resource","data":{"uri":"x"}}`)
			}
			return result(`{"contents":[{"uri":"` + req.GetServer() + `","text":"t"}],"ttlMs":5,"cacheScope":"public"}`)
		default:
			return result(`{"of":"` + req.GetServer() + `","params":` + req.GetParamsJson() + `}`)
		}
	}
	bothEras(t, w, func(t *testing.T, c *client) {
		of := func(method, params string) string {
			answer := c.call(method, params)
			require.Nil(t, answer.Error, method)
			return string(answer.Result)
		}
		prompts := of("prompts/list", "{}")
		require.Contains(t, prompts, `"prompts":[{"name":"greet","_meta":{"n":9007199254740993}},{"name":"n_greet"}]`)
		require.Contains(t, of("prompts/get", `{"name":"n_greet","arguments":{"a":"b"}}`), `"of":"notes","params":{"name":"greet","arguments":{"a":"b"}}`)
		require.Contains(t, of("completion/complete", `{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"a","value":"b"}}`), `"of":"wiki"`)
		require.Contains(t, of("completion/complete", `{"ref":{"type":"ref/resource","uri":"wiki:{page}"},"argument":{"name":"a","value":"b"}}`), `"of":"wiki"`)
		require.Contains(t, of("resources/list", "{}"), `"resources":[{"uri":"notes:1","name":"one"}]`, "a server that fails costs its own part")
		require.Contains(t, of("resources/templates/list", "{}"), `"uriTemplate":"wiki:{page}"`)
		require.Contains(t, of("resources/read", `{"uri":"notes:1"}`), `"uri":"notes"`)
		read := of("resources/read", `{"uri":"wiki:home"}`)
		require.Contains(t, read, `"uri":"wiki"`, "by its template")
		require.Equal(t, -32602, c.call("prompts/get", `{"name":"none"}`).Error.Code)
		missing := c.call("resources/read", `{"uri":"missing:1"}`)
		if c.session == "" {
			require.Contains(t, read, `"ttlMs":5,"cacheScope":"private"`)
			require.Equal(t, -32602, missing.Error.Code)
		} else {
			require.Equal(t, -32002, missing.Error.Code)
		}
		require.Contains(t, string(c.call("tools/list", "{}").Result), `"tools"`)
	})
	for _, call := range asked {
		require.NotContains(t, call, "slow", "a server that is not ready is not asked")
	}
}

func TestACompanyWithoutSuchServersHasNoPrompts(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true})
	bothEras(t, w, func(t *testing.T, c *client) {
		require.Equal(t, -32601, c.call("prompts/list", "{}").Error.Code)
		require.Equal(t, -32601, c.call("resources/read", `{"uri":"x:1"}`).Error.Code)
	})
	var said struct {
		SupportedVersions []string
		Capabilities      map[string]json.RawMessage
		Instructions      string
	}
	require.NoError(t, json.Unmarshal(w.modern(t).call("server/discover", "{}").Result, &said))
	require.Equal(t, "2026-07-28", said.SupportedVersions[0])
	require.Len(t, said.Capabilities, 1)
	require.NotEmpty(t, said.Instructions)
}
