// Package credential resolves the credentials that the company document names
// as templates.
//
// Values live in memory only, for as long as the revision that named them is
// active, and are asked for again after a minute, so that a secret that was
// replaced takes effect. While the company service cannot be asked, the last
// value serves on. Nothing here is logged, and errors never hold a value.
package credential

import (
	"context"
	"sync"
	"time"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

const (
	// fresh is how long a value is believed without asking.
	fresh = time.Minute
	// askTimeout bounds one question, so that the edge can still answer in time.
	askTimeout = 1500 * time.Millisecond
)

// Resolver is the part of the company service that fills templates.
type Resolver interface {
	ResolveSecrets(ctx context.Context, req *companyv1.ResolveSecretsRequest) (*companyv1.ResolveSecretsResponse, error)
}

// Cache keeps resolved templates. It is safe for concurrent use.
type Cache struct {
	resolver Resolver
	now      func() time.Time

	mu       sync.Mutex
	revision string
	entries  map[string]*entry
}

type entry struct {
	ask   sync.Mutex // one question at a time
	value config.Secret
	until time.Time
}

// New makes a cache.
func New(r Resolver, now func() time.Time) *Cache {
	return &Cache{resolver: r, now: now, entries: map[string]*entry{}}
}

// Resolve answers a template's value under a revision. An empty template, and
// one that names what is not set, is refused as unavailable with a sentence:
// a credential that is missing is never an empty one.
func (c *Cache) Resolve(ctx context.Context, revision, template string) (config.Secret, error) {
	if template == "" {
		return "", fault.New(fault.Unavailable, "The company document names no credential for this.")
	}
	e := c.entry(revision, template)
	e.ask.Lock()
	defer e.ask.Unlock()
	if e.value != "" && c.now().Before(e.until) {
		return e.value, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	res, err := c.resolver.ResolveSecrets(ctx, &companyv1.ResolveSecretsRequest{Templates: []string{template}})
	switch {
	case err == nil && len(res.GetValues()) == 1 && res.GetValues()[0] != "":
		e.value, e.until = config.Secret(res.GetValues()[0]), c.now().Add(fresh)
		return e.value, nil
	case err != nil && e.value != "":
		return e.value, nil
	case err != nil:
		return "", fault.New(fault.Unavailable, "%s", rpc.FromError(err).Message).WithCause(err) // it names what is not set
	default:
		return "", fault.New(fault.Unavailable, "A credential that the company document names is empty.")
	}
}

func (c *Cache) entry(revision, template string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.revision != revision {
		c.revision, c.entries = revision, map[string]*entry{}
	}
	e, ok := c.entries[template]
	if !ok {
		e = &entry{}
		c.entries[template] = e
	}
	return e
}
