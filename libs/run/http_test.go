package run

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBodyThatDoesNotArriveIsGivenUp(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	s := httptest.NewServer(timedBodies(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		failed <- err
	}), 20*time.Millisecond))
	t.Cleanup(s.Close)
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	_, err = io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
	require.NoError(t, err)
	var timeout net.Error
	require.ErrorAs(t, <-failed, &timeout)
	require.True(t, timeout.Timeout())
}

func TestBodyThatNobodyReadsIsGivenUpAsWell(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(timedBodies(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}), 20*time.Millisecond))
	t.Cleanup(s.Close)
	for _, contentType := range []string{"application/json", "application/grpc-web+proto", "application/connect+proto"} {
		t.Run(contentType, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", s.Listener.Addr().String())
			require.NoError(t, err)
			defer func() { require.NoError(t, c.Close()) }()
			require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
			_, err = io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: "+contentType+"\r\nContent-Length: 10\r\n\r\nhalf")
			require.NoError(t, err)
			answer, err := io.ReadAll(c)
			require.NoError(t, err, "the server closes the connection")
			require.Contains(t, string(answer), "401 Unauthorized")
		})
	}
}

func TestAHandlersOwnLimitIsKept(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	s := httptest.NewServer(timedBodies(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		_, err := io.Copy(io.Discard, r.Body)
		failed <- err
		w.WriteHeader(http.StatusServiceUnavailable)
	}), time.Hour))
	t.Cleanup(s.Close)
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err = io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
	require.NoError(t, err)
	require.ErrorIs(t, <-failed, os.ErrDeadlineExceeded)
	answer, err := io.ReadAll(c)
	require.NoError(t, err, "the server waits no longer for the rest")
	require.Contains(t, string(answer), "503 Service Unavailable")
}

func TestTheRestOfABodyIsNotTakenForARequest(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	s := httptest.NewServer(timedBodies(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		// A handler that refuses before it has read all closes the body first, as the RPC server does.
		_ = r.Body.Close()
		w.WriteHeader(http.StatusUnauthorized)
	}), time.Hour))
	t.Cleanup(s.Close)
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	body := strings.Repeat(smuggled, (1<<20)/len(smuggled))
	go func() {
		// The server stops reading before the end.
		_, _ = fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}()
	answers, _ := io.ReadAll(c)
	require.Equal(t, 1, strings.Count(string(answers), "HTTP/1.1 "), "one request, one answer")
	require.EqualValues(t, 1, requests.Load())
}

func TestAnswerMayTakeLongerThanItsBody(t *testing.T) {
	t.Parallel()
	const limit = time.Second // for a body that is there at once, on a machine that is busy
	s := httptest.NewServer(timedBodies(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
			w.WriteHeader(http.StatusGone)
		case <-time.After(2 * limit):
			w.WriteHeader(http.StatusOK)
		}
	}), limit))
	t.Cleanup(s.Close)
	res, err := s.Client().Post(s.URL, "application/json", io.LimitReader(zeros{}, 1<<10))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
