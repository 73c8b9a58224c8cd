package session

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/child"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

// scripted is an address whose answers a test writes.
type scripted struct {
	mu   sync.Mutex
	seen []seen
	// answer is told each message and writes the response.
	answer func(w http.ResponseWriter, r *http.Request, m wire.Message)
}

type seen struct {
	method string
	header http.Header
	params string
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var m wire.Message
	if messages, err := wire.Decode(body); err == nil {
		m = messages[0]
	}
	s.mu.Lock()
	s.seen = append(s.seen, seen{method: r.Method + " " + m.Method, header: r.Header.Clone(), params: string(m.Params)})
	s.mu.Unlock()
	s.answer(w, r, m)
}

// requests answers what came, but for what a session does by itself.
func (s *scripted) requests(method string) []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	var some []seen
	for _, r := range s.seen {
		if r.method == method {
			some = append(some, r)
		}
	}
	return some
}

func result(w http.ResponseWriter, m wire.Message, format string, args ...any) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, fmt.Sprintf(format, args...))
}

func refusalWith(w http.ResponseWriter, status int, id []byte, code int, data string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no","data":%s}}`, id, code, data)
}

const (
	discoverResult   = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`
	initializeResult = `{"protocolVersion":"%s","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
)

// older answers as a server of an older revision does, but for the probe.
func older(version string, probe func(w http.ResponseWriter, m wire.Message)) func(http.ResponseWriter, *http.Request, wire.Message) {
	return func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.Method == methodDiscover:
			probe(w, m)
		case m.Method == methodInitialize:
			result(w, m, initializeResult, version)
		case m.Request():
			result(w, m, `{}`)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}
}

func TestWhateverAnAddressAnswersToTheProbeItsEraIsFound(t *testing.T) {
	t.Parallel()
	for name, probe := range map[string]func(w http.ResponseWriter, m wire.Message){
		"unknown method":     func(w http.ResponseWriter, m wire.Message) { refusalWith(w, http.StatusOK, m.ID, codeNoMethod, "null") },
		"404":                func(w http.ResponseWriter, _ wire.Message) { w.WriteHeader(http.StatusNotFound) },
		"400 without a body": func(w http.ResponseWriter, _ wire.Message) { w.WriteHeader(http.StatusBadRequest) },
		"400 without a session": func(w http.ResponseWriter, _ wire.Message) {
			refusalWith(w, http.StatusBadRequest, []byte("null"), -32000, "null")
		},
		"401 without a session": func(w http.ResponseWriter, _ wire.Message) { http.Error(w, "missing session", http.StatusUnauthorized) },
		"500":                   func(w http.ResponseWriter, _ wire.Message) { w.WriteHeader(http.StatusInternalServerError) },
		"a page":                func(w http.ResponseWriter, _ wire.Message) { _, _ = io.WriteString(w, "<html>") },
		"another version": func(w http.ResponseWriter, m wire.Message) {
			refusalWith(w, http.StatusBadRequest, m.ID, codeNoVersion, `{"supported":["2025-11-25"]}`)
		},
		"a shim": func(w http.ResponseWriter, m wire.Message) {
			result(w, m, `{"supportedVersions":["2025-11-25"],"capabilities":{}}`)
		},
		"an empty object": func(w http.ResponseWriter, m wire.Message) { result(w, m, `{}`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &scripted{answer: older("2025-03-26", probe)}
			o := options(t)
			o.HTTP = &HTTP{URL: serve(t, server)}
			s, err := Open(t.Context(), o)
			require.NoError(t, err)
			require.True(t, s.Legacy())
			require.Equal(t, "2025-03-26", s.Protocol())
			s.Close()
			require.Equal(t, "2025-03-26", server.requests("POST notifications/initialized")[0].header.Get("Mcp-Protocol-Version"))
		})
	}
}

func TestAModernServerIsAskedNothingOlder(t *testing.T) {
	t.Parallel()
	for _, code := range []int{codeHeaderMismatch, codeNoCapability} {
		server := &scripted{answer: older(legacy, func(w http.ResponseWriter, m wire.Message) { refusalWith(w, http.StatusBadRequest, m.ID, code, "null") })}
		o := options(t)
		o.HTTP = &HTTP{URL: serve(t, server)}
		_, err := Open(t.Context(), o)
		require.ErrorContains(t, err, fmt.Sprint(code))
		require.Empty(t, server.requests("POST initialize"))
	}
	server := &scripted{answer: func(w http.ResponseWriter, _ *http.Request, m wire.Message) { result(w, m, discoverResult) }}
	o := options(t)
	o.HTTP, o.Protocol = &HTTP{URL: serve(t, server)}, "modern"
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	s.Close()
	header := server.requests("POST server/discover")[0].header
	require.Equal(t, modern, header.Get("Mcp-Protocol-Version"))
	require.Equal(t, "server/discover", header.Get("Mcp-Method"))
}

func TestWhatIsDeclaredIsNotProbedAndWhatIsRememberedMayChange(t *testing.T) {
	t.Parallel()
	never := func(w http.ResponseWriter, m wire.Message) { refusalWith(w, http.StatusOK, m.ID, codeNoMethod, "null") }
	server := &scripted{answer: older(legacy, never)}
	o := options(t)
	o.HTTP, o.Protocol = &HTTP{URL: serve(t, server)}, "legacy"
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	s.Close()
	require.Empty(t, server.requests("POST server/discover"))

	o.Protocol = "modern"
	_, err = Open(t.Context(), o)
	require.ErrorContains(t, err, "declared to speak 2026-07-28")

	// It learnt the new protocol since.
	learnt := &scripted{answer: func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		if m.Method == methodInitialize {
			refusalWith(w, http.StatusBadRequest, m.ID, codeNoVersion, `{"supported":["2026-07-28"]}`)
			return
		}
		result(w, m, discoverResult)
	}}
	o.HTTP, o.Protocol, o.Legacy = &HTTP{URL: serve(t, learnt)}, "auto", true
	s, err = Open(t.Context(), o)
	require.NoError(t, err)
	require.False(t, s.Legacy())
	s.Close()
}

func TestAServerThatDeniesTheProtocolItAgreedOnIsLeft(t *testing.T) {
	t.Parallel()
	server := &scripted{answer: func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		if m.Method == methodCall {
			refusalWith(w, http.StatusBadRequest, m.ID, codeNoVersion, `{"supported":["2027-01-01"]}`)
			return
		}
		result(w, m, discoverResult)
	}}
	o := options(t)
	o.HTTP = &HTTP{URL: serve(t, server)}
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	answer, err := s.Call(t.Context(), "x", []byte("{}"), time.Minute)
	require.NoError(t, err)
	require.True(t, answer.Failed)
	<-s.Done()
	require.ErrorContains(t, s.Cause(), "any more")
}

func TestAProtocolNobodyKnowsIsRefused(t *testing.T) {
	t.Parallel()
	server := &scripted{answer: older("1999-01-01", func(w http.ResponseWriter, m wire.Message) { w.WriteHeader(http.StatusNotFound) })}
	o := options(t)
	o.HTTP = &HTTP{URL: serve(t, server)}
	_, err := Open(t.Context(), o)
	require.ErrorContains(t, err, "1999-01-01")
}

func TestTheTransportOf2024IsTriedWhereTheNewerOneIsTurnedAway(t *testing.T) {
	t.Parallel()
	to := make(chan wire.Message, 16)
	server := &scripted{}
	server.answer = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		switch {
		case r.Method == http.MethodPost && r.URL.Path == "/messages":
			to <- m
			w.WriteHeader(http.StatusAccepted)
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": hello\n\nevent: endpoint\ndata: /messages?token=1\n\n")
			_ = http.NewResponseController(w).Flush()
			for {
				select {
				case m := <-to:
					if m.Method == methodInitialize {
						fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, fmt.Sprintf(initializeResult, "2024-11-05"))
					} else if m.Request() {
						fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":%s,\"result\":{\"content\":[]}}\n\n", m.ID)
					}
					_ = http.NewResponseController(w).Flush()
				case <-r.Context().Done():
					return
				}
			}
		}
	}
	for _, declared := range []bool{false, true} {
		o := options(t)
		o.HTTP = &HTTP{URL: serve(t, server), SSE: declared}
		s, err := Open(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, "2024-11-05", s.Protocol())
		answer, err := s.Call(t.Context(), "x", []byte("{}"), time.Minute)
		require.NoError(t, err)
		require.JSONEq(t, `{"content":[]}`, string(answer.Result))
		s.Close()
	}
	elsewhere := &scripted{answer: func(w http.ResponseWriter, r *http.Request, _ wire.Message) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: endpoint\ndata: http://elsewhere.invalid/messages\n\n")
	}}
	o := options(t)
	o.HTTP = &HTTP{URL: serve(t, elsewhere)}
	_, err := Open(t.Context(), o)
	require.ErrorContains(t, err, "another host")
	require.ErrorContains(t, err, "404")
}

func TestAProgramMayInstallItselfForLongBeforeItsHandshakeBegins(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	o := options(t)
	o.Start = process(t, gate)
	awake := make(chan struct{})
	o.Started = sync.OnceFunc(func() { close(awake) })
	type opened struct {
		*Session
		error
	}
	result := make(chan opened, 1)
	go func() {
		s, err := Open(t.Context(), o)
		result <- opened{s, err}
	}()
	// The gate opens for reading only once somebody writes.
	w, err := os.OpenFile(gate, os.O_WRONLY, 0)
	require.NoError(t, err)
	select {
	case <-awake:
		t.Fatal("it is still installing")
	default:
	}
	require.NoError(t, w.Close())
	r := <-result
	require.NoError(t, r.error)
	<-awake
	require.Equal(t, modern, r.Protocol(), "the probe's time does not begin before the program is awake")
	r.Close()

	o.Install = 50 * time.Millisecond
	_, err = Open(t.Context(), o)
	require.ErrorContains(t, err, "first word")
}

func TestAProcessThatIsWedgedByTheProbeIsStartedAnew(t *testing.T) {
	t.Parallel()
	// It takes what it is asked and says nothing; another one is the fixture.
	started := 0
	o := options(t)
	o.Handshake = 10 * time.Second
	real := process(t, os.DevNull)
	launcher := child.NewLauncher()
	t.Cleanup(launcher.Close)
	o.Start = func() (*child.Process, error) {
		if started++; started == 1 {
			return child.Start(child.Options{Path: "/bin/sh", Args: []string{"-c", "while read -r line; do :; done"}, Env: []string{"PATH=/bin:/usr/bin"}, Log: o.Log, Launcher: launcher})
		}
		return real()
	}
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, 2, started)
	require.True(t, s.Legacy(), "the probe is not asked again")
	s.Close()
}

func TestWhatStoppedAProgramIsTheReason(t *testing.T) {
	t.Parallel()
	launcher := child.NewLauncher()
	t.Cleanup(launcher.Close)
	o := options(t)
	started := 0
	o.Start = func() (*child.Process, error) {
		started++
		return child.Start(child.Options{Path: "/bin/sh", Args: []string{"-c", "echo broken >&2; exit 3"}, Env: []string{"PATH=/bin:/usr/bin"}, Log: o.Log, Launcher: launcher})
	}
	_, err := Open(t.Context(), o)
	var failed *HandshakeError
	require.ErrorAs(t, err, &failed)
	require.EqualError(t, err, "it exited with status 3")
	require.Equal(t, []string{"broken"}, failed.Tail)
	require.Equal(t, 2, started, "once with the probe, once without")
}

func TestAddressesThatAreNoneAndNobodyAtOneAreReasons(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.HTTP = &HTTP{URL: "ftp://secret@x"}
	_, err := Open(t.Context(), o)
	require.ErrorContains(t, err, "no http or https URL")
	require.NotContains(t, err.Error(), "secret")
	o.HTTP = &HTTP{URL: "http://127.0.0.1:1/?key=secret"}
	_, err = Open(t.Context(), o)
	require.ErrorIs(t, err, ErrUnreachable)
	require.NotContains(t, err.Error(), "secret")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.HTTP = &HTTP{URL: serve(t, http.NotFoundHandler())}
	_, err = Open(ctx, o)
	require.Error(t, err)
}

func TestTheHandshakeSaysWhoWeAreAndWhatWeCanBeAskedFor(t *testing.T) {
	t.Parallel()
	server := &scripted{answer: older(legacy, func(w http.ResponseWriter, m wire.Message) { w.WriteHeader(http.StatusNotFound) })}
	o := options(t)
	o.HTTP = &HTTP{URL: serve(t, server)}
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	s.Close()
	var params map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(server.requests("POST initialize")[0].params), &params))
	require.JSONEq(t, canBeAsked, string(params["capabilities"]))
	require.Contains(t, string(params["clientInfo"]), `"bullpen"`)
}
