package mishap_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/doubles/mishap"
)

type bundle struct {
	queue mishap.Queue
	url   string
	done  chan struct{} // one for each effect
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{done: make(chan struct{}, 8)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.queue.Serve("op", w, r, func() mishap.Answer {
			b.done <- struct{}{}
			return mishap.Answer{Status: http.StatusOK, Body: []byte("the whole of the answer, in several pieces")}
		})
	}))
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

func (b *bundle) get(t *testing.T) (string, int, error) {
	t.Helper()
	res, err := http.Get(b.url)
	if err != nil {
		return "", 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), res.StatusCode, err
}

func TestMishapsAreUsedUpInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.queue.Add("op", mishap.Status(502, true), mishap.Status(503, false))
	b.queue.Add("other", mishap.Cut(false))
	for _, want := range []int{502, 503, 200} {
		_, status, err := b.get(t)
		require.NoError(t, err)
		require.Equal(t, want, status)
	}
	require.Len(t, b.done, 2, "the second did not land")
	require.Equal(t, 3, b.queue.Calls("op"))
}

func TestACutIsNoAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.queue.Add("op", mishap.Cut(true))
	_, _, err := b.get(t)
	require.Error(t, err)
	require.Len(t, b.done, 1)
}

func TestAHangEndsWhenReleased(t *testing.T) {
	t.Parallel()
	b := setup(t)
	release := make(chan struct{})
	b.queue.Add("op", mishap.Hang(release, true))
	failed := make(chan error)
	go func() {
		_, _, err := b.get(t)
		failed <- err
	}()
	<-b.done // it has landed
	select {
	case err := <-failed:
		require.FailNow(t, "answered before the release", "%v", err)
	default:
	}
	close(release)
	require.Error(t, <-failed)
}

func TestASlowAnswerIsWhole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.queue.Add("op", mishap.Slow(time.Millisecond))
	body, _, err := b.get(t)
	require.NoError(t, err)
	require.Equal(t, "the whole of the answer, in several pieces", body)
}
