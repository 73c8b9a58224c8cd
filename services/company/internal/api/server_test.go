package api_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// site is the configuration over plain HTTP.
type site struct {
	t *testing.T
	*bundle
	url, principal string
}

func serve(t *testing.T, o options) *site {
	t.Helper()
	b := setup(t, o)
	server := httptest.NewServer(b.mux())
	t.Cleanup(server.Close)
	return &site{t: t, bundle: b, url: server.URL, principal: b.keys.Sign(&rpc.Principal{Kind: rpc.KindOperator, Id: "op-1", Issuer: "console"}, 0)}
}

// answer is what came back; body is nil where there is none.
type answer struct {
	status int
	header http.Header
	body   map[string]any
}

func (s *site) ask(method, path, body string, headers ...string) answer {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	req.Header.Set("Bullpen-Principal", s.principal)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(s.t, err)
	out := answer{status: res.StatusCode, header: res.Header}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		require.Equal(s.t, "no-store", res.Header.Get("Cache-Control"))
		require.NoError(s.t, json.Unmarshal(text, &out.body))
	}
	return out
}

func (a answer) named(t *testing.T, status int, name string) answer {
	t.Helper()
	require.Equal(t, status, a.status, a.body)
	require.Equal(t, name, a.body["error"], a.body)
	require.NotEmpty(t, a.body["detail"])
	return a
}

func (s *site) document() string {
	s.t.Helper()
	out, err := s.company.GetDocument(s.t.Context(), &companyv1.GetDocumentRequest{})
	require.NoError(s.t, err)
	return out.GetDocument()
}

const search = `{"name": "search", "command": "search-mcp", "env": {"API_KEY": "${SEARCH_KEY}"}, "_summary": "search the web"}`

func TestAServerIsAddedBehindTheOthersAndNothingElseChanges(t *testing.T) {
	t.Parallel()
	s := serve(t, options{})
	s.put(lantern, "")
	got := s.ask("PUT", "/config/mcp-servers/search", search, "If-None-Match", "*")
	require.Equal(t, http.StatusCreated, got.status, got.body)
	require.EqualValues(t, 2, got.body["epoch"])
	require.Equal(t, `"`+got.body["revision_id"].(string)+`"`, got.header.Get("ETag"))
	require.Equal(t, []any{"No value is known for ${SEARCH_KEY} yet; the server is not started before one is."}, got.body["warnings"])
	added := "  - name: search\n    command: search-mcp\n    env:\n      API_KEY: ${SEARCH_KEY}\n"
	require.Equal(t, lantern, strings.Replace(s.document(), added, "", 1))

	list := s.ask("GET", "/config/mcp-servers", "")
	require.Len(t, list.body["servers"], 2)
	one := s.ask("GET", "/config/mcp-servers/search", "")
	require.Equal(t, map[string]any{"name": "search", "command": "search-mcp", "env": map[string]any{"API_KEY": "${SEARCH_KEY}"}}, one.body)
	require.Equal(t, http.StatusNotModified, s.ask("GET", "/config/mcp-servers/search", "", "If-None-Match", one.header.Get("ETag")).status)

	revisions, err := s.company.ListRevisions(t.Context(), &companyv1.ListRevisionsRequest{})
	require.NoError(t, err)
	require.Equal(t, "search the web", revisions.GetRevisions()[0].GetSummary())
	require.Equal(t, "operator:op-1", revisions.GetRevisions()[0].GetCreatedBy())

	s.ask("PUT", "/config/mcp-servers/search", search, "If-None-Match", "*").named(t, http.StatusPreconditionFailed, "already_configured")
}

func TestAServerIsReplacedOnTheRevisionThatItsAuthorRead(t *testing.T) {
	t.Parallel()
	s := serve(t, options{})
	s.put(lantern, "")
	first := s.ask("GET", "/config/mcp-servers/chat", "").header.Get("ETag")
	entry := `{"name": "chat", "shared": false, "command": "chat-mcp", "args": ["-v"]}`

	got := s.ask("PUT", "/config/mcp-servers/chat", entry, "If-Match", first, "X-Summary", "say more")
	require.Equal(t, http.StatusCreated, got.status, got.body)
	require.Empty(t, got.body["warnings"], "a seat declares credentials for it")
	second := got.body["revision_id"].(string)
	require.Contains(t, s.document(), "  - name: chat\n    shared: false\n    command: chat-mcp\n    args:\n      - -v\n")

	again := s.ask("PUT", "/config/mcp-servers/chat", entry, "If-Match", second, "X-Summary", "the same")
	require.Equal(t, http.StatusOK, again.status)
	require.Equal(t, true, again.body["unchanged"])

	lost := s.ask("PUT", "/config/mcp-servers/chat", `{"shared": false, "command": "other"}`, "If-Match", first, "X-Summary", "late").
		named(t, http.StatusConflict, "revision_advanced")
	require.Equal(t, second, lost.body["current_revision_id"])
	kept, err := s.company.GetDocument(t.Context(), &companyv1.GetDocumentRequest{RevisionId: lost.body["stored_revision_id"].(string)})
	require.NoError(t, err)
	require.Contains(t, kept.GetDocument(), "command: other")

	require.Equal(t, http.StatusCreated, s.ask("PUT", "/config/mcp-servers/chat", `{"shared": false, "command": "new"}`, "If-Match", "*", "X-Summary", "x").status)
	require.Equal(t, http.StatusCreated, s.ask("PUT", "/config/mcp-servers/chat", `{"shared": false, "command": "newer"}`, "X-Summary", "x").status,
		"without a precondition the entry goes on what is active")
}

func TestARefusedEntrySaysWhatIsWrongAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, options{})
	put := func(name, body string, headers ...string) answer {
		return s.ask("PUT", "/config/mcp-servers/"+name, body, append([]string{"X-Summary", "x"}, headers...)...)
	}
	put("a", `{"command": "x"}`, "If-None-Match", "*").named(t, http.StatusConflict, "no_active_revision")
	put("a", `{"command": "x"}`, "If-Match", "*").named(t, http.StatusPreconditionFailed, "no_active_revision")
	s.ask("GET", "/config/mcp-servers/chat", "").named(t, http.StatusConflict, "no_active_revision")

	s.put(lantern, "")
	require.Contains(t, put("nobody", `{"command": "x"}`).named(t, http.StatusNotFound, "no_such_entity").body["detail"], "If-None-Match")
	require.NotContains(t, s.ask("GET", "/config/mcp-servers/nobody", "").named(t, http.StatusNotFound, "no_such_entity").body["detail"], "add")
	put("CHAT", `{"command": "x"}`, "If-None-Match", "*").named(t, http.StatusPreconditionFailed, "already_configured")
	put("a", `{"command": "x"}`, "X-Summary", " ").named(t, http.StatusBadRequest, "summary_required")
	put("a", `{"name": "b", "command": "x"}`, "If-None-Match", "*").named(t, http.StatusBadRequest, "identity_mismatch")
	put("a", `[]`, "If-None-Match", "*").named(t, http.StatusBadRequest, "invalid_body")
	put("a", `{"command": "x", "command": "y"}`, "If-None-Match", "*").named(t, http.StatusBadRequest, "invalid_body")
	put("a", `{"command": "x"}`, "If-None-Match", "*", "Content-Type", "text/plain").named(t, http.StatusUnsupportedMediaType, "unsupported_media_type")
	put("a", `{"command": "`+strings.Repeat("x", 300<<10)+`"}`, "If-None-Match", "*").named(t, http.StatusRequestEntityTooLarge, "body_too_large")
	put("a", `{"env": {"T": "__redacted__"}, "command": "x"}`, "If-None-Match", "*").named(t, http.StatusUnprocessableEntity, "nothing_to_restore")

	unknown := put("a", `{"comand": "x"}`, "If-None-Match", "*").named(t, http.StatusBadRequest, "invalid_body")
	require.Equal(t, []any{"mcp_servers", 1.0, "comand"}, unknown.body["problems"].([]any)[1].(map[string]any)["segments"])

	wrong := put("chat", `{"shared": true, "command": "x", "env": {"API_TOKEN": "hunter2"}}`, "If-Match", "*").
		named(t, http.StatusUnprocessableEntity, "document_problems")
	paths := []string{}
	for _, p := range wrong.body["problems"].([]any) {
		problem := p.(map[string]any)
		paths = append(paths, problem["path"].(string))
		require.Positive(t, problem["line"])
		require.NotContains(t, problem["message"], "hunter2")
		if strings.HasPrefix(problem["path"].(string), "units[0].roles[0]") {
			require.Equal(t, "ops-lead", problem["seat"])
		}
		if strings.HasPrefix(problem["path"].(string), "units[0]") {
			require.Equal(t, "operations", problem["unit"])
		}
	}
	require.Equal(t, []string{"mcp_servers[0].env.API_TOKEN", "units[0].mcp_env.chat", "units[0].roles[0].mcp_env.chat"}, paths,
		"the whole company is checked")
	require.Equal(t, http.StatusMethodNotAllowed, s.ask("DELETE", "/config/mcp-servers/chat", "").status)
	require.Equal(t, lantern, s.document())
}

func TestADryRunStoresNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, options{env: map[string]string{"SEARCH_KEY": "k"}})
	s.put(lantern, "")
	good := s.ask("PUT", "/config/mcp-servers/search?dry_run=true", search, "If-None-Match", "*")
	require.Equal(t, http.StatusOK, good.status)
	require.Equal(t, true, good.body["valid"])
	require.NotEmpty(t, good.body["base_revision_id"])
	require.Empty(t, good.body["warnings"])
	bad := s.ask("PUT", "/config/mcp-servers/search?dry_run=true", `{"transport": "http"}`, "If-None-Match", "*")
	require.Equal(t, http.StatusOK, bad.status)
	require.Equal(t, false, bad.body["valid"])
	require.Len(t, bad.body["problems"], 1)
	require.Equal(t, lantern, s.document())
}

// Whoever meant to try something does not find it done because of a letter.
func TestAQueryThatIsNotUnderstoodStoresNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, options{env: map[string]string{"SEARCH_KEY": "k"}})
	s.put(lantern, "")
	for _, query := range []string{"dry_run=yes", "dry_run=", "dry_run", "dry-run=true", "DRY_RUN=true", "dry_run=true&dry_run=false", "dry_run=true;x", "%zz"} {
		refused := s.ask("PUT", "/config/mcp-servers/search?"+query, search, "If-None-Match", "*", "X-Summary", "x")
		require.Equal(t, http.StatusBadRequest, refused.status, query)
		require.Equal(t, "invalid_query", refused.body["error"], query)
	}
	require.Equal(t, lantern, s.document())
	require.Equal(t, http.StatusCreated, s.ask("PUT", "/config/mcp-servers/search?dry_run=false", search, "If-None-Match", "*", "X-Summary", "x").status)
}

func TestAMaskedCredentialIsRestoredFromWhatIsStored(t *testing.T) {
	t.Parallel()
	s := serve(t, options{})
	s.put(lantern, "")
	entry := `{"transport": "http", "url": "https://code.example/mcp", "headers": {"Authorization": "Bearer ${T}", "X-Team": "ops"}, "shared": true}`
	require.Equal(t, http.StatusCreated, s.ask("PUT", "/config/mcp-servers/code", entry, "If-None-Match", "*", "X-Summary", "x").status)
	shown := s.ask("GET", "/config/mcp-servers/code", "")
	require.Equal(t, map[string]any{"Authorization": "__redacted__", "X-Team": "ops"}, shown.body["headers"])

	shown.body["url"] = "https://code.example/v2"
	changed, err := json.Marshal(shown.body)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, s.ask("PUT", "/config/mcp-servers/code", string(changed), "If-Match", shown.header.Get("ETag"), "X-Summary", "x").status)
	require.Contains(t, s.document(), "Authorization: Bearer ${T}")
	require.Contains(t, s.document(), "https://code.example/v2")
}

func TestOnlyWhoWritesTheCompanyWritesAServer(t *testing.T) {
	t.Parallel()
	s := serve(t, options{})
	s.put(lantern, "")
	s.principal = s.keys.Sign(&rpc.Principal{Kind: rpc.KindPerson, Id: "ines-rocha", Issuer: "console"}, 0)
	require.Equal(t, http.StatusOK, s.ask("GET", "/config/mcp-servers/chat", "").status)
	s.ask("PUT", "/config/mcp-servers/search", search, "If-None-Match", "*").named(t, http.StatusForbidden, "forbidden")
	s.principal = "nonsense"
	s.ask("GET", "/config/mcp-servers", "").named(t, http.StatusUnauthorized, "invalid_token")
}

func TestTheSameOperationAddsAServerOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	b.put(lantern, "")
	ctx := rpc.WithOperation(operator(t), "op-add-search")
	req := &companyv1.PutMcpServerRequest{Name: "search", EntryJson: `{"command": "x"}`, Summary: "x", Create: true}
	first, err := b.company.PutMcpServer(ctx, req)
	require.NoError(t, err)
	second, err := b.company.PutMcpServer(ctx, req)
	require.NoError(t, err)
	require.Equal(t, first.GetRevision().GetRevisionId(), second.GetRevision().GetRevisionId())
	_, err = b.company.PutMcpServer(operator(t), req)
	require.Equal(t, "ALREADY_CONFIGURED", refused(t, err, fault.Exists).Reason)
}
