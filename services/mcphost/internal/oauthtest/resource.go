package oauthtest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Resource stands in front of a server and lets tokens of its issuer through.
type Resource struct {
	*httptest.Server

	mu sync.Mutex
	// The fields below are changed with Change.
	issuer *Issuer
	// MetadataPath is where its metadata are; empty for nowhere. Told says so in the challenge.
	metadataPath string
	told         bool
	name         string
	known        []string
	needs        func(r *http.Request) []string
	challenged   bool
	refused      int
}

// Terms are what a resource wants.
type Terms struct {
	Issuer *Issuer
	// MetadataPath is where its metadata are, "" for the well-known place of its path, and "-" for nowhere.
	MetadataPath string
	// Told says in the challenge where the metadata are; Challenged says which scopes are needed.
	Told, Challenged bool
	// Name is the resource in its metadata, in place of its address.
	Name string
	// Scopes are all that it knows.
	Scopes []string
	// Needs answers the scopes that a request needs; nil for none.
	Needs func(r *http.Request) []string
}

// Path is where the server behind is.
const Path = "/mcp"

// Protect starts a resource in front of a handler; it ends with the test.
func Protect(t testing.TB, terms Terms, behind http.Handler) *Resource {
	t.Helper()
	p := &Resource{}
	p.Change(terms)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != Path {
			p.metadata(w, r)
			return
		}
		if p.admits(w, r) {
			behind.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// Change changes what it wants.
func (p *Resource) Change(terms Terms) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if terms.MetadataPath == "" {
		terms.MetadataPath = "/.well-known/oauth-protected-resource" + Path
	}
	p.issuer, p.metadataPath, p.told, p.challenged = terms.Issuer, terms.MetadataPath, terms.Told, terms.Challenged
	p.name, p.known, p.needs = terms.Name, terms.Scopes, terms.Needs
}

// Refused answers how many requests were turned away.
func (p *Resource) Refused() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

func (p *Resource) metadata(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.URL.Path != p.metadataPath {
		http.NotFound(w, r)
		return
	}
	write(w, http.StatusOK, map[string]any{
		"resource": p.resource(), "authorization_servers": []string{p.issuer.ID()}, "scopes_supported": p.known,
	})
}

// resource is called under the lock.
func (p *Resource) resource() string {
	switch {
	case p.name != "":
		return p.name
	case p.metadataPath == "/.well-known/oauth-protected-resource":
		return p.URL
	default:
		return p.URL + Path
	}
}

func (p *Resource) admits(w http.ResponseWriter, r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var needs []string
	if p.needs != nil {
		needs = p.needs(r)
	}
	access, shown := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	scopes, good := p.issuer.Check(access, p.resource())
	status, problem := http.StatusUnauthorized, "invalid_token"
	if shown && good {
		if subset(needs, scopes) {
			return true
		}
		status, problem = http.StatusForbidden, "insufficient_scope"
	}
	p.refused++
	challenge := []string{`error="` + problem + `"`}
	if p.told {
		challenge = append(challenge, `resource_metadata="`+p.URL+p.metadataPath+`"`)
	}
	if len(needs) > 0 && (p.challenged || status == http.StatusForbidden) {
		challenge = append(challenge, `scope="`+strings.Join(needs, " ")+`"`)
	}
	w.Header().Set("WWW-Authenticate", "Bearer "+strings.Join(challenge, ", "))
	w.WriteHeader(status)
	return false
}

func subset(some, all []string) bool {
	for _, one := range some {
		found := false
		for _, other := range all {
			found = found || one == other
		}
		if !found {
			return false
		}
	}
	return true
}
