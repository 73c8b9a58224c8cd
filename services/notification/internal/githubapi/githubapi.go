// Package githubapi posts comments to GitHub and finds them again. It is a thin
// client of the few REST calls that this takes: it follows no redirects, caps
// what it reads, never retries, and says of each failure what it means for the
// message.
package githubapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/notification/internal/github"
	"github.com/bullpenhq/bullpen/services/notification/internal/outbound"
)

const (
	apiVersion = "2022-11-28"
	pageSize   = 100
	// maxPages bounds a search; more leaves the message in doubt.
	maxPages = 100
	// maxResponseBytes is more than a page of the longest comments has.
	maxResponseBytes = 32 << 20
	// skew is how far the vendor's clock and the database's may be apart.
	skew = 5 * time.Minute
	// unnamedWait is for a limit that does not say when it ends.
	unnamedWait = time.Minute
)

// Client is GitHub as a surface. It is safe for concurrent use.
type Client struct {
	base string
	http *http.Client
	now  func() time.Time
}

// New makes a client of the API at base, such as https://api.github.com.
func New(base string, now func() time.Time) *Client {
	return &Client{
		base: strings.TrimRight(base, "/"),
		http: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		now:  now,
	}
}

type comment struct {
	ID   json.Number `json:"id"`
	Body string      `json:"body"`
	URL  string      `json:"html_url"`
}

// Post posts a message as a comment.
func (c *Client) Post(ctx context.Context, token config.Secret, m outbound.Message) (outbound.Posted, error) {
	target, kind, err := place(m.ConversationKey)
	if err != nil {
		return outbound.Posted{}, err
	}
	path := list(target)
	if target.On == github.OnReview {
		path += fmt.Sprintf("/%d/replies", target.Root)
	}
	body, err := json.Marshal(map[string]string{"body": github.Marked(m.Body, m.ID)})
	if err != nil {
		return outbound.Posted{}, fmt.Errorf("encode comment: %w", err)
	}
	var made comment
	if _, err := c.call(ctx, token, http.MethodPost, path, body, &made); err != nil {
		return outbound.Posted{}, err
	}
	return outbound.Posted{VendorID: kind + ":" + made.ID.String(), URL: made.URL}, nil
}

// Find reads the comments of the conversation since the message was queued.
func (c *Client) Find(ctx context.Context, token config.Secret, m outbound.Message) (outbound.Posted, bool, error) {
	target, kind, err := place(m.ConversationKey)
	if err != nil {
		return outbound.Posted{}, false, err
	}
	query := url.Values{"per_page": {strconv.Itoa(pageSize)}}
	if target.On != github.OnCommit { // whose list cannot be narrowed
		query.Set("since", m.Since.Add(-skew).UTC().Format(time.RFC3339))
	}
	for page := 1; page <= maxPages; page++ {
		query.Set("page", strconv.Itoa(page))
		var found []comment
		more, err := c.call(ctx, token, http.MethodGet, list(target)+"?"+query.Encode(), nil, &found)
		if err != nil {
			return outbound.Posted{}, false, err
		}
		for _, f := range found {
			if id, ours := github.MarkerIn(f.Body); ours && id == m.ID {
				return outbound.Posted{VendorID: kind + ":" + f.ID.String(), URL: f.URL}, true, nil
			}
		}
		if !more {
			return outbound.Posted{}, false, nil
		}
	}
	return outbound.Posted{}, false, outbound.NewFailure(outbound.InDoubt, "The conversation is too long to be searched.", nil)
}

// place answers where a conversation is, and what its comments are called in
// webhooks.
func place(key string) (github.Target, string, error) {
	target, ok := github.ParseKey(key)
	kind := map[string]string{
		github.OnIssue: "issue_comment", github.OnReview: "pull_request_review_comment", github.OnCommit: "commit_comment",
	}[target.On]
	if !ok || kind == "" {
		f := outbound.NewFailure(outbound.Refused, "Comments cannot be posted in this conversation.", nil)
		f.Class = fault.Invalid
		return github.Target{}, "", f
	}
	return target, kind, nil
}

func list(t github.Target) string {
	repo := "/repos/" + url.PathEscape(t.Owner) + "/" + url.PathEscape(t.Repo)
	switch t.On {
	case github.OnReview:
		return fmt.Sprintf("%s/pulls/%d/comments", repo, t.Number)
	case github.OnCommit:
		return repo + "/commits/" + url.PathEscape(t.SHA) + "/comments"
	default:
		return fmt.Sprintf("%s/issues/%d/comments", repo, t.Number)
	}
}

// call makes one request and decodes its answer; more reports a next page.
func (c *Client) call(ctx context.Context, token config.Secret, method, path string, body []byte, into any) (more bool, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+token.Reveal())
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("X-GitHub-Api-Version", apiVersion)
	req.Header.Set("User-Agent", "bullpen")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusCreated {
		return false, c.failure(res)
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxResponseBytes+1))
	if err != nil {
		return false, err
	}
	if len(raw) > maxResponseBytes {
		return false, errors.New("the answer is too long")
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return false, fmt.Errorf("decode answer: %w", err)
	}
	return strings.Contains(res.Header.Get("Link"), `rel="next"`), nil
}

// failure says what a status means for the message.
func (c *Client) failure(res *http.Response) *outbound.Failure {
	refused := func(class fault.Class, detail string) *outbound.Failure {
		f := outbound.NewFailure(outbound.Refused, detail, errors.New(res.Status))
		f.Class = class
		return f
	}
	if wait, limited := c.limited(res); limited {
		f := outbound.NewFailure(outbound.Limited, "GitHub limits the rate of this account.", errors.New(res.Status))
		f.Wait = wait
		return f
	}
	switch status := res.StatusCode; {
	case status == http.StatusUnauthorized:
		return refused(fault.Unavailable, "GitHub does not accept the seat's token; an operator has to renew it.")
	case status == http.StatusForbidden:
		return refused(fault.Forbidden, "The seat's account may not comment there.")
	case status == http.StatusNotFound:
		return refused(fault.Forbidden, "The conversation does not exist, or the seat's account may not see it.")
	case status == http.StatusGone:
		return refused(fault.Forbidden, "The conversation was deleted, or comments are turned off there.")
	case status == http.StatusUnprocessableEntity:
		return refused(fault.Invalid, "GitHub refuses the comment: the conversation may be locked, or the text is not acceptable.")
	case status >= 300 && status < 400:
		return refused(fault.Unavailable, "GitHub points somewhere else; the repository may have been renamed.")
	case status >= 400 && status < 500 && status != http.StatusRequestTimeout:
		return refused(fault.Unavailable, fmt.Sprintf("GitHub refuses the call with status %d.", status))
	default:
		return outbound.NewFailure(outbound.InDoubt, fmt.Sprintf("GitHub answers with status %d.", status), nil)
	}
}

// limited reads the two ways in which GitHub asks for quiet: Retry-After, which
// comes first, and an allowance that is used up until a time. Status 403 is
// used for both, and for much else.
func (c *Client) limited(res *http.Response) (time.Duration, bool) {
	if res.StatusCode != http.StatusForbidden && res.StatusCode != http.StatusTooManyRequests {
		return 0, false
	}
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		return time.Duration(seconds) * time.Second, true
	}
	if res.Header.Get("X-RateLimit-Remaining") == "0" {
		if reset, err := strconv.ParseInt(res.Header.Get("X-RateLimit-Reset"), 10, 64); err == nil {
			return max(time.Unix(reset, 0).Sub(c.now()), time.Second), true
		}
		return unnamedWait, true
	}
	return unnamedWait, res.StatusCode == http.StatusTooManyRequests
}
