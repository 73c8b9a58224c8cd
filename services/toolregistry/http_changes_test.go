package toolregistry_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// plainly makes a request over plain HTTP, with an API token or, where that begins so, as a signed principal. kind is the body's
// media type, empty for none.
func (w *world) plainly(t *testing.T, method, path, token, kind, body string) (status int, answer map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader(body))
	require.NoError(t, err)
	if signed, ok := strings.CutPrefix(token, "principal "); ok {
		req.Header.Set("Bullpen-Principal", signed)
	} else if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &answer), string(text))
	return res.StatusCode, answer
}

func TestChangesOfToolsOverPlainHTTP(t *testing.T) {
	t.Parallel()
	company := companyOf()
	company.ToolPolicy = &companyv1.ToolPolicy{HoldChangedTools: true, Otherwise: "allow"}
	w := build(t, options{still: true, company: company, http: true})
	// show lets the registry see ada's server with a tool of that description.
	show := func(description string) {
		w.neighbours.bring("ada", &mcphostv1.ListServerToolsResponse{Digest: description, Servers: []*mcphostv1.ServerTools{
			{Server: "gh", Own: true, State: "ready", ToolsJson: []string{`{"name":"issues/get","description":"` + description + `",` + object + `}`}},
		}})
		w.forward(time.Minute)
		_, err := w.turn.ListTools(asSeat(t.Context()), &toolregistryv1.ListToolsRequest{})
		require.NoError(t, err)
	}
	changes := func() []any {
		status, answer := w.plainly(t, "GET", "/tools/changes?server=gh", "good", "", "")
		require.Equal(t, http.StatusOK, status)
		return answer["changes"].([]any)
	}
	show("Gets.")
	require.Empty(t, changes())
	show("Gets more.")
	first := changes()[0].(map[string]any)
	require.Equal(t, []any{"gh", "issues/get", true}, []any{first["server"], first["tool"], first["held"]})
	require.Equal(t, "Gets.", first["known"].(map[string]any)["description"])
	require.Equal(t, "Gets more.", first["current"].(map[string]any)["description"])
	digest := first["digest"].(string)
	show("Gets most.")

	const asJSON, path = "application/json", "/tools/changes/gh/issues%2Fget/accept"
	seat := "principal " + w.keys.Sign(&rpc.Principal{Kind: rpc.KindSeat, Id: "ada", Seat: "ada", Issuer: "turn", Turn: &toolv1.TurnClaims{TurnId: "t1"}}, 0)
	for _, c := range []struct {
		method, path, token, kind, body string
		status                          int
	}{
		{"GET", "/tools/changes", "", "", "", http.StatusUnauthorized},
		{"POST", path, "", asJSON, `{"digest":"` + digest + `"}`, http.StatusUnauthorized},
		{"GET", "/tools/changes", seat, "", "", http.StatusForbidden},
		{"POST", path, seat, asJSON, `{"digest":"` + digest + `"}`, http.StatusForbidden},
		{"POST", path, "good", "", `{"digest":"` + digest + `"}`, http.StatusUnsupportedMediaType},
		{"POST", path, "good", "application/x-www-form-urlencoded", `digest=` + digest, http.StatusUnsupportedMediaType},
		{"POST", path, "good", asJSON, ``, http.StatusBadRequest},
		{"POST", path, "good", asJSON, `{"digest":1}`, http.StatusBadRequest},
		{"POST", path, "good", asJSON, `{"digest":"` + digest + `","note":"x"}`, http.StatusBadRequest},
		{"POST", path, "good", asJSON, `{"digest":"` + strings.Repeat("a", 70_000) + `"}`, http.StatusRequestEntityTooLarge},
		{"POST", "/tools/changes/gh/other/accept", "good", asJSON, `{"digest":"` + digest + `"}`, http.StatusNotFound},
		{"POST", path, "good", asJSON, `{"digest":"` + digest + `"}`, http.StatusConflict},
	} {
		status, answer := w.plainly(t, c.method, c.path, c.token, c.kind, c.body)
		require.Equal(t, c.status, status, "%s %s %.80s %v", c.method, c.path, c.body, answer)
		if status == http.StatusConflict {
			require.Equal(t, "stale_version", answer["class"], "it has changed again since")
		}
	}
	status, answer := w.plainly(t, "POST", path, "good", asJSON, `{"digest":"`+changes()[0].(map[string]any)["digest"].(string)+`"}`)
	require.Equal(t, http.StatusOK, status, answer)
	require.Empty(t, changes())
}
