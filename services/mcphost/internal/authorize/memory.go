package authorize

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

// memory is the store of a process that has no key: what it holds ends with it.
type memory struct {
	now func() time.Time

	mu       sync.Mutex
	clients  map[[3]string][]byte
	issuers  map[[2]string]string
	tokens   map[account][]byte
	consents map[string]remembered // by state
	changing sync.Mutex            // held while a token changes
}

type remembered struct {
	store.Consent
	until time.Time
}

func newMemory(now func() time.Time) *memory {
	return &memory{
		now: now, clients: map[[3]string][]byte{}, issuers: map[[2]string]string{}, tokens: map[account][]byte{}, consents: map[string]remembered{},
	}
}

// AuthorizationClient implements [Store].
func (m *memory) AuthorizationClient(_ context.Context, server, issuer, redirectURI string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.clients[[3]string{server, issuer, redirectURI}]), nil
}

// ReplaceAuthorizationClient implements [Store].
func (m *memory) ReplaceAuthorizationClient(_ context.Context, server, issuer, redirectURI string, before, sealed []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [3]string{server, issuer, redirectURI}
	switch {
	case !bytes.Equal(m.clients[key], before):
	case sealed == nil:
		delete(m.clients, key)
	default:
		m.clients[key] = sealed
	}
	return nil
}

// PinIssuer implements [Store].
func (m *memory) PinIssuer(_ context.Context, server, clientID, issuer string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [2]string{server, clientID}
	if _, pinned := m.issuers[key]; !pinned {
		m.issuers[key] = issuer
	}
	return m.issuers[key], nil
}

// AuthorizationToken implements [Store].
func (m *memory) AuthorizationToken(_ context.Context, server, seat, resource string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.tokens[account{server, seat, resource}]), nil
}

// ChangeAuthorizationToken implements [Store].
func (m *memory) ChangeAuthorizationToken(ctx context.Context, server, seat, resource string, change func([]byte) ([]byte, error)) error {
	m.changing.Lock()
	defer m.changing.Unlock()
	before, _ := m.AuthorizationToken(ctx, server, seat, resource)
	after, err := change(before)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if after == nil {
		delete(m.tokens, account{server, seat, resource})
		return nil
	}
	m.tokens[account{server, seat, resource}] = after
	return nil
}

// PutConsent implements [Store].
func (m *memory) PutConsent(_ context.Context, state []byte, c store.Consent, enough time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, open := range m.consents {
		if open.Server == c.Server && open.Seat == c.Seat && bytes.Equal(open.Question, c.Question) && open.until.Sub(m.now()) >= enough {
			return nil
		}
	}
	m.dropConsent(c.Server, c.Seat)
	m.consents[string(state)] = remembered{Consent: c, until: m.now().Add(c.Left)}
	return nil
}

// TakeConsent implements [Store].
func (m *memory) TakeConsent(_ context.Context, state []byte) (*store.Consent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.consents[string(state)]
	delete(m.consents, string(state))
	if !ok || c.until.Before(m.now()) {
		return nil, nil
	}
	return &c.Consent, nil
}

// Consents implements [Store].
func (m *memory) Consents(context.Context) ([]store.Consent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var open []store.Consent
	for _, c := range m.consents {
		if c.until.After(m.now()) {
			open = append(open, c.Consent)
		}
	}
	return open, nil
}

// DropConsent implements [Store].
func (m *memory) DropConsent(_ context.Context, server, seat string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropConsent(server, seat)
	return nil
}

// dropConsent is called under the lock. Those that nobody gave in time go as well.
func (m *memory) dropConsent(server, seat string) {
	for state, c := range m.consents {
		if c.Server == server && c.Seat == seat || c.until.Before(m.now()) {
			delete(m.consents, state)
		}
	}
}
