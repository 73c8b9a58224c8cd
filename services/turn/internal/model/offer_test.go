package model_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/turn/internal/model"
)

// sent answers what a provider's client sends, which is then refused.
func sent(t *testing.T, ask func(url string) model.Provider, r model.Request) []byte {
	t.Helper()
	bodies := make(chan []byte, 1)
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err == nil {
			bodies <- body
		}
		w.WriteHeader(http.StatusBadRequest)
	}))
	t.Cleanup(vendor.Close)
	_, err := ask(vendor.URL).Ask(t.Context(), "key", r)
	require.Error(t, err)
	return <-bodies
}

// offer is a tool as either vendor is sent it.
type offer struct {
	Name     string          `json:"name"`
	Schema   json.RawMessage `json:"input_schema"`
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

func TestEachVendorIsOfferedWhatItTakes(t *testing.T) {
	t.Parallel()
	request := model.Request{
		Opening: "Hi.",
		Tools: []model.Tool{
			{Name: "old.style", Schema: []byte(`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}}`)},
			{
				Name: "notes.read", Wire: "notes_read_x", Schema: []byte(`{"type":"object","anyOf":[{}]}`),
				Schemas: map[string]json.RawMessage{
					"anthropic": []byte(`{"type":"object","properties":{"z":{},"a":{}}}`), "openai": []byte(`{"type":"object","properties":{"o":{}}}`),
				},
			},
			{Name: "odd", Schema: []byte(`{"type":"object"}`), Refused: map[string]string{"openai": "its schema takes too long to write out"}},
		},
		Rounds: []model.Round{{Calls: []model.Call{{ID: "c1", Tool: "notes.read", Args: `{}`}, {ID: "c2", Tool: "made up", Args: `{}`}}, Results: make([]model.Result, 2)}},
	}
	var body struct {
		Tools []offer `json:"tools"`
	}
	text := sent(t, func(url string) model.Provider {
		return model.Anthropic{Model: "m", BaseURL: url, MaxTokens: 100, Timeout: 30 * time.Second}
	}, request)
	require.NoError(t, json.Unmarshal(text, &body))
	require.Len(t, body.Tools, 3)
	require.Regexp(t, `^old_style_[0-9a-f]{10}$`, body.Tools[0].Name, "turns that began before there were wire names")
	require.Contains(t, string(body.Tools[0].Schema), "9007199254740993", "digits stay")
	require.Equal(t, "notes_read_x", body.Tools[1].Name)
	require.Contains(t, string(body.Tools[1].Schema), `{"z":{},"a":{}}`)
	require.Contains(t, string(text), `"name":"notes_read_x","type":"tool_use"`)
	require.NotContains(t, string(text), `"made up"`)

	body.Tools = nil
	text = sent(t, func(url string) model.Provider {
		return model.OpenAI{Model: "m", BaseURL: url, MaxTokens: 100, Timeout: 30 * time.Second}
	}, request)
	require.NoError(t, json.Unmarshal(text, &body))
	require.Len(t, body.Tools, 2, "one cannot be shown there")
	require.Contains(t, string(body.Tools[0].Function.Parameters), "9007199254740993")
	require.Equal(t, "notes_read_x", body.Tools[1].Function.Name)
	require.Contains(t, string(body.Tools[1].Function.Parameters), `{"o":{}}`)
}
