package seatcache_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/seatcache"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/sighting"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

type host struct {
	mu     sync.Mutex
	answer *mcphostv1.ListServerToolsResponse
	err    error
	asked  []*mcphostv1.ListServerToolsRequest
}

func (h *host) ListServerTools(_ context.Context, req *mcphostv1.ListServerToolsRequest) (*mcphostv1.ListServerToolsResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, req)
	return h.answer, h.err
}

// memory keeps in memory what the store keeps in tables; the rule is the same.
type memory struct {
	mu       sync.Mutex
	known    []sighting.Entry
	accepted int64
	judged   int
	err      error
}

func (m *memory) JudgeTools(_ context.Context, listings []sighting.Listing) (map[sighting.Entry]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.judged++
	verdict := sighting.Judge(listings, m.known, nil)
	for _, sight := range verdict.Learn {
		m.known = append(m.known, sight.Entry)
	}
	return verdict.Changed, m.err
}

func (m *memory) Acceptances(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.accepted, nil
}

type bundle struct {
	host    *host
	memory  *memory
	cache   *seatcache.Cache
	company *companyv1.Company
	now     time.Time
}

func setup() *bundle {
	b := &bundle{
		memory: &memory{},
		host: &host{answer: &mcphostv1.ListServerToolsResponse{Digest: "d1", Servers: []*mcphostv1.ServerTools{
			{Server: "gh", State: "ready", ToolsJson: []string{`{"name":"get","inputSchema":{"type":"object"}}`}},
		}}},
		company: &companyv1.Company{RevisionId: "r1", McpServers: []*companyv1.McpServer{{Name: "gh"}}, Seats: []*companyv1.Seat{{Handle: "ada"}}},
		now:     time.Unix(1000, 0),
	}
	b.cache = seatcache.New(seatcache.Options{
		Host: b.host, Memory: b.memory, Builtins: func(*companyv1.Company) []*surface.Tool {
			return []*surface.Tool{{Name: "reply", Source: surface.Builtin}}
		},
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return b.now },
	})
	return b
}

func (b *bundle) surface(t *testing.T, seat string) *surface.Surface {
	t.Helper()
	return b.cache.Surface(t.Context(), b.company, seat)
}

func TestMcphostIsAskedOnlyWhenSomethingChanged(t *testing.T) {
	t.Parallel()
	b := setup()
	first := b.surface(t, "ada")
	require.Equal(t, []string{"get", "reply"}, first.Names())
	require.NotNil(t, b.host.asked[0].GetWait(), "the first look waits for servers that start")
	require.Same(t, first, b.surface(t, "ada"))
	require.Len(t, b.host.asked, 1)

	b.cache.Invalidate("bo")
	b.surface(t, "ada")
	require.Len(t, b.host.asked, 1, "another seat's event")

	b.cache.Invalidate("")
	require.Same(t, first, b.surface(t, "ada"), "the digest is the same, so is the surface")
	require.Len(t, b.host.asked, 2)
	require.Nil(t, b.host.asked[1].GetWait())

	b.now = b.now.Add(time.Minute)
	b.surface(t, "ada")
	require.Len(t, b.host.asked, 3, "an event may have been lost")

	b.company = &companyv1.Company{RevisionId: "r2", McpServers: b.company.GetMcpServers()}
	require.NotSame(t, first, b.surface(t, "ada"))
}

func TestAStartingServerIsLookedAtSoon(t *testing.T) {
	t.Parallel()
	b := setup()
	b.host.answer = &mcphostv1.ListServerToolsResponse{Servers: []*mcphostv1.ServerTools{{Server: "gh", State: "initialise"}}}
	require.Len(t, b.surface(t, "ada").Missing(), 1)
	b.now = b.now.Add(2 * time.Second)
	b.surface(t, "ada")
	require.Len(t, b.host.asked, 2)
}

func TestOldKnowledgeBeatsNone(t *testing.T) {
	t.Parallel()
	b := setup()
	first := b.surface(t, "ada")
	b.host.err = errors.New("unreachable")
	b.cache.Invalidate("ada")
	require.Same(t, first, b.surface(t, "ada"))
	other := b.surface(t, "bo")
	require.Equal(t, []string{"reply"}, other.Names(), "the suite's own tools stay")
	require.Contains(t, other.Missing()[0].Reason, "cannot be reached")
	b.host.err = nil
	asked := len(b.host.asked)
	b.surface(t, "bo")
	require.Len(t, b.host.asked, asked, "a look that failed is not repeated at once")
	b.now = b.now.Add(3 * time.Second)
	require.Equal(t, []string{"get", "reply"}, b.surface(t, "bo").Names())
}

func TestSeatsThatLeaveAreForgotten(t *testing.T) {
	t.Parallel()
	b := setup()
	b.surface(t, "gone")
	b.surface(t, "ada")
	b.cache.Keep(b.company)
	b.surface(t, "ada")
	require.Len(t, b.host.asked, 2)
	b.surface(t, "gone")
	require.Len(t, b.host.asked, 3)
}

func TestACompanyWithoutServersNeedsNoHost(t *testing.T) {
	t.Parallel()
	b := setup()
	b.company = &companyv1.Company{RevisionId: "r1"}
	require.Equal(t, []string{"reply"}, b.surface(t, "ada").Names())
	require.Empty(t, b.host.asked)
}

// shows answers what mcphost says of a tool with a description.
func shows(digest, description string) *mcphostv1.ListServerToolsResponse {
	return &mcphostv1.ListServerToolsResponse{Digest: digest, Servers: []*mcphostv1.ServerTools{
		{Server: "gh", State: "ready", ToolsJson: []string{`{"name":"get","description":"` + description + `","inputSchema":{"type":"object"}}`}},
	}}
}

func (b *bundle) change(t *testing.T) string {
	t.Helper()
	tool, ok := b.surface(t, "ada").Lookup("get")
	require.True(t, ok)
	return tool.Change
}

func TestMcphostIsToldWhatIsKnownAlready(t *testing.T) {
	t.Parallel()
	b := setup()
	first := b.surface(t, "ada")
	require.Empty(t, b.host.asked[0].GetKnownDigest())
	b.host.answer = &mcphostv1.ListServerToolsResponse{Digest: "d1", Unchanged: true}
	b.cache.Invalidate("")
	require.Same(t, first, b.surface(t, "ada"))
	require.Equal(t, "d1", b.host.asked[1].GetKnownDigest())
	require.Equal(t, 1, b.memory.judged, "what did not change is not judged again")
	b.company = &companyv1.Company{RevisionId: "r2", McpServers: b.company.GetMcpServers()}
	b.host.answer = shows("d1", "")
	require.Equal(t, []string{"get", "reply"}, b.surface(t, "ada").Names())
	require.Empty(t, b.host.asked[2].GetKnownDigest(), "a new revision may say something else of the same tools")
}

func TestAChangedToolIsHeldWhereTheCompanyAsksForThat(t *testing.T) {
	t.Parallel()
	b := setup()
	require.Empty(t, b.change(t))
	b.host.answer = shows("d2", "now otherwise")
	b.cache.Invalidate("")
	require.Equal(t, surface.Changed, b.change(t))

	b.company = &companyv1.Company{
		RevisionId: "r2", McpServers: b.company.GetMcpServers(), ToolPolicy: &companyv1.ToolPolicy{HoldChangedTools: true},
	}
	require.Equal(t, surface.Held, b.change(t))
	b.memory.accepted, b.memory.known = 1, append(b.memory.known, sighting.Entry{Server: "gh", Tool: "get", Digest: b.definition(t)})
	require.Equal(t, surface.Held, b.change(t), "as long as the surface is believed")
	b.cache.Invalidate("")
	require.Empty(t, b.change(t), "accepted elsewhere")
}

func (b *bundle) definition(t *testing.T) string {
	t.Helper()
	tool, _ := b.surface(t, "ada").Lookup("get")
	return tool.Definition
}

func TestToolsThatCannotBeJudgedAreNotShown(t *testing.T) {
	t.Parallel()
	b := setup()
	b.memory.err = errors.New("no database")
	s := b.surface(t, "ada")
	require.Equal(t, []string{"reply"}, s.Names())
	require.Contains(t, s.Missing()[0].Reason, "cannot be looked up")
}
