package session

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

// newest opens a session with a modern address that answers everything but the probe as told.
func newest(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, m wire.Message)) (*Session, *scripted) {
	t.Helper()
	server := &scripted{answer: func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		if m.Method == methodDiscover {
			result(w, m, discoverResult)
			return
		}
		answer(w, r, m)
	}}
	o := options(t)
	o.HTTP = &HTTP{URL: serve(t, server)}
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s, server
}

func TestArgumentsStandInTheHeadersThatAToolAsksFor(t *testing.T) {
	t.Parallel()
	schema := `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"deep":{"properties":{"n":{"type":"integer","x-mcp-header":"N"}}},"flag":{"type":"boolean","x-mcp-header":"Flag"},"gone":{"type":"string","x-mcp-header":"Gone"}}}`
	s, server := newest(t, func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		if m.Method == methodTools {
			result(w, m, `{"tools":[{"name":"tool ü","inputSchema":%s},{"name":"bad","inputSchema":{"properties":{"x":{"type":"object","x-mcp-header":"X"}}}}]}`, schema)
			return
		}
		result(w, m, `{"resultType":"complete","content":[]}`)
	})
	tools, err := s.Tools(t.Context())
	require.NoError(t, err)
	require.Len(t, tools, 1, "the other is left out, alone")
	require.Contains(t, string(tools[0].JSON), schema)
	arguments := `{"region":" Zürich","deep":{"n":4.2e1},"flag":true,"gone":null}`
	_, err = s.Call(t.Context(), "tool ü", []byte(arguments), time.Minute)
	require.NoError(t, err)
	send(t, s, Request{Method: "tools/call", Params: []byte(`{"name":"tool ü","arguments":` + arguments + `}`)})
	calls := server.requests("POST tools/call")
	require.Len(t, calls, 2)
	for _, call := range calls {
		require.Equal(t, modern, call.header.Get("Mcp-Protocol-Version"))
		require.Equal(t, "tools/call", call.header.Get("Mcp-Method"))
		require.Equal(t, "=?base64?dG9vbCDDvA==?=", call.header.Get("Mcp-Name"))
		require.Equal(t, "=?base64?IFrDvHJpY2g=?=", call.header.Get("Mcp-Param-Region"))
		require.Equal(t, "42", call.header.Get("Mcp-Param-N"))
		require.Equal(t, "true", call.header.Get("Mcp-Param-Flag"))
		require.NotContains(t, call.header, "Mcp-Param-Gone")
		require.Contains(t, call.params, arguments)
	}
	send(t, s, Request{Method: "resources/read", Params: []byte(`{"uri":"test://x"}`)})
	require.Equal(t, "test://x", server.requests("POST resources/read")[0].header.Get("Mcp-Name"))
}

func TestAnnotationsThatNameNoHeaderMakeAToolUnusable(t *testing.T) {
	t.Parallel()
	good := `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"enum":[{"x-mcp-header":1}],"type":"string"}}}`
	for schema, usable := range map[string]bool{
		good: true,
		`{"properties":{"x-mcp-header":{"type":"string"}}}`:                                                             true,
		`{"properties":{"a":{"type":"string","x-mcp-header":""}}}`:                                                      false,
		`{"properties":{"a":{"type":"string","x-mcp-header":null}}}`:                                                    false,
		`{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}`:                                                   false,
		`{"properties":{"a":{"type":"string","x-mcp-header":"Ä"}}}`:                                                     false,
		`{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`:                                                     false,
		`{"properties":{"a":{"type":["string"],"x-mcp-header":"A"}}}`:                                                   false,
		`{"properties":{"a":{"x-mcp-header":"A"}}}`:                                                                     false,
		`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`:            false,
		`{"type":"string","x-mcp-header":"A"}`:                                                                          false,
		`{"properties":{"a":{"items":{"type":"string","x-mcp-header":"A"}}}}`:                                           false,
		`{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`:                                         false,
		`{"$defs":{"d":{"type":"string","x-mcp-header":"A"}}}`:                                                          false,
		strings.Repeat(`{"properties":{"a":`, 300) + `{"type":"string","x-mcp-header":"A"}` + strings.Repeat(`}}`, 300): false,
	} {
		tool, err := wire.Object([]byte(`{"name":"t","inputSchema":` + schema + `}`))
		require.NoError(t, err, schema)
		_, err = bindingsOf(tool)
		require.Equal(t, usable, err == nil, "%.200s: %v", schema, err)
	}
}

func TestAStreamThatWasCutOffIsTakenUpAfterItsLastEvent(t *testing.T) {
	t.Parallel()
	var call atomic.Value
	server := &scripted{}
	server.answer = older(legacy, func(w http.ResponseWriter, _ wire.Message) { w.WriteHeader(http.StatusNotFound) })
	plain := server.answer
	server.answer = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		switch {
		case m.Method == methodCall:
			call.Store(string(m.ID))
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: 7\nretry: 1\ndata:\n\n")
		case r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") == "7":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "id: 8\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", call.Load())
		default:
			plain(w, r, m)
		}
	}
	o := options(t)
	o.HTTP = &HTTP{URL: serve(t, server)}
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	defer s.Close()
	answer, err := s.Call(t.Context(), "x", []byte("{}"), time.Minute)
	require.NoError(t, err)
	require.JSONEq(t, `{"content":[]}`, string(answer.Result))
}

func TestAnAnswerThatIsCutOffOrTooLongOrNoneIsAFailure(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter, m wire.Message){
		"cut document": func(w http.ResponseWriter, _ wire.Message) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"jsonrpc":`))
		},
		"cut stream": func(w http.ResponseWriter, m wire.Message) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "id: 1\ndata: {\"id\":%s,\"result\":", m.ID)
		},
		"another id": func(w http.ResponseWriter, _ wire.Message) { result(w, wire.Message{ID: []byte(`"1"`)}, "{}") },
		"nothing":    func(w http.ResponseWriter, _ wire.Message) { w.WriteHeader(http.StatusAccepted) },
		"a page":     func(w http.ResponseWriter, _ wire.Message) { fmt.Fprint(w, "<html>") },
		"502":        func(w http.ResponseWriter, _ wire.Message) { w.WriteHeader(http.StatusBadGateway) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, server := newest(t, func(w http.ResponseWriter, _ *http.Request, m wire.Message) { answer(w, m) })
			_, err := s.Call(t.Context(), "x", []byte("{}"), time.Minute)
			var failed *CallError
			require.ErrorAs(t, err, &failed)
			require.True(t, failed.Sent, "it may have been carried out")
			require.Len(t, server.requests("POST tools/call"), 1)
		})
	}
	s, _ := newest(t, func(w http.ResponseWriter, _ *http.Request, _ wire.Message) {
		w.WriteHeader(http.StatusTooManyRequests)
	})
	_, err := s.Call(t.Context(), "x", []byte("{}"), time.Minute)
	var failed *CallError
	require.ErrorAs(t, err, &failed)
	require.False(t, failed.Sent, "nobody looked at it")
}

func TestAnAddressThatIsGoneEndsTheSession(t *testing.T) {
	t.Parallel()
	for _, patient := range []bool{true, false} {
		server := &scripted{answer: func(w http.ResponseWriter, _ *http.Request, m wire.Message) { result(w, m, discoverResult) }}
		front := httptest.NewServer(server)
		o := options(t)
		o.HTTP = &HTTP{URL: front.URL}
		o.Liveness = time.Hour
		if patient {
			o.Liveness = 20 * time.Millisecond
		}
		s, err := Open(t.Context(), o)
		require.NoError(t, err)
		front.Close()
		if !patient { // whoever calls finds out first
			_, err := s.Call(t.Context(), "x", []byte("{}"), time.Minute)
			require.Error(t, err)
		}
		<-s.Done()
		require.ErrorIs(t, s.Cause(), ErrUnreachable)
		require.NotContains(t, s.Cause().Error(), "\n")
	}
}

func TestAnAddressIsAskedWhetherItIsThereAndAnyAnswerWillDo(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100)
	server := &scripted{}
	plain := older(legacy, func(w http.ResponseWriter, _ wire.Message) { w.WriteHeader(http.StatusNotFound) })
	server.answer = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		if m.Method == methodPing {
			select {
			case asked <- struct{}{}:
			default:
			}
			refusalWith(w, http.StatusOK, m.ID, codeNoMethod, "null")
			return
		}
		plain(w, r, m)
	}
	o := options(t)
	o.HTTP, o.Liveness = &HTTP{URL: serve(t, server)}, 5*time.Millisecond
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	for range 3 {
		<-asked
	}
	require.False(t, s.isOver())
	s.Close()
}

func TestARedirectThatLosesTheMessageOrLeavesTheOriginIsNotFollowed(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"/elsewhere", "http://127.0.0.1:1/"} {
		server := &scripted{answer: func(w http.ResponseWriter, r *http.Request, _ wire.Message) {
			http.Redirect(w, r, to, http.StatusFound)
		}}
		o := options(t)
		o.HTTP = &HTTP{URL: serve(t, server), Headers: map[string]string{"Authorization": "secret"}}
		_, err := Open(t.Context(), o)
		require.ErrorContains(t, err, "not followed")
		require.Empty(t, server.requests("GET "))
	}
}

func TestToolsWhoseTimeRanOutAreListedAgain(t *testing.T) {
	t.Parallel()
	s, _ := newest(t, func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		result(w, m, `{"tools":[{"name":"a","inputSchema":%s}],"ttlMs":1}`, strings.Repeat(`{"properties":{"p":`, 900)+`{}`+strings.Repeat(`}}`, 900))
	})
	tools, err := s.Tools(t.Context())
	require.NoError(t, err)
	require.Len(t, tools, 1, "depth is no business of the list")
	s.mu.Lock()
	require.NotNil(t, s.relist)
	s.relist.Reset(0)
	s.mu.Unlock()
	<-s.Changed()
	require.Equal(t, Changes{Tools: true}, s.TakeChanges())
}

func TestPagesEndWhereTheServerSaysOrRepeatsItself(t *testing.T) {
	t.Parallel()
	pages := map[string]string{ // by cursor
		``:        `{"tools":[{"name":"a"}],"nextCursor":""}`,
		`""`:      `{"tools":[{"name":"b"},{"name":"a"},null,{"name":""}],"nextCursor":"2"}`,
		`"2"`:     `{"tools":[{"name":"c"}],"nextCursor":"again"}`,
		`"again"`: `{"tools":[{"name":"d"}],"nextCursor":"again"}`,
	}
	s, server := newest(t, func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		params, err := wire.Object(m.Params)
		require.NoError(t, err)
		result(w, m, "%s", pages[string(wire.Get(params, "cursor"))])
	})
	tools, err := s.Tools(t.Context())
	require.NoError(t, err)
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	require.Equal(t, []string{"a", "b", "c", "d"}, names)
	require.Len(t, server.requests("POST tools/list"), 4)
}
