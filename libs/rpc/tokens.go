package rpc

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// tokenTTL is how long a revoked token may still be believed.
	tokenTTL = 30 * time.Second
	// maxTokens bounds the cache; more live tokens than that are verified each time.
	maxTokens = 1024
	// maxBearerBytes is checked before a token is hashed.
	maxBearerBytes = 256
)

// tokenCache keeps the answers for valid tokens for up to 30 seconds, under the token's hash. Refusals are not kept: guesses
// must not push out what is in use, and a new token works at once.
type tokenCache struct {
	verifier TokenVerifier
	now      func() time.Time

	mu      sync.Mutex
	entries map[[sha256.Size]byte]tokenEntry
}

type tokenEntry struct {
	principal *Principal
	until     time.Time
}

func cacheTokens(v TokenVerifier, now func() time.Time) *tokenCache {
	return &tokenCache{verifier: v, now: now, entries: map[[sha256.Size]byte]tokenEntry{}}
}

// VerifyToken implements [TokenVerifier].
func (c *tokenCache) VerifyToken(ctx context.Context, token string) (*Principal, error) {
	if len(token) > maxBearerBytes {
		return nil, nil
	}
	key := sha256.Sum256([]byte(token))
	now := c.now()
	if p, ok := c.lookup(key, now); ok {
		return p, nil
	}
	p, err := c.verifier.VerifyToken(ctx, token)
	if err != nil || p == nil {
		return nil, err
	}
	until := now.Add(tokenTTL)
	if expires := p.GetExpireTime(); expires != nil && expires.AsTime().Before(until) {
		until = expires.AsTime()
	}
	c.keep(key, tokenEntry{principal: p, until: until}, now)
	return p, nil
}

func (c *tokenCache) lookup(key [sha256.Size]byte, now time.Time) (*Principal, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.entries[key]
	if !ok || !now.Before(entry.until) {
		return nil, false
	}
	return entry.principal, true
}

func (c *tokenCache) keep(key [sha256.Size]byte, entry tokenEntry, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= maxTokens {
		for k, e := range c.entries {
			if !now.Before(e.until) {
				delete(c.entries, k)
			}
		}
	}
	if len(c.entries) < maxTokens {
		c.entries[key] = entry
	}
}
