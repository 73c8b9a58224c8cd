// Package oauthtest is an authorization server and a resource server for tests: real ones over HTTP, which check what they are told
// as strictly as the specifications let them, and misbehave on demand.
package oauthtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Manners are what an issuer does, and fails to do.
type Manners struct {
	// Prefix is the path of the issuer's identifier; OIDC serves the metadata as OpenID Connect does, Appended after the path.
	Prefix         string
	OIDC, Appended bool
	// Methods are those that clients prove themselves by.
	Methods []string
	// Closed registers nobody; Documents takes addresses for names.
	Closed, Documents bool
	// SaysIssuer names the issuer in answers, and Issuer is the name in place of the true one.
	SaysIssuer bool
	Issuer     string
	// MetadataIssuer is the name in the metadata in place of the true one.
	MetadataIssuer string
	Scopes         []string
	// Refresh gives refresh tokens, each good for one use; Lifetime is what is said of access tokens.
	Refresh  bool
	Lifetime int
	// Grant answers the scopes that are granted of those asked for; nil for all.
	Grant func(asked []string) []string
	// Deny answers consents with an error.
	Deny string
	// Secrets are clients that were registered by hand, with their secrets.
	Secrets map[string]string
	// NoPKCE says nothing of code challenges.
	NoPKCE bool
}

// Issuer is a running authorization server.
type Issuer struct {
	*httptest.Server
	Manners

	mu      sync.Mutex
	clients map[string]registered
	codes   map[string]grant
	fresh   map[string]grant // by refresh token
	tokens  map[string]grant
	seen    []Seen
}

type registered struct{ secret, method, redirect string }

type grant struct {
	client, resource, redirect, challenge string
	scopes                                []string
}

// Seen is a request that an issuer took: where, and what it said.
type Seen struct {
	Path string
	Form url.Values
	// Basic says that the client proved itself in the header.
	Basic bool
	// Registration is the body of a registration.
	Registration map[string]any
}

// Start starts an issuer that ends with the test.
func Start(t testing.TB, m Manners) *Issuer {
	t.Helper()
	if m.Methods == nil {
		m.Methods = []string{"none", "client_secret_basic", "client_secret_post"}
	}
	i := &Issuer{Manners: m, clients: map[string]registered{}, codes: map[string]grant{}, fresh: map[string]grant{}, tokens: map[string]grant{}}
	for id, secret := range m.Secrets {
		i.clients[id] = registered{secret: secret, method: "any"}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+i.metadataPath(), i.metadata)
	mux.HandleFunc("POST "+m.Prefix+"/register", i.register)
	mux.HandleFunc("GET "+m.Prefix+"/authorize", i.authorize)
	mux.HandleFunc("POST "+m.Prefix+"/token", i.token)
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func (i *Issuer) metadataPath() string {
	kind := "/.well-known/oauth-authorization-server"
	if i.OIDC {
		kind = "/.well-known/openid-configuration"
	}
	if i.Appended {
		return i.Prefix + kind
	}
	return kind + i.Prefix
}

// ID is the issuer's identifier.
func (i *Issuer) ID() string { return i.URL + i.Prefix }

// Seen answers the requests so far, to one path or to all.
func (i *Issuer) Seen(path string) []Seen {
	i.mu.Lock()
	defer i.mu.Unlock()
	var found []Seen
	for _, s := range i.seen {
		if path == "" || s.Path == i.Prefix+path {
			found = append(found, s)
		}
	}
	return found
}

// Revoke ends every access token, and every refresh token when all is true.
func (i *Issuer) Revoke(all bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.tokens)
	if all {
		clear(i.fresh)
	}
}

func (i *Issuer) saw(s Seen) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.seen = append(i.seen, s)
}

func write(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document)
}

func (i *Issuer) metadata(w http.ResponseWriter, r *http.Request) {
	i.saw(Seen{Path: r.URL.Path})
	issuer := i.ID()
	if i.MetadataIssuer != "" {
		issuer = i.MetadataIssuer
	}
	document := map[string]any{
		"issuer": issuer, "authorization_endpoint": i.ID() + "/authorize", "token_endpoint": i.ID() + "/token",
		"response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code", "refresh_token", "client_credentials"},
		"token_endpoint_auth_methods_supported": i.Methods, "client_id_metadata_document_supported": i.Documents,
		"authorization_response_iss_parameter_supported": i.SaysIssuer, "scopes_supported": i.Scopes,
	}
	if !i.Closed {
		document["registration_endpoint"] = i.ID() + "/register"
	}
	if !i.NoPKCE {
		document["code_challenge_methods_supported"] = []string{"S256"}
	}
	write(w, http.StatusOK, document)
}

func (i *Issuer) register(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	var asked struct {
		RedirectURIs []string `json:"redirect_uris"`
		Method       string   `json:"token_endpoint_auth_method"`
	}
	data := json.RawMessage{}
	if i.Closed || json.NewDecoder(r.Body).Decode(&data) != nil || json.Unmarshal(data, &body) != nil || json.Unmarshal(data, &asked) != nil ||
		len(asked.RedirectURIs) != 1 || !slices.Contains(i.Methods, asked.Method) {
		write(w, http.StatusBadRequest, map[string]string{"error": "invalid_client_metadata"})
		return
	}
	i.saw(Seen{Path: r.URL.Path, Registration: body})
	c := registered{method: asked.Method, redirect: asked.RedirectURIs[0]}
	answer := map[string]any{"client_id": "client-" + rand.Text(), "token_endpoint_auth_method": asked.Method, "redirect_uris": asked.RedirectURIs}
	if c.method != "none" {
		c.secret = "secret-" + rand.Text()
		answer["client_secret"], answer["client_secret_expires_at"] = c.secret, 0
	}
	i.mu.Lock()
	i.clients[answer["client_id"].(string)] = c
	i.mu.Unlock()
	write(w, http.StatusCreated, answer)
}

// authorize consents at once, as a browser would see it.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	i.saw(Seen{Path: r.URL.Path, Form: q})
	i.mu.Lock()
	c, known := i.clients[q.Get("client_id")]
	i.mu.Unlock()
	known = known || i.Documents && strings.HasPrefix(q.Get("client_id"), "https://")
	redirect, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || !known || c.redirect != "" && c.redirect != redirect.String() || q.Get("response_type") != "code" ||
		q.Get("code_challenge_method") != "S256" || q.Get("resource") == "" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	answer := url.Values{"state": {q.Get("state")}}
	if i.SaysIssuer && i.Issuer != "-" || i.Issuer != "" && i.Issuer != "-" {
		answer.Set("iss", i.ID())
		if i.Issuer != "" {
			answer.Set("iss", i.Issuer)
		}
	}
	if i.Deny != "" {
		answer.Set("error", i.Deny)
	} else {
		code := rand.Text()
		i.mu.Lock()
		i.codes[code] = grant{
			client: q.Get("client_id"), resource: q.Get("resource"), redirect: q.Get("redirect_uri"), challenge: q.Get("code_challenge"),
			scopes: strings.Fields(q.Get("scope")),
		}
		i.mu.Unlock()
		answer.Set("code", code)
	}
	redirect.RawQuery = answer.Encode()
	http.Redirect(w, r, redirect.String(), http.StatusFound)
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	id, secret, basic := r.BasicAuth()
	if basic {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	i.saw(Seen{Path: r.URL.Path, Form: r.PostForm, Basic: basic})
	i.mu.Lock()
	defer i.mu.Unlock()
	c, known := i.clients[id]
	method := "none"
	if basic {
		method = "client_secret_basic"
	} else if secret != "" {
		method = "client_secret_post"
	}
	known = known || i.Documents && strings.HasPrefix(id, "https://")
	if !known || c.secret != secret || !slices.Contains(i.Methods, method) {
		write(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	g, ok := i.granted(r.PostForm, id)
	if !ok || g.client != id || g.resource != r.PostForm.Get("resource") {
		write(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": "not a grant of this client"})
		return
	}
	i.give(w, g)
}

// granted is called under the lock. Codes and refresh tokens are good for one use.
func (i *Issuer) granted(form url.Values, client string) (grant, bool) {
	switch form.Get("grant_type") {
	case "authorization_code":
		g, ok := i.codes[form.Get("code")]
		delete(i.codes, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		return g, ok && g.redirect == form.Get("redirect_uri") && g.challenge == base64.RawURLEncoding.EncodeToString(sum[:])
	case "refresh_token":
		g, ok := i.fresh[form.Get("refresh_token")]
		delete(i.fresh, form.Get("refresh_token"))
		return g, ok
	case "client_credentials":
		return grant{client: client, resource: form.Get("resource"), scopes: strings.Fields(form.Get("scope"))}, i.Secrets[client] != ""
	default:
		return grant{}, false
	}
}

func (i *Issuer) give(w http.ResponseWriter, g grant) {
	if i.Grant != nil {
		g.scopes = i.Grant(g.scopes)
	}
	access := "access-" + rand.Text()
	i.tokens[access] = g
	answer := map[string]any{"access_token": access, "token_type": "Bearer", "scope": strings.Join(g.scopes, " ")}
	if i.Lifetime != 0 {
		answer["expires_in"] = i.Lifetime
	}
	if i.Refresh {
		refresh := "refresh-" + rand.Text()
		i.fresh[refresh] = g
		answer["refresh_token"] = refresh
	}
	write(w, http.StatusOK, answer)
}

// Check answers the scopes of a token that is good for a resource.
func (i *Issuer) Check(access, resource string) (scopes []string, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	g, ok := i.tokens[access]
	return g.scopes, ok && g.resource == resource
}

// Forget ends every token and every registration.
func (i *Issuer) Forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.tokens)
	clear(i.clients)
}
