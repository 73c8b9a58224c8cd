package mcp_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/mcp"
)

func TestATokenHasSoManyRequestsUnderWay(t *testing.T) {
	t.Parallel()
	s := play(t, func(o *mcp.Options) { o.Hold, o.CallsPerToken = time.Millisecond, 2 })
	end := sync.OnceFunc(func() { close(s.door.end) })
	defer end()
	first, second := s.open(t, "a"), s.open(t, "a")
	under := s.send(t, http.MethodPost, "a", first, slowCall)
	s.send(t, http.MethodPost, "a", second, slowCall)
	<-s.door.began
	<-s.door.began
	other := strings.Replace(slowCall, `"id":1`, `"id":2`, 1)
	refused := s.send(t, http.MethodPost, "a", first, other)
	require.Equal(t, http.StatusTooManyRequests, refused.StatusCode)
	require.Equal(t, "1", refused.Header.Get("Retry-After"))
	text, err := io.ReadAll(refused.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), `"id":2`)
	require.Contains(t, string(text), "2 requests under way")
	ping := s.send(t, http.MethodPost, "a", second, `{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	require.Equal(t, http.StatusOK, ping.StatusCode, "it is still there")
	require.Equal(t, http.StatusOK, s.listen(t, "a").StatusCode, "streams have a bound of their own")
	s.send(t, http.MethodPost, "b", s.open(t, "b"), slowCall)
	<-s.door.began // another token's

	end()
	lineThat(t, under, func(line string) bool { return strings.HasPrefix(line, "data: ") })
	require.Eventually(t, func() bool {
		again := s.send(t, http.MethodPost, "a", first, other)
		return again.StatusCode == http.StatusOK
	}, patience, 10*time.Millisecond)
}

func TestARequestWhoseClientHungUpCountsUntilItEnds(t *testing.T) {
	t.Parallel()
	s := play(t, func(o *mcp.Options) { o.Hold, o.CallsPerToken = time.Millisecond, 1 })
	defer close(s.door.end)
	session := s.open(t, "a")
	require.NoError(t, s.send(t, http.MethodPost, "a", session, slowCall).Body.Close())
	<-s.door.began
	other := strings.Replace(slowCall, `"id":1`, `"id":2`, 1)
	require.Equal(t, http.StatusTooManyRequests, s.send(t, http.MethodPost, "a", session, other).StatusCode)
	cancelled := s.send(t, http.MethodPost, "a", session, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	require.Equal(t, http.StatusAccepted, cancelled.StatusCode, "a word about a request is none")
	require.Eventually(t, func() bool {
		return s.send(t, http.MethodPost, "a", session, other).StatusCode == http.StatusOK
	}, patience, 10*time.Millisecond)
}

func TestABatchIsBegunWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	s := play(t, func(o *mcp.Options) { o.Hold, o.CallsPerToken = time.Millisecond, 2 })
	end := sync.OnceFunc(func() { close(s.door.end) })
	defer end()
	opened := s.send(t, http.MethodPost, "a", "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{}}}`)
	session := opened.Header.Get("Mcp-Session-Id")
	call := func(id string) string { return strings.Replace(slowCall, `"id":1`, `"id":`+id, 1) }
	many := "[" + call("1") + "," + call("2") + "," + call("3") + "]"
	require.Equal(t, http.StatusTooManyRequests, s.send(t, http.MethodPost, "a", session, many).StatusCode)
	require.Empty(t, s.door.began)
	end()
	require.Equal(t, http.StatusOK, s.send(t, http.MethodPost, "a", session, "["+call("1")+","+call("2")+"]").StatusCode)
}
