package run

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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

func TestAnswerMayTakeLongerThanItsBody(t *testing.T) {
	t.Parallel()
	const limit = 20 * time.Millisecond
	s := httptest.NewServer(timedBodies(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
			w.WriteHeader(http.StatusGone)
		case <-time.After(5 * limit):
			w.WriteHeader(http.StatusOK)
		}
	}), limit))
	t.Cleanup(s.Close)
	res, err := s.Client().Post(s.URL, "application/json", io.LimitReader(zeros{}, 1<<20))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
