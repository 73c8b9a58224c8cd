package authorize

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

const (
	// maxAnswer is the largest document or answer that is read.
	maxAnswer = 1 << 20
	// maxIssuers is how many issuers of a server are tried.
	maxIssuers = 4
)

// challenge is what a server says when it turns a request away.
type challenge struct {
	// metadata is where it says whom it trusts; empty when it does not say.
	metadata string
	scopes   []string
	// insufficient means that the token is good, but not for this.
	insufficient bool
}

// challengeOf reads an answer; nil when it is no matter of tokens.
func challengeOf(response *http.Response) *challenge {
	if response.StatusCode != http.StatusUnauthorized && response.StatusCode != http.StatusForbidden {
		return nil
	}
	var c challenge
	// What cannot be read says nothing: the status says enough.
	all, _ := oauthex.ParseWWWAuthenticate(response.Header.Values("WWW-Authenticate"))
	for _, one := range all {
		if one.Scheme != "bearer" {
			continue
		}
		if c.metadata == "" {
			c.metadata = one.Params["resource_metadata"]
		}
		if len(c.scopes) == 0 {
			c.scopes = strings.Fields(one.Params["scope"])
		}
		c.insufficient = c.insufficient || one.Params["error"] == "insufficient_scope"
	}
	if response.StatusCode == http.StatusForbidden && !c.insufficient {
		return nil
	}
	return &c
}

// trust is whom a server takes tokens of.
type trust struct {
	resource string
	scopes   []string
	issuer   *oauthex.AuthServerMeta
}

// discover finds out whom a server trusts. known is an issuer that is taken first if the server still names it.
func (acc *Access) discover(ctx context.Context, c *challenge, known string) (*trust, error) {
	metadata, err := acc.resourceMetadata(ctx, c.metadata)
	if err != nil {
		return nil, err
	}
	if metadata == nil {
		return acc.oldTrust(ctx)
	}
	issuers := slices.Clone(metadata.AuthorizationServers)
	if len(issuers) == 0 {
		return nil, refuse("its metadata name no authorization server")
	}
	if i := slices.Index(issuers, known); i > 0 {
		issuers[0], issuers[i] = issuers[i], issuers[0]
	}
	var first error
	for _, issuer := range issuers[:min(len(issuers), maxIssuers)] {
		found, err := acc.issuer(ctx, issuer)
		if err == nil && found == nil {
			err = refuse("its authorization server %s has no metadata", quoted(issuer))
		}
		if err == nil {
			return &trust{resource: metadata.Resource, scopes: metadata.ScopesSupported, issuer: found}, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// resourceMetadata asks where the server said, then at the two well-known places. It answers nil when there is nothing anywhere.
func (acc *Access) resourceMetadata(ctx context.Context, named string) (*oauthex.ProtectedResourceMetadata, error) {
	const wellKnown = "/.well-known/oauth-protected-resource"
	places := []string{acc.origin(wellKnown)}
	if path := strings.Trim(acc.endpoint.Path, "/"); path != "" {
		places = []string{acc.origin(wellKnown + "/" + path), places[0]}
	}
	if named != "" && !slices.Contains(places[:1], named) {
		places = append([]string{named}, places...)
	}
	for _, place := range places {
		var found oauthex.ProtectedResourceMetadata
		ok, err := acc.fetch(ctx, place, &found)
		switch {
		case err != nil:
			return nil, err
		case !ok || found.Resource == "":
			continue
		case !acc.within(found.Resource):
			return nil, refuse("its metadata are those of another resource, %s", quoted(found.Resource))
		}
		return &found, nil
	}
	return nil, nil
}

func (acc *Access) origin(path string) string {
	u := url.URL{Scheme: acc.endpoint.Scheme, Host: acc.endpoint.Host, Path: path}
	return u.String()
}

// within reports whether a resource is the server's address, or one above it on the same host: servers name their host, too.
func (acc *Access) within(resource string) bool {
	u, err := url.Parse(resource)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	if !strings.EqualFold(u.Scheme, acc.endpoint.Scheme) || !strings.EqualFold(host(u), host(acc.endpoint)) {
		return false
	}
	above, path := strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(acc.endpoint.Path, "/")
	return path == above || strings.HasPrefix(path, above+"/")
}

// host answers host and port, the default one included.
func host(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[strings.ToLower(u.Scheme)]
	}
	return u.Hostname() + ":" + port
}

// oldTrust is that of the revision before there were metadata of resources: the server's own host issues the tokens.
func (acc *Access) oldTrust(ctx context.Context) (*trust, error) {
	base := acc.origin("")
	found, err := acc.issuer(ctx, base)
	if err != nil {
		return nil, err
	}
	if found == nil {
		found = &oauthex.AuthServerMeta{
			Issuer: base, AuthorizationEndpoint: base + "/authorize", TokenEndpoint: base + "/token", RegistrationEndpoint: base + "/register",
		}
	}
	return &trust{resource: acc.account.resource, issuer: found}, nil
}

// issuer reads the metadata of an issuer, at all places where they may be; nil when they are nowhere.
func (acc *Access) issuer(ctx context.Context, issuer string) (*oauthex.AuthServerMeta, error) {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.User != nil || !secure(u) {
		return nil, refuse("its authorization server %s is not at an https address", quoted(issuer))
	}
	found, err := auth.GetAuthServerMetadata(ctx, issuer, acc.client)
	switch {
	case err != nil:
		return nil, refuse("the metadata of its authorization server %s cannot be used: %s", quoted(issuer), quoted(err.Error())).because(err)
	case found == nil:
		return nil, nil
	case !slices.Contains(found.CodeChallengeMethodsSupported, "S256"):
		return nil, refuse("its authorization server %s does not take code challenges of S256", quoted(issuer))
	case found.TokenEndpoint == "":
		return nil, refuse("its authorization server %s names no token endpoint", quoted(issuer))
	}
	// A browser opens it, on the operator's machine.
	if page, err := url.Parse(found.AuthorizationEndpoint); err != nil || onLoopback(page) && !onLoopback(u) {
		return nil, refuse("its authorization server %s leads a browser to another machine's address", quoted(issuer))
	}
	return found, nil
}

// fetch reads a JSON document; it answers false when there is none.
func (acc *Access) fetch(ctx context.Context, place string, document any) (bool, error) {
	u, err := url.Parse(place)
	if err != nil || u.Host == "" || u.User != nil || !secure(u) {
		return false, refuse("it says that its metadata are at %s, which is no https address", quoted(place))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return false, refuse("it says that its metadata are at %s, which cannot be asked", quoted(place))
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("MCP-Protocol-Version", modern)
	response, err := acc.client.Do(request)
	if err != nil {
		return false, refuse("its metadata cannot be read: %s", unwrapped(err)).because(err)
	}
	defer response.Body.Close()
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case response.StatusCode >= http.StatusInternalServerError:
		return false, refuse("its metadata cannot be read: it answered with status %d", response.StatusCode)
	case response.StatusCode != http.StatusOK, kind != "application/json":
		return false, nil
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return false, refuse("its metadata cannot be read").because(err)
	}
	if len(data) > maxAnswer || json.Unmarshal(data, document) != nil {
		return false, refuse("what it says of itself at %s are no metadata", quoted(place))
	}
	return true, nil
}

// unwrapped answers the reason of a failed request without its address, which may hold a secret.
func unwrapped(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
