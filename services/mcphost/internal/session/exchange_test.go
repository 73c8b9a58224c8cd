package session

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatACallerWroteArrivesAsItWroteIt(t *testing.T) {
	t.Parallel()
	for _, carriage := range carriages() {
		t.Run(carriage, func(t *testing.T) {
			t.Parallel()
			s, _ := carry(t, carriage)
			require.Equal(t, "Be kind.", s.Instructions())
			require.Contains(t, string(s.Capabilities()), "tools")
			require.Equal(t, strings.Contains(carriage, "modern"), !s.Legacy())
			arguments := `{"b":1.50,"a":9007199254740993,"t":"\u0041"}`
			reply, _ := send(t, s, Request{Method: "tools/call", Params: []byte(`{"name":"echo","arguments":` + arguments + `}`)})
			require.Equal(t, arguments, text(t, reply))
			answer, err := s.Call(t.Context(), "echo", []byte(arguments), time.Minute)
			require.NoError(t, err)
			require.Equal(t, arguments, text(t, Reply{Result: answer.Result}))
			reply, _ = send(t, s, Request{Method: "prompts/get", Params: []byte(`{"name":"hello"}`)})
			require.Contains(t, string(reply.Result), `"hello"`)
			reply, _ = send(t, s, Request{Method: "prompts/get", Params: []byte(`{"name":"nonesuch"}`)})
			require.NotZero(t, refusedWith(t, reply))
			reply, _ = send(t, s, Request{Method: "resources/read", Params: []byte(`{"uri":"test://0"}`)})
			require.Contains(t, string(reply.Result), `"x"`)
			reply, _ = send(t, s, Request{Method: "tools/call", Params: []byte(`[]`)})
			require.EqualValues(t, codeInvalidParams, refusedWith(t, reply))
			reply, _ = send(t, s, Request{Method: "tools/call", Params: []byte(`{"_meta":1}`)})
			require.EqualValues(t, codeInvalidParams, refusedWith(t, reply))
		})
	}
}

func TestProgressBearsTheCallersTokenAndLogsComeWhenAskedFor(t *testing.T) {
	t.Parallel()
	for _, carriage := range streaming() {
		t.Run(carriage, func(t *testing.T) {
			t.Parallel()
			s, _ := carry(t, carriage)
			for token, level := range map[string]string{`"mine"`: "error", `7`: "debug", ``: ""} {
				params := `{"name":"report","arguments":{}}`
				if token != "" {
					params = `{"name":"report","arguments":{},"_meta":{"progressToken":` + token + `,"kept":1}}`
				}
				reply, heard := send(t, s, Request{Method: "tools/call", Params: []byte(params), LogLevel: level})
				require.Equal(t, "done", text(t, reply))
				progress, logs := 0, 0
				for _, n := range heard {
					var m struct {
						Method string `json:"method"`
						Params struct {
							ProgressToken json.RawMessage `json:"progressToken"`
						} `json:"params"`
					}
					require.NoError(t, json.Unmarshal([]byte(n), &m))
					switch m.Method {
					case "notifications/progress":
						progress++
						require.Equal(t, token, string(m.Params.ProgressToken))
					case "notifications/message":
						logs++
					}
				}
				require.Equal(t, map[string]int{`"mine"`: 3, `7`: 3, ``: 0}[token], progress, heard)
				require.Equal(t, map[string]int{"error": 1, "debug": 2, "": 0}[level], logs, heard)
			}
		})
	}
}

func TestACallThatIsGivenUpEndsAtTheServer(t *testing.T) {
	t.Parallel()
	for _, carriage := range carriages() {
		t.Run(carriage, func(t *testing.T) {
			t.Parallel()
			s, f := carry(t, carriage)
			ends := map[string]func(ctx context.Context) error{
				`{"n":1}`: func(ctx context.Context) error {
					_, err := s.Exchange(ctx, Request{Method: "tools/call", Params: []byte(`{"name":"wait","arguments":{"n":1}}`), Idle: time.Minute})
					return err
				},
				`{"n":2}`: func(ctx context.Context) error {
					_, err := s.Call(ctx, "wait", []byte(`{"n":2}`), time.Minute)
					return err
				},
			}
			given := 0
			for arguments, call := range ends {
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- call(ctx) }()
				given++
				if strings.HasPrefix(carriage, "stdio") { // the fixture is another process
					require.Eventually(t, func() bool { return len(underWay(s)) == 1 }, 30*time.Second, time.Millisecond)
				} else {
					require.Eventually(t, func() bool { return f.waits() == given }, 30*time.Second, time.Millisecond)
				}
				cancel()
				var failed *CallError
				require.ErrorAs(t, <-ended, &failed)
				require.ErrorIs(t, failed, context.Canceled)
				switch carriage {
				case "stdio legacy", "stdio modern":
				case "http modern":
					require.Eventually(t, func() bool { return f.hungUp() == given }, 30*time.Second, time.Millisecond)
				default:
					require.Eventually(t, func() bool { return f.ended(arguments) }, 30*time.Second, time.Millisecond)
				}
			}
			_, err := s.Call(t.Context(), "wait", []byte(`{"n":3}`), time.Millisecond)
			require.ErrorIs(t, err, ErrIdle)
			_, err = s.Call(t.Context(), "echo", []byte(`{}`), time.Minute)
			require.NoError(t, err, "the session stays")
		})
	}
}

func TestACallerWhoDoesNotListenGivesUp(t *testing.T) {
	t.Parallel()
	s, _ := carry(t, "stdio legacy")
	gone := errors.New("gone")
	_, err := s.Exchange(t.Context(), Request{
		Method: "tools/call", Params: []byte(`{"name":"report","arguments":{},"_meta":{"progressToken":1}}`), Idle: time.Minute,
		Notify: func([]byte) error { return gone },
	})
	if err != nil { // the result may have come with the first notification
		require.ErrorIs(t, err, gone)
	}
	require.Empty(t, underWay(s))
}

func TestListsAreAnsweredWhole(t *testing.T) {
	t.Parallel()
	for _, carriage := range carriages() {
		t.Run(carriage, func(t *testing.T) {
			t.Parallel()
			s, _ := carry(t, carriage)
			tools, err := s.Tools(t.Context())
			require.NoError(t, err)
			require.Len(t, tools, 5)
			for method, count := range map[string]int{"resources/list": 5, "prompts/list": 1, "resources/templates/list": 0} {
				reply, _ := send(t, s, Request{Method: method})
				require.Empty(t, string(reply.Error))
				var page map[string]json.RawMessage
				require.NoError(t, json.Unmarshal(reply.Result, &page))
				require.NotContains(t, page, "nextCursor")
				entries, _ := listed(method)
				var all []json.RawMessage
				require.NoError(t, json.Unmarshal(page[entries], &all))
				require.Len(t, all, count, method)
			}
		})
	}
}

func TestChangesOfAResourceAreReportedWhileSomebodyFollowsIt(t *testing.T) {
	t.Parallel()
	for _, carriage := range carriages() {
		t.Run(carriage, func(t *testing.T) {
			t.Parallel()
			changed := make(chan string, 1000)
			s, _ := carry(t, carriage, func(o *Options) { o.ResourceUpdated = func(uri string) { changed <- uri } })
			// Where changes come on a stream of their own, nobody can say when the server has it.
			heard := func() bool {
				_, err := s.Call(t.Context(), "touch", []byte(`{}`), time.Minute)
				return err == nil && len(changed) > 0 && <-changed == "test://1"
			}
			subscribe := Request{Method: "resources/subscribe", Params: []byte(`{"uri":"test://1"}`)}
			for range 2 {
				reply, _ := send(t, s, subscribe)
				require.Empty(t, string(reply.Error))
			}
			require.Eventually(t, heard, 30*time.Second, time.Millisecond)
			leave := Request{Method: "resources/unsubscribe", Params: []byte(`{"uri":"test://1"}`)}
			reply, _ := send(t, s, leave)
			require.Empty(t, string(reply.Error))
			for len(changed) > 0 {
				<-changed
			}
			require.Eventually(t, heard, 30*time.Second, time.Millisecond, "the other one still follows")
			reply, _ = send(t, s, leave)
			require.Empty(t, string(reply.Error))
			reply, _ = send(t, s, Request{Method: "resources/subscribe", Params: []byte(`{}`)})
			require.EqualValues(t, codeInvalidParams, refusedWith(t, reply))
		})
	}
}

func TestAListThatTheServerSaysHasChangedIsNamed(t *testing.T) {
	t.Parallel()
	for _, carriage := range carriages() {
		t.Run(carriage, func(t *testing.T) {
			t.Parallel()
			for list, want := range map[string]Changes{"prompts": {Prompts: true}, "resources": {Resources: true}} {
				s, _ := carry(t, carriage)
				// Where changes come on a stream of their own, nobody can say when the server has it.
				require.Eventually(t, func() bool {
					_, err := s.Call(t.Context(), "touch", []byte(`{"list":"`+list+`"}`), time.Minute)
					require.NoError(t, err)
					return len(s.Changed()) > 0
				}, 30*time.Second, time.Millisecond)
				require.Equal(t, want, s.TakeChanges())
			}
		})
	}
}
