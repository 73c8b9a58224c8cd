package model

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"
)

// authDoublings bounds how long a refused key rests: the configured time, doubled at most so often.
const authDoublings = 6

// Cooldowns say how long a key rests.
type Cooldowns struct{ RateLimit, Auth time.Duration }

// Pool gives a provider's requests one of its keys: the one with the fewest requests in flight among those that do not rest.
type Pool struct {
	name      string
	provider  Provider
	cooldowns Cooldowns
	now       func() time.Time
	keys      []*keyState
}

// keyState outlives revisions of the company, so that an edit does not wake a key that the vendor has put to rest.
type keyState struct {
	secret string

	mu       sync.Mutex
	inFlight int
	rests    time.Time
	refusals int
}

// Bench remembers keys over revisions.
type Bench struct {
	mu   sync.Mutex
	keys map[[32]byte]*keyState
}

// NewBench makes an empty one.
func NewBench() *Bench { return &Bench{keys: map[[32]byte]*keyState{}} }

func (b *Bench) key(provider, secret string) *keyState {
	id := sha256.Sum256([]byte(provider + "\x00" + secret))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.keys[id] == nil {
		b.keys[id] = &keyState{secret: secret}
	}
	return b.keys[id]
}

// NewPool makes a pool; a provider that takes no key gets one empty secret.
func NewPool(name string, p Provider, secrets []string, c Cooldowns, b *Bench, now func() time.Time) *Pool {
	pool := &Pool{name: name, provider: p, cooldowns: c, now: now}
	for _, secret := range secrets {
		pool.keys = append(pool.keys, b.key(name, secret))
	}
	return pool
}

// Ask tries one key after the other until one is not at fault.
func (p *Pool) Ask(ctx context.Context, r Request) (Answer, error) {
	last := &Failure{Kind: RateLimited, Provider: p.name, Message: "every key rests"}
	for range p.keys {
		key := p.take()
		if key == nil {
			break
		}
		answer, err := p.provider.Ask(ctx, key.secret, r)
		failure := p.give(key, err)
		if failure == nil {
			answer.Provider = p.name
			return answer, err
		}
		if ctx.Err() != nil {
			return Answer{}, ctx.Err()
		}
		last = failure
		if failure.Kind != RateLimited && failure.Kind != Unauthorized {
			return Answer{}, failure
		}
	}
	last.RetryAfter = max(last.RetryAfter, p.Rests())
	return Answer{}, last
}

// Rests answers how long until a key may be used; 0 when one may be used now.
func (p *Pool) Rests() time.Duration {
	now, least := p.now(), time.Duration(-1)
	for _, key := range p.keys {
		key.mu.Lock()
		left := max(key.rests.Sub(now), 0)
		key.mu.Unlock()
		if least < 0 || left < least {
			least = left
		}
	}
	return max(least, 0)
}

func (p *Pool) take() *keyState {
	var best *keyState
	fewest, now := 0, p.now()
	for _, key := range p.keys {
		key.mu.Lock()
		if !key.rests.After(now) && (best == nil || key.inFlight < fewest) {
			best, fewest = key, key.inFlight
		}
		key.mu.Unlock()
	}
	if best != nil {
		best.mu.Lock()
		best.inFlight++
		best.mu.Unlock()
	}
	return best
}

// give returns a key and answers the failure, with the provider's name.
func (p *Pool) give(key *keyState, err error) *Failure {
	key.mu.Lock()
	defer key.mu.Unlock()
	key.inFlight--
	if err == nil {
		key.refusals = 0
		return nil
	}
	failure, ok := errors.AsType[*Failure](err)
	if !ok {
		failure = fromTransport(err)
	}
	failure.Provider = p.name
	switch failure.Kind {
	case RateLimited:
		rest := p.cooldowns.RateLimit
		if failure.RetryAfter > 0 {
			rest = failure.RetryAfter
		}
		key.rests = p.now().Add(rest)
	case Unauthorized:
		key.rests = p.now().Add(p.cooldowns.Auth << min(key.refusals, authDoublings))
		key.refusals++
	default:
	}
	return failure
}

// Chain asks providers in order.
type Chain struct {
	pools []*Pool
	// fellBack is told when a later provider is asked; may be nil.
	fellBack func(from string, why Kind)
}

// NewChain makes a chain of at least one pool.
func NewChain(fellBack func(from string, why Kind), pools ...*Pool) *Chain {
	return &Chain{pools: pools, fellBack: fellBack}
}

// Ask implements [Asker]. It fails with the last provider's failure when all have failed, and at once with one that another
// provider would not mend.
func (c *Chain) Ask(ctx context.Context, r Request) (Answer, error) {
	var last *Failure
	soonest := time.Duration(-1)
	for i, pool := range c.pools {
		answer, err := pool.Ask(ctx, r)
		if err == nil || ctx.Err() != nil {
			return answer, err
		}
		failure, ok := errors.AsType[*Failure](err)
		if !ok || !failure.Elsewhere() {
			return Answer{}, err
		}
		last = failure
		if soonest < 0 || failure.RetryAfter < soonest {
			soonest = failure.RetryAfter
		}
		if i < len(c.pools)-1 && c.fellBack != nil {
			c.fellBack(pool.name, failure.Kind)
		}
	}
	exhausted := *last
	exhausted.RetryAfter = max(soonest, 0)
	return Answer{}, &exhausted
}

// Rests answers how long until some provider of the chain may be asked; 0 when one may be now.
func (c *Chain) Rests() time.Duration {
	least := time.Duration(-1)
	for _, pool := range c.pools {
		if rests := pool.Rests(); least < 0 || rests < least {
			least = rests
		}
	}
	return max(least, 0)
}
