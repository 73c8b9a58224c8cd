package model_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/doubles/modeldouble"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
	"github.com/bullpenhq/bullpen/services/turn/internal/model"
)

// TestAnswersAreBounded lets vendors answer more than a model can say.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	const most = 2 << 20
	for name, huge := range map[string]modeldouble.Answer{
		"text":      {Text: strings.Repeat("x", 3*most)},
		"arguments": {Calls: []modeldouble.Call{{Tool: "t", Args: `{"a":"` + strings.Repeat("x", 3*most) + `"}`}}},
	} {
		s, err := modeldouble.Start(modeldouble.Options{Answer: func(modeldouble.Request) (modeldouble.Answer, error) { return huge, nil }})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		for vendor, provider := range map[string]model.Provider{
			"anthropic": model.Anthropic{Model: "m", BaseURL: s.URL(), MaxTokens: 100, Timeout: 10 * time.Second},
			"openai":    model.OpenAI{Model: "m", BaseURL: s.URL() + "/v1", MaxTokens: 100, Timeout: 10 * time.Second},
		} {
			answer, err := provider.Ask(t.Context(), "key", model.Request{Opening: "Hi."})
			require.NoError(t, err, vendor, name)
			require.Equal(t, journal.StopLength, answer.Stop, vendor, name)
		}
	}
}

func TestStreamsAndRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	const farAway = `data: {"id":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":2000000000,"id":"c"}]}}]}` + "\n\n"
	read := make(chan int64, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/places") {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, farAway)
			return
		}
		w.WriteHeader(http.StatusBadGateway)
		sent, _ := io.Copy(w, io.LimitReader(endless{}, 256<<20)) // the client has hung up long before
		read <- sent
	}))
	t.Cleanup(s.Close)

	ask := func(path string) *model.Failure {
		provider := model.OpenAI{Model: "m", BaseURL: s.URL + path, MaxTokens: 100, Timeout: 10 * time.Second}
		_, err := provider.Ask(t.Context(), "key", model.Request{Opening: "Hi."})
		var failure *model.Failure
		require.ErrorAs(t, err, &failure)
		return failure
	}
	require.Equal(t, "the stream makes no sense", ask("/places").Message)
	failure := ask("/refusal")
	require.Equal(t, model.Broken, failure.Kind)
	require.Equal(t, http.StatusBadGateway, failure.Status)
	require.Less(t, <-read, int64(64<<20))
}

// endless is a text without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'e'
	}
	return len(p), nil
}
