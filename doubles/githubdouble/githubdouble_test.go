package githubdouble_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/doubles/githubdouble"
	"github.com/bullpenhq/bullpen/doubles/mishap"
)

func start(t *testing.T) *githubdouble.Server {
	t.Helper()
	s, err := githubdouble.Start(t.Context(), githubdouble.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	s.Grant("ghp_1", "quill")
	return s
}

type comment struct {
	ID        int64  `json:"id"`
	Body      string `json:"body"`
	URL       string `json:"html_url"`
	InReplyTo int64  `json:"in_reply_to_id"`
	Message   string `json:"message"`
}

func call(t *testing.T, method, url, token, body string, into any) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, into))
	return res
}

func TestACommentIsCreatedAndListed(t *testing.T) {
	t.Parallel()
	s := start(t)
	comments := s.URL() + "/repos/acme/shop/issues/7/comments"
	var made comment
	require.Equal(t, http.StatusCreated, call(t, http.MethodPost, comments, "ghp_1", `{"body":"done"}`, &made).StatusCode)
	require.Contains(t, made.URL, "acme/shop/issues/7#issuecomment-")
	var listed []comment
	call(t, http.MethodGet, comments, "ghp_1", "", &listed)
	require.Equal(t, []comment{made}, listed)
}

func TestAListIsPagedByLinks(t *testing.T) {
	t.Parallel()
	s := start(t)
	for range 5 {
		s.Say("acme/shop", 7, "ines", "hello")
	}
	url, seen := s.URL()+"/repos/acme/shop/issues/7/comments?per_page=2", 0
	for url != "" {
		var page []comment
		res := call(t, http.MethodGet, url, "ghp_1", "", &page)
		seen += len(page)
		next, _, found := strings.Cut(res.Header.Get("Link"), ">")
		url = strings.TrimPrefix(next, "<")
		if !found {
			url = ""
		}
	}
	require.Equal(t, 5, seen)
}

func TestAReplyStaysInItsReviewThread(t *testing.T) {
	t.Parallel()
	s := start(t)
	var made comment
	call(t, http.MethodPost, s.URL()+"/repos/acme/shop/pulls/7/comments/42/replies", "ghp_1", `{"body":"done"}`, &made)
	require.Equal(t, int64(42), made.InReplyTo)
}

func TestRefusalsHaveTheVendorsForm(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Hide("quill", "acme/secret")
	for name, c := range map[string]struct {
		repo, token, body string
		status            int
		message           string
	}{
		"an unknown token":       {"acme/shop", "ghp_2", `{"body":"x"}`, 401, "Bad credentials"},
		"a hidden repository":    {"acme/secret", "ghp_1", `{"body":"x"}`, 404, "Not Found"},
		"an empty body":          {"acme/shop", "ghp_1", `{"body":" "}`, 422, "Validation Failed"},
		"a body that is no JSON": {"acme/shop", "ghp_1", `{`, 400, "Problems parsing JSON"},
		"a body that is too long": {
			"acme/shop", "ghp_1", `{"body":"` + strings.Repeat("x", 65_537) + `"}`, 422,
			"Validation Failed: body is too long (maximum is 65536 characters)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got comment
			res := call(t, http.MethodPost, s.URL()+"/repos/"+c.repo+"/issues/1/comments", c.token, c.body, &got)
			require.Equal(t, c.status, res.StatusCode)
			require.Equal(t, c.message, got.Message)
		})
	}
}

func TestLimitsSayWhenToComeBack(t *testing.T) {
	t.Parallel()
	s := start(t)
	reset := time.Unix(1_900_000_000, 0)
	s.Mishaps.Add("create", githubdouble.SecondaryLimit(7*time.Second), githubdouble.PrimaryLimit(reset), githubdouble.RateLimited(2*time.Second), mishap.Status(502, true))
	url := s.URL() + "/repos/acme/shop/issues/7/comments"
	var got comment
	res := call(t, http.MethodPost, url, "ghp_1", `{"body":"x"}`, &got)
	require.Equal(t, []string{"403 Forbidden", "7"}, []string{res.Status, res.Header.Get("Retry-After")})
	res = call(t, http.MethodPost, url, "ghp_1", `{"body":"x"}`, &got)
	require.Equal(t, []string{"403 Forbidden", "1900000000"}, []string{res.Status, res.Header.Get("X-RateLimit-Reset")})
	res = call(t, http.MethodPost, url, "ghp_1", `{"body":"x"}`, &got)
	require.Equal(t, []string{"429 Too Many Requests", "2"}, []string{res.Status, res.Header.Get("Retry-After")})
	require.Empty(t, s.Comments(), "what was limited has not landed")
}

func TestAPayloadIsSignedAsGitHubDocumentsIt(t *testing.T) {
	t.Parallel()
	w := githubdouble.Sign(githubdouble.Envelope{Secret: "It's a Secret to Everybody"}, []byte("Hello, World!"))
	require.Equal(t, "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", w.Header.Get("X-Hub-Signature-256"))
}

func TestAFormIsSignedAsItIsSent(t *testing.T) {
	t.Parallel()
	w := githubdouble.Webhook(githubdouble.Envelope{Secret: "s", Form: true}, githubdouble.Happening{Body: "@quill hi"})
	require.Equal(t, "application/x-www-form-urlencoded", w.Header.Get("Content-Type"))
	require.True(t, strings.HasPrefix(string(w.Body), "payload=%7B"))
}
