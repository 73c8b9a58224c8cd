package authorize

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

const (
	modern = "2026-07-28"
	// maxAnswers is how many challenges to one request are answered.
	maxAnswers = 2
)

// Prepare gets a token, when none is held, by asking the server what it wants. It answers nil as well when the server wants nothing.
func (acc *Access) Prepare(ctx context.Context) error {
	t, err := acc.load(ctx)
	if err == nil && t != nil {
		t, err = acc.usable(ctx)
	}
	if err != nil || t != nil {
		return err
	}
	c, err := acc.draw(ctx)
	if err != nil || c == nil {
		return err
	}
	_, err = acc.answer(ctx, c, nil)
	return err
}

// draw asks the server without a token and answers what it says to that; nil when it does not mind. A server that is out of reach
// says nothing: whoever calls it next finds out, and says so better.
func (acc *Access) draw(ctx context.Context) (*challenge, error) {
	request, err := acc.question(ctx)
	if err != nil {
		return nil, err
	}
	for name, value := range acc.server.Headers {
		request.Header.Set(name, value)
	}
	request.Header.Del("Authorization")
	client := *acc.client
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Host != acc.endpoint.Host || r.URL.Scheme != acc.endpoint.Scheme {
			return errors.New("it redirects to another host, and its headers are credentials")
		}
		return acc.client.CheckRedirect(r, via)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, ctx.Err()
	}
	defer response.Body.Close()
	return challengeOf(response), nil
}

// question is one that every server answers, be it with a refusal.
func (acc *Access) question(ctx context.Context) (*http.Request, error) {
	if acc.server.SSE {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, acc.endpoint.String(), nil)
		if err != nil {
			return nil, refuse("its address cannot be asked")
		}
		request.Header.Set("Accept", "text/event-stream")
		return request, nil
	}
	const method = "server/discover"
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "authorize", "method": method, "params": map[string]any{"_meta": map[string]any{
		"io.modelcontextprotocol/protocolVersion":    modern,
		"io.modelcontextprotocol/clientCapabilities": struct{}{},
		"io.modelcontextprotocol/clientInfo":         map[string]string{"name": "bullpen", "version": acc.authorizer.options.Version},
	}}})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, acc.endpoint.String(), bytes.NewReader(body))
	if err != nil {
		return nil, refuse("its address cannot be asked")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("MCP-Protocol-Version", modern)
	request.Header.Set("Mcp-Method", method)
	return request, nil
}

// Transport shows the token with every request over base, and answers the server's challenges. Its error is a [*Refused] when the
// server turned the request away and nothing more can be done about it here.
func (acc *Access) Transport(base http.RoundTripper) http.RoundTripper {
	return &transport{access: acc, base: base}
}

type transport struct {
	access *Access
	base   http.RoundTripper
}

// RoundTrip implements [http.RoundTripper]. A request is made again only after the server refused to look at it.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	shown, err := t.access.usable(r.Context())
	if err != nil {
		closeBody(r)
		return nil, turnedAway(err)
	}
	for answers := 0; ; answers++ {
		response, err := t.base.RoundTrip(shownIn(r, shown))
		if err != nil {
			return nil, err
		}
		c := challengeOf(response)
		if c == nil {
			return response, nil
		}
		discard(response)
		if answers == maxAnswers {
			return nil, refuse("it refuses every token that it is shown")
		}
		if shown, err = t.access.answer(r.Context(), c, shown); err != nil {
			return nil, turnedAway(err)
		}
		if r, err = again(r); err != nil {
			return nil, err
		}
	}
}

// turnedAway marks an error as that of a request that nobody looked at.
func turnedAway(err error) error {
	var refused *Refused
	if errors.As(err, &refused) {
		return refused
	}
	return refuse("it wants a token, and none could be had: %s", err).because(err)
}

// shownIn is a request with a token. The one that was given stays as it is.
func shownIn(r *http.Request, t *token) *http.Request {
	if t == nil {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+t.Access)
	return r
}

// again is the same request once more.
func again(r *http.Request) (*http.Request, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, nil
	}
	if r.GetBody == nil {
		return nil, refuse("it wants a token, and the request cannot be made again")
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = body
	return r, nil
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

// discard reads what little stands in a refusal, so that its connection can be used again.
func discard(response *http.Response) {
	const little = 64 << 10
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, little))
	_ = response.Body.Close()
}
