package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/door"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/hygiene"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/mcp"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/upstream"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// patience bounds what must happen; tests end long before.
const patience = time.Minute

// slow is a door behind which a call takes until somebody lets it end.
type slow struct {
	began chan struct{}
	end   chan struct{}
}

func (d *slow) Call(ctx context.Context, _ *rpc.Principal, _ door.Request) (*door.Answer, error) {
	d.began <- struct{}{}
	select {
	case <-d.end:
		return &door.Answer{JSON: `{"done":true}`, Source: surface.Builtin}, nil
	case <-ctx.Done():
		return nil, errors.New("given up")
	}
}

// stage is a server behind HTTP.
type stage struct {
	door   *slow
	server *mcp.Server
	url    string
	clock  atomic.Int64 // seconds
	// revoked tokens are not known any more.
	revoked sync.Map
	stop    func()
}

func play(t *testing.T, change func(*mcp.Options)) *stage {
	t.Helper()
	keys, err := rpc.NewKeys(config.Secret(strings.Repeat("k", rpc.MinKeyBytes)))
	require.NoError(t, err)
	s := &stage{door: &slow{began: make(chan struct{}, 8), end: make(chan struct{})}}
	now := func() time.Time { return time.Unix(s.clock.Load(), 0) }
	log, cleaner := slog.New(slog.DiscardHandler), hygiene.New()
	none := func(context.Context, string) *companyv1.Company { return nil }
	o := mcp.Options{
		Door: s.door, Surface: func(context.Context) *surface.Surface { return nil }, Resumable: func(string) bool { return false },
		Upstreams: upstream.New(upstream.Options{Company: none, Cleaner: cleaner, Log: log, Now: now}),
		Identify: func(_ context.Context, header http.Header) (*rpc.Principal, error) {
			if _, revoked := s.revoked.Load(header.Get("Authorization")); revoked {
				return nil, fault.New(fault.Forbidden, "The API token is not valid.")
			}
			return &rpc.Principal{Kind: rpc.KindOperator, Id: header.Get("Authorization")}, nil
		},
		Keys: keys, Cleaner: cleaner, Log: log, Now: now,
	}
	change(&o)
	s.server = mcp.New(o)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { require.NoError(t, s.server.Run(ctx)) })
	s.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	front := httptest.NewServer(s.server)
	s.url = front.URL
	t.Cleanup(func() { front.Close(); s.stop() })
	return s
}

func (s *stage) send(t *testing.T, method, token, session, body string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, method, s.url, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("Authorization", token)
	if session != "" {
		request.Header.Set("Mcp-Session-Id", session)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// open opens a session and answers its id, empty where none was opened.
func (s *stage) open(t *testing.T, token string) string {
	t.Helper()
	response := s.send(t, http.MethodPost, token, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`)
	_, _ = io.Copy(io.Discard, response.Body)
	return response.Header.Get("Mcp-Session-Id")
}

func (s *stage) ping(t *testing.T, token, session string) int {
	t.Helper()
	response := s.send(t, http.MethodPost, token, session, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

const slowCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`

// lineThat reads lines until one fits.
func lineThat(t *testing.T, from *http.Response, fits func(string) bool) string {
	t.Helper()
	lines := bufio.NewScanner(from.Body)
	for lines.Scan() {
		if fits(lines.Text()) {
			return lines.Text()
		}
	}
	require.Fail(t, "the stream ended", "%v", lines.Err())
	return ""
}

func TestALongAnswerShowsThatItLasts(t *testing.T) {
	t.Parallel()
	s := play(t, func(o *mcp.Options) { o.Hold, o.KeepAlive = time.Millisecond, time.Millisecond })
	session := s.open(t, "a")
	response := s.send(t, http.MethodPost, "a", session, slowCall)
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	alive := 0
	lineThat(t, response, func(line string) bool {
		if line == ": alive" {
			alive++
		}
		return alive == 3
	})
	close(s.door.end)
	end := lineThat(t, response, func(line string) bool { return strings.HasPrefix(line, "data: ") })
	require.Contains(t, end, `"structuredContent":{"done":true}`)

	alive = 0
	lineThat(t, s.send(t, http.MethodGet, "a", session, ""), func(line string) bool {
		if line == ": alive" {
			alive++
		}
		return alive == 3
	})
}

func TestAQuickAnswerIsADocument(t *testing.T) {
	t.Parallel()
	s := play(t, func(o *mcp.Options) { o.Hold = patience })
	close(s.door.end)
	response := s.send(t, http.MethodPost, "a", s.open(t, "a"), slowCall)
	require.Equal(t, "application/json", response.Header.Get("Content-Type"))
	require.Positive(t, response.ContentLength)
}

func TestSessionsEndWhenNobodyUsesThem(t *testing.T) {
	t.Parallel()
	s := play(t, func(o *mcp.Options) { o.SessionIdle = 20 * time.Millisecond })
	idle, used := s.open(t, "a"), s.open(t, "a")
	s.send(t, http.MethodGet, "a", used, "")
	require.Eventually(t, func() bool {
		status := s.ping(t, "a", idle)
		s.clock.Add(1) // and nobody uses it until the next time
		return status == http.StatusNotFound
	}, patience, 20*time.Millisecond)
	require.Equal(t, http.StatusOK, s.ping(t, "a", used), "one that has a stream is used")
}

func TestTheSessionIdleTheLongestMakesRoom(t *testing.T) {
	t.Parallel()
	s := play(t, func(o *mcp.Options) { o.SessionsPerToken, o.Sessions = 2, 3 })
	first := s.open(t, "a")
	s.clock.Add(1)
	second := s.open(t, "a")
	s.clock.Add(1)
	require.Equal(t, http.StatusOK, s.ping(t, "a", first))
	s.clock.Add(1)
	third := s.open(t, "a")
	require.Equal(t, http.StatusNotFound, s.ping(t, "a", second), "the first was used since")
	s.send(t, http.MethodGet, "a", first, "")
	s.send(t, http.MethodGet, "a", third, "")
	require.Empty(t, s.open(t, "a"), "all are in use")
	require.NotEmpty(t, s.open(t, "b"), "another token has room of its own")
	require.Equal(t, http.StatusOK, s.ping(t, "a", first))
}

func TestAStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	s := play(t, func(o *mcp.Options) { o.KeepAlive = time.Millisecond })
	streaming, listening := s.send(t, http.MethodGet, "a", s.open(t, "a"), ""), s.listen(t, "a")
	others := s.listen(t, "b")
	s.revoked.Store("a", true)
	for _, response := range []*http.Response{streaming, listening} {
		_, err := io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
	}
	lineThat(t, others, func(line string) bool { return line == ": alive" })
}

func TestATokenListensWithSoManyStreams(t *testing.T) {
	t.Parallel()
	s := play(t, func(o *mcp.Options) { o.ListensPerToken = 1 })
	require.Equal(t, http.StatusOK, s.listen(t, "a").StatusCode)
	require.Equal(t, http.StatusServiceUnavailable, s.listen(t, "a").StatusCode)
	require.Equal(t, http.StatusOK, s.listen(t, "b").StatusCode)
}

func (s *stage) listen(t *testing.T, token string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(
		`{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	require.NoError(t, err)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "*/*", "Authorization": token, "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen",
	} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func TestAServerThatIsStoppedEndsWhatLastsAndWaitsForCalls(t *testing.T) {
	t.Parallel()
	s := play(t, func(o *mcp.Options) { o.Hold = time.Millisecond })
	session := s.open(t, "a")
	calling := s.send(t, http.MethodPost, "a", session, slowCall)
	<-s.door.began
	streaming := s.send(t, http.MethodGet, "a", session, "")
	listening := s.listen(t, "a")
	stopped := make(chan struct{})
	go func() { defer close(stopped); s.stop() }()
	_, err := io.Copy(io.Discard, streaming.Body)
	require.NoError(t, err, "the stream of the session ends well")
	end := lineThat(t, listening, func(line string) bool { return strings.Contains(line, `"id":"l"`) })
	require.Contains(t, end, `"resultType":"complete"`)
	refused := s.send(t, http.MethodPost, "a", session, slowCall)
	require.Equal(t, http.StatusServiceUnavailable, refused.StatusCode)
	require.Equal(t, "30", refused.Header.Get("Retry-After"))
	select {
	case <-stopped:
		require.Fail(t, "a call was under way")
	default:
	}
	close(s.door.end)
	require.Contains(t, lineThat(t, calling, func(line string) bool { return strings.HasPrefix(line, "data: ") }), `"done":true`)
	<-stopped
}

func TestAHeaderOfTheProtocolHasOneValue(t *testing.T) {
	t.Parallel()
	s := play(t, func(*mcp.Options) {})
	for name, says := range map[string]string{
		"Mcp-Method": "more than once", "Mcp-Name": "more than once", "Mcp-Param-Region": "more than once", "Mcp-Protocol-Version": "more than once",
		"Mcp-Session-Id": "more than once", "Origin": "origin",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(slowCall))
		require.NoError(t, err)
		request.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"*/*"}, "Authorization": {"a"}, name: {"http://localhost", "http://elsewhere.example"},
		}
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Contains(t, []int{http.StatusBadRequest, http.StatusForbidden}, response.StatusCode, name)
		require.Contains(t, string(text), says, name)
	}
}
