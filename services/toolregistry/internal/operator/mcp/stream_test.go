package mcp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// timedWriter remembers how much was written under each deadline.
type timedWriter struct {
	*httptest.ResponseRecorder
	under []int
}

// SetWriteDeadline is found by [http.ResponseController].
func (w *timedWriter) SetWriteDeadline(time.Time) error {
	w.under = append(w.under, 0)
	return nil
}

// Write implements [http.ResponseWriter].
func (w *timedWriter) Write(text []byte) (int, error) {
	w.under[len(w.under)-1] += len(text)
	return w.ResponseRecorder.Write(text)
}

func TestALargeAnswerHasTimeForEachOfItsPortions(t *testing.T) {
	t.Parallel()
	message := []byte(`"` + strings.Repeat("x", 10*portion) + `"`)
	for name, write := range map[string]func(*answer){
		"a document": func(a *answer) { a.finish(http.StatusOK, message) },
		"an event":   func(a *answer) { a.send(message) },
	} {
		w := &timedWriter{ResponseRecorder: httptest.NewRecorder()}
		write(newAnswer(w))
		require.Contains(t, w.Body.String(), string(message), name)
		require.Greater(t, len(w.under), 10, name)
		for _, n := range w.under {
			require.LessOrEqual(t, n, portion, name)
		}
	}
}
