package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/libs/presence"
	"github.com/bullpenhq/bullpen/services/turn/internal/engine"
	"github.com/bullpenhq/bullpen/services/turn/internal/events"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
	"github.com/bullpenhq/bullpen/services/turn/internal/mailbox"
	"github.com/bullpenhq/bullpen/services/turn/internal/model"
	"github.com/bullpenhq/bullpen/services/turn/internal/store"
)

// patience bounds every wait of these tests; nothing in them takes that long.
const patience = 30 * time.Second

// office is a company that can be changed while it runs.
type office struct {
	mu      sync.Mutex
	company *companyv1.Company
	changed chan struct{}
}

func (o *office) Current() (*companyv1.Company, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.company, true
}

func (o *office) Changed() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changed
}

func (o *office) put(c *companyv1.Company) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.company = c
	close(o.changed)
	o.changed = make(chan struct{})
}

// registry stands in for the tool registry: it keeps a ledger by operation id, as the services behind the real one do.
type registry struct {
	mu       sync.Mutex
	tools    []*toolregistryv1.Tool
	calls    []*toolregistryv1.CallToolRequest
	effects  []string
	ledger   map[string]*toolregistryv1.CallToolResponse
	restored []*toolregistryv1.CallRecord
	// listed counts the lists that were sent whole.
	listed int
	skills []*toolregistryv1.ToolSkill
	down   error
	// noSkills fails the list of tool skills.
	noSkills error
	// texts are answered by tools instead of what they would say.
	texts map[string]string
	// before, if not nil, runs before a call has its effect; an error is answered instead.
	before func(ctx context.Context, r *toolregistryv1.CallToolRequest) error
}

func (r *registry) ListTools(
	_ context.Context, req *toolregistryv1.ListToolsRequest,
) (*toolregistryv1.ListToolsResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	digest := fmt.Sprint(len(r.tools))
	if req.GetKnownDigest() == digest {
		return &toolregistryv1.ListToolsResponse{Digest: digest, Unchanged: true}, r.down
	}
	r.listed++
	return &toolregistryv1.ListToolsResponse{Tools: r.tools, Digest: digest}, r.down
}

func (r *registry) ListToolSkills(
	context.Context, *toolregistryv1.ListToolSkillsRequest,
) (*toolregistryv1.ListToolSkillsResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &toolregistryv1.ListToolSkillsResponse{Skills: r.skills}, r.noSkills
}

func (r *registry) CallTool(
	ctx context.Context, req *toolregistryv1.CallToolRequest,
) (*toolregistryv1.CallToolResponse, error) {
	r.mu.Lock()
	r.calls = append(r.calls, req)
	before := r.before
	r.mu.Unlock()
	if before != nil {
		if err := before(ctx, req); err != nil {
			return nil, err
		}
	}
	if req.GetNotOffered() {
		return nil, fault.New(fault.NotFound, "There is no tool `%s`.", req.GetTool())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if kept := r.ledger[req.GetOperationId()]; kept != nil && req.GetOperationId() != "" {
		return kept, nil
	}
	i := slices.IndexFunc(r.tools, func(t *toolregistryv1.Tool) bool { return t.GetName() == req.GetTool() })
	r.effects = append(r.effects, req.GetTool()+" "+req.GetArgumentsJson())
	res := &toolregistryv1.CallToolResponse{
		Text: fmt.Sprintf(`{"key":"OPS-%d"}`, len(r.effects)), Source: r.tools[i].GetSource(), Delivered: r.tools[i].GetDelivers(),
		AuditId: uuid.NewSHA1(uuid.Nil, []byte(req.GetCallId())).String(),
	}
	if text, ok := r.texts[req.GetTool()]; ok {
		res.Text = text
	}
	if r.tools[i].GetSource() == "builtin" && !r.tools[i].GetAnnotations().GetReadOnly() {
		res.Receipt = &toolv1.Receipt{Outcome: "applied", Position: "tracker@1:1"}
		r.ledger[req.GetOperationId()] = res
	}
	return res, nil
}

func (r *registry) RestoreCalls(
	_ context.Context, req *toolregistryv1.RestoreCallsRequest,
) (*toolregistryv1.RestoreCallsResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.restored = append(r.restored, req.GetCalls()...)
	return &toolregistryv1.RestoreCallsResponse{}, nil
}

func (r *registry) did() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.effects)
}

func (r *registry) asked() []*toolregistryv1.CallToolRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

func tools() []*toolregistryv1.Tool {
	tool := func(name, source, delivers string, readOnly, openWorld *bool) *toolregistryv1.Tool {
		return &toolregistryv1.Tool{
			Name: name, Source: source, Delivers: delivers, Description: "Does " + name + ".",
			InputSchemaJson: `{"type":"object","properties":{"title":{"type":"string"}}}`, EngineLocal: name == "submit_work",
			Annotations: &toolregistryv1.Annotations{ReadOnly: readOnly, OpenWorld: openWorld},
		}
	}
	yes, no := proto.Bool(true), proto.Bool(false)
	return []*toolregistryv1.Tool{
		tool("create_work_item", "builtin", "work", no, no),
		tool("get_work_item", "builtin", "", yes, no),
		tool("reply", "builtin", "asked", no, yes),
		tool("submit_work", "builtin", "", no, no),
		tool("post.message", "mcp:chat", "", nil, nil),
		tool("look_up", "mcp:chat", "", yes, nil),
	}
}

func newCompany(providers ...*companyv1.LlmProvider) *companyv1.Company {
	return &companyv1.Company{
		RevisionId: uuid.NewString(), Name: "Tidewater Ltd", LlmProviders: providers, LoopGuardIdenticalCalls: 3,
		Seats: []*companyv1.Seat{
			{Handle: "ada", Name: "Ada", Kind: "agent"},
			{Handle: "bo", Name: "Bo", Kind: "agent"},
			{Handle: "ines", Name: "Ines", Kind: "human"},
		},
		TurnEngine: &companyv1.TurnEngine{MaxToolRounds: 8, ToolTimeoutSeconds: 5},
		Mail:       &companyv1.Mail{CoalesceMaxBatch: 20},
	}
}

func scripted(scenario string) *companyv1.LlmProvider {
	return &companyv1.LlmProvider{Key: "default", Type: "scripted", Scenario: scenario}
}

// bundle is a turn service without its edges: mail is put into the mailbox directly.
type bundle struct {
	pool     *pgxpool.Pool
	store    *store.Store
	registry *registry
	office   *office
	models   engine.Models
	options  engine.Options
	grace    time.Duration // how long a worker is absent before others take its seats; 0 means presence's own
}

func setup(t testing.TB, c *companyv1.Company) *bundle {
	t.Helper()
	b := &bundle{
		pool:     pgtest.Pool(t, "turn", store.Migrations()),
		registry: &registry{tools: tools(), ledger: map[string]*toolregistryv1.CallToolResponse{}},
		office:   &office{company: c, changed: make(chan struct{})},
		options: engine.Options{
			LeaseTTL: 2 * time.Second, MaxConcurrent: 32, DrainTimeout: 5 * time.Second, Poll: 20 * time.Millisecond,
		},
	}
	b.store = store.New(b.pool, events.Encoders(), nil)
	b.models = model.NewRegistry(func(_ context.Context, templates []string) ([]string, error) {
		if slices.Contains(templates, "${MISSING}") {
			return nil, fault.New(fault.NotFound, "${MISSING} has no value.")
		}
		return templates, nil
	}, slog.New(slog.DiscardHandler), time.Now)
	return b
}

// worker is a running engine.
type worker struct {
	*engine.Engine
	node string
	stop func()
}

// start runs an engine on a store of its own, or on b's when s is nil.
func (b *bundle) start(t testing.TB, node string, s *store.Store) *worker {
	t.Helper()
	if s == nil {
		s = b.store
	}
	return b.run(t, node, s, b.registry)
}

// startWith runs an engine with another registry.
func (b *bundle) startWith(t testing.TB, node string, tools engine.Tools) *worker {
	t.Helper()
	return b.run(t, node, b.store, tools)
}

func (b *bundle) run(t testing.TB, node string, s *store.Store, tools engine.Tools) *worker {
	t.Helper()
	options := b.options
	options.Node = node
	shown := presence.New(b.pool, node, presence.Options{Grace: b.grace})
	e := engine.New(engine.Deps{
		Store: s, Tools: tools, Models: b.models, Company: b.office, Presence: shown, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	}, options)
	ctx, cancel := context.WithCancel(context.Background())
	present, leave := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { _ = shown.Run(present) }()
	go func() {
		defer close(ended)
		defer leave()
		_ = e.Run(ctx)
	}()
	stop := func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return &worker{Engine: e, node: node, stop: stop}
}

func letter(seat, conversation, body string) mailbox.Mail {
	now := time.Now()
	return mailbox.Mail{
		DeliveryID: uuid.Must(uuid.NewV7()).String(), Seat: seat, ConversationKey: conversation, Source: "slack", Surface: "slack",
		Obligation: "tool", Addressed: true, WakeReason: "mention", Sender: mailbox.Sender{ID: "U1", Name: "Ines"}, Body: body,
		OccurAt: now, ReceiveAt: now,
	}
}

func (b *bundle) post(t testing.TB, mail ...mailbox.Mail) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		for _, m := range mail {
			if err := store.AcceptMail(t.Context(), tx, m); err != nil {
				return err
			}
		}
		return nil
	}))
}

// ended waits until n turns have ended and answers them, oldest first.
func (b *bundle) ended(t testing.TB, n int) []journal.Turn {
	t.Helper()
	var turns []journal.Turn
	require.Eventually(t, func() bool {
		all, err := b.store.ListTurns(t.Context(), store.TurnFilter{State: "done", Limit: 200})
		require.NoError(t, err)
		turns = all
		return len(turns) >= n
	}, patience, 5*time.Millisecond, "%d turns to end", n)
	slices.Reverse(turns)
	return turns
}

func (b *bundle) journal(t testing.TB, turnID string) *journal.Journal {
	t.Helper()
	j, err := b.store.Journal(t.Context(), turnID)
	require.NoError(t, err)
	return &j
}

func (b *bundle) facts(t testing.TB) []string {
	t.Helper()
	rows, err := b.pool.Query(t.Context(), `select payload from outbox order by id`)
	require.NoError(t, err)
	payloads, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	require.NoError(t, err)
	var names []string
	for _, payload := range payloads {
		names = append(names, factName(t, payload))
	}
	return names
}

// states answers each call of a journal as "tool state class".
func states(j *journal.Journal) []string {
	var all []string
	for _, c := range j.Calls() {
		text := c.Tool + " " + string(c.State)
		if c.Result.Class != "" {
			text += " " + string(c.Result.Class)
		}
		all = append(all, text)
	}
	return all
}

// stub is a model that a test writes.
type stub struct {
	ask func(ctx context.Context, r model.Request) (model.Answer, error)
	// auxiliary is nil for a seat that has none.
	auxiliary func(ctx context.Context, r model.Request) (model.Answer, error)
}

func (s stub) For(context.Context, *companyv1.Company, *companyv1.Seat) (model.Models, error) {
	m := model.Models{Asker: s, Rests: func() time.Duration { return 0 }}
	if s.auxiliary != nil {
		m.Auxiliary = stub{ask: s.auxiliary}
	}
	return m, nil
}

func (s stub) Ask(ctx context.Context, r model.Request) (model.Answer, error) { return s.ask(ctx, r) }

// calls answers a model answer that calls tools.
func calls(pairs ...string) model.Answer {
	a := model.Answer{Provider: "stub", Model: "stub", Stop: journal.StopCalls}
	for i := 0; i < len(pairs); i += 2 {
		a.Calls = append(a.Calls, model.Call{Tool: pairs[i], Args: pairs[i+1]})
	}
	return a
}

func quote(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

var errDown = errors.New("down")
