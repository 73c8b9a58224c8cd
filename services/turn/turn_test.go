package turn_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/turn/v1/turnv1connect"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/turn"
	"github.com/bullpenhq/bullpen/services/turn/internal/engine"
)

const patience = 30 * time.Second

// company stands in for the company service.
type company struct {
	mu     sync.Mutex
	active *companyv1.Company
}

func (c *company) GetCompany(context.Context, *companyv1.GetCompanyRequest) (*companyv1.GetCompanyResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active == nil {
		return nil, fault.New(fault.NotFound, "No revision is active.").WithReason("NO_ACTIVE_REVISION")
	}
	return &companyv1.GetCompanyResponse{Company: c.active}, nil
}

func (c *company) ResolveSecrets(
	_ context.Context, r *companyv1.ResolveSecretsRequest,
) (*companyv1.ResolveSecretsResponse, error) {
	return &companyv1.ResolveSecretsResponse{Values: r.GetTemplates()}, nil
}

func (c *company) put(active *companyv1.Company) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active = active
}

// registry stands in for the tool registry.
type registry struct{}

func (registry) ListTools(
	context.Context, *toolregistryv1.ListToolsRequest,
) (*toolregistryv1.ListToolsResponse, error) {
	no := proto.Bool(false)
	return &toolregistryv1.ListToolsResponse{Tools: []*toolregistryv1.Tool{
		{Name: "reply", Source: "builtin", Delivers: "asked", Annotations: &toolregistryv1.Annotations{ReadOnly: no}},
		{Name: "submit_work", Source: "builtin", EngineLocal: true},
	}}, nil
}

func (registry) ListToolSkills(
	context.Context, *toolregistryv1.ListToolSkillsRequest,
) (*toolregistryv1.ListToolSkillsResponse, error) {
	return &toolregistryv1.ListToolSkillsResponse{}, nil
}

func (registry) CallTool(
	context.Context, *toolregistryv1.CallToolRequest,
) (*toolregistryv1.CallToolResponse, error) {
	return &toolregistryv1.CallToolResponse{Text: `{"outcome":"applied"}`, Source: "builtin", Delivered: "asked"}, nil
}

func (registry) RestoreCalls(
	context.Context, *toolregistryv1.RestoreCallsRequest,
) (*toolregistryv1.RestoreCallsResponse, error) {
	return &toolregistryv1.RestoreCallsResponse{}, nil
}

// bundle is a whole service with broker and database.
type bundle struct {
	bus     bus.Bus
	company *company
	service *turn.Service
	client  turnv1connect.TurnServiceClient
	deps    turn.Deps
	stop    func()
}

func setup(t *testing.T) *bundle {
	t.Helper()
	return setupWith(t, registry{})
}

func setupWith(t *testing.T, tools engine.Tools) *bundle {
	t.Helper()
	broker, err := embedded.Start(t.Context(), embedded.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	log := slog.New(slog.DiscardHandler)
	b := &bundle{company: &company{}}
	b.bus, err = bus.Open(bus.Config{Brokers: broker.Brokers(), ClientID: "test", Log: log})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.bus.Close()) })
	require.NoError(t, b.bus.EnsureTopics(t.Context(), turn.Module.Topics...))
	b.deps = turn.Deps{
		Config: &turn.Config{LeaseTTL: 3 * time.Second, MaxConcurrent: 8, DrainTimeout: 5 * time.Second, Poll: 50 * time.Millisecond},
		Pool:   pgtest.Pool(t, "turn", turn.Module.Migrations), Bus: b.bus, Log: log, Now: time.Now,
		Company: b.company, Tools: tools,
	}
	b.start(t)
	return b
}

// start runs the service, as a process that was started anew does.
func (b *bundle) start(t *testing.T) {
	t.Helper()
	var err error
	b.deps.Node = uuid.NewString()
	b.service, err = turn.New(t.Context(), b.deps)
	require.NoError(t, err)
	keys, err := rpc.NewKeys(config.Secret("0123456789abcdef0123456789abcdef"))
	require.NoError(t, err)
	server := rpc.NewServer(rpc.ServerOptions{Service: "turn", Log: b.deps.Log, Keys: keys})
	b.service.Register(server)
	b.client = turnv1connect.NewTurnServiceClient(rpc.NewClient(rpc.InProcess(server), rpc.ClientOptions{Service: "console", Keys: keys}))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.service.Run(ctx) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(b.stop)
}

func (b *bundle) deliver(t *testing.T, id, conversation, body string) {
	t.Helper()
	now := timestamppb.Now()
	payload, err := proto.Marshal(&notificationv1.DeliveryEvent{
		EventId: uuid.NewString(),
		Fact: &notificationv1.DeliveryEvent_DeliveryAddressed{DeliveryAddressed: &notificationv1.DeliveryAddressed{
			Delivery: &notificationv1.Delivery{
				DeliveryId: id, Seat: "ada", ConversationKey: conversation, Source: "slack", Surface: "slack", Obligation: "tool",
				Addressed: true, Reason: "mention", Sender: &notificationv1.Sender{Name: "Ines"}, Body: body, OccurTime: now, ReceiveTime: now,
			},
		}},
	})
	require.NoError(t, err)
	require.NoError(t, b.bus.Publish(t.Context(), bus.Message{
		Topic: "bullpen.notification.delivery.v1", Key: "ada", Value: payload, Headers: map[string]string{"ce_id": uuid.NewString()},
	}))
}

func office() *companyv1.Company {
	return &companyv1.Company{
		RevisionId: uuid.NewString(), Name: "Tidewater Ltd",
		Seats: []*companyv1.Seat{{Handle: "ada", Name: "Ada", Kind: "agent"}},
		LlmProviders: []*companyv1.LlmProvider{{Key: "default", Type: "scripted", Scenario: `
rules:
  - rounds:
      - call: {tool: reply, args: {body: "Hi."}}
      - submit: {summary: said hi}
`}},
	}
}

func TestService(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	first := uuid.NewString()
	b.deliver(t, first, "slack:1", "hello")

	// Without a company the mail waits, and the service says why.
	require.Eventually(t, func() bool {
		mail, err := b.client.ListMail(ctx, &turnv1.ListMailRequest{})
		require.NoError(t, err)
		return len(mail.GetMail()) == 1 && mail.GetMail()[0].GetState() == "held" && mail.GetHeldBecause() != ""
	}, patience, 10*time.Millisecond)
	conditions := b.service.Ready(ctx)
	require.False(t, conditions[0].OK)
	require.False(t, conditions[0].Blocking)
	require.Contains(t, conditions[0].Detail, "No company is active")

	// With one, it is worked; the same delivery again changes nothing.
	b.company.put(office())
	require.NoError(t, b.bus.Publish(ctx, bus.Message{Topic: "bullpen.company.revision.v1", Key: "active", Value: []byte("x")}))
	b.deliver(t, first, "slack:1", "hello")
	b.deliver(t, uuid.NewString(), "slack:2", "hello again")
	var turns []*turnv1.Turn
	require.Eventually(t, func() bool {
		res, err := b.client.ListTurns(ctx, &turnv1.ListTurnsRequest{State: "done"})
		require.NoError(t, err)
		turns = res.GetTurns()
		return len(turns) == 2
	}, patience, 10*time.Millisecond)
	require.True(t, b.service.Ready(ctx)[0].OK)

	// The journal tells the whole of it.
	got, err := b.client.GetTurn(ctx, &turnv1.GetTurnRequest{TurnId: turns[1].GetTurnId()})
	require.NoError(t, err)
	require.Equal(t, "delivered", got.GetTurn().GetOutcome())
	require.True(t, got.GetTurn().GetScripted())
	require.Equal(t, "hello", got.GetMail()[0].GetBody())
	require.Equal(t, "slack", got.GetRounds()[0].GetCalls()[0].GetDelivered())
	require.Equal(t, "scripted", got.GetRounds()[0].GetModel())
	require.Equal(t, "submit_work", got.GetRounds()[1].GetCalls()[0].GetTool())

	// Pages follow each other, and a cursor is for its own list.
	one, err := b.client.ListTurns(ctx, &turnv1.ListTurnsRequest{Limit: 1})
	require.NoError(t, err)
	two, err := b.client.ListTurns(ctx, &turnv1.ListTurnsRequest{Limit: 1, Cursor: one.GetNextCursor()})
	require.NoError(t, err)
	require.NotEqual(t, one.GetTurns()[0].GetTurnId(), two.GetTurns()[0].GetTurnId())
	require.Empty(t, two.GetNextCursor())
	_, err = b.client.ListTurns(ctx, &turnv1.ListTurnsRequest{Seat: "ada", Limit: 1, Cursor: one.GetNextCursor()})
	require.Equal(t, fault.Invalid, rpc.FromError(err).Class)

	// The facts are published.
	require.Eventually(t, func() bool {
		messages, err := b.bus.ReadAll(ctx, "bullpen.turn.turn.v1")
		require.NoError(t, err)
		return len(messages) == 4
	}, patience, 10*time.Millisecond)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()

	_, err := b.client.GetTurn(ctx, &turnv1.GetTurnRequest{TurnId: "0000"})
	require.Equal(t, fault.NotFound, rpc.FromError(err).Class)
	_, err = b.client.GetTurn(ctx, &turnv1.GetTurnRequest{TurnId: "not an id"})
	require.Equal(t, fault.NotFound, rpc.FromError(err).Class)
	_, err = b.client.SubmitWork(ctx, &turnv1.SubmitWorkRequest{Summary: "x"})
	require.Equal(t, fault.Forbidden, rpc.FromError(err).Class)
	_, err = b.client.RedriveDeadLetters(ctx, &turnv1.RedriveDeadLettersRequest{DeadLetterIds: []string{"x"}})
	require.Equal(t, fault.Invalid, rpc.FromError(err).Class)
	seat := rpc.As(ctx, &rpc.Principal{Kind: rpc.KindSeat, Id: "ada", Seat: "ada"})
	_, err = b.client.ListMail(seat, &turnv1.ListMailRequest{})
	require.Equal(t, fault.Forbidden, rpc.FromError(err).Class)
	person := rpc.As(ctx, &rpc.Principal{Kind: rpc.KindPerson, Id: "ines", Seat: "ines"})
	_, err = b.client.RedriveDeadLetters(person, &turnv1.RedriveDeadLettersRequest{})
	require.Equal(t, fault.Forbidden, rpc.FromError(err).Class)
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	require.NoError(t, b.bus.Publish(ctx, bus.Message{
		Topic: "bullpen.notification.delivery.v1", Key: "ada", Value: []byte("\xff\xffnot a delivery"),
		Headers: map[string]string{"ce_id": uuid.NewString()},
	}))
	var letters []*turnv1.DeadLetter
	require.Eventually(t, func() bool {
		res, err := b.client.ListDeadLetters(ctx, &turnv1.ListDeadLettersRequest{})
		require.NoError(t, err)
		letters = res.GetDeadLetters()
		return len(letters) == 1
	}, patience, 10*time.Millisecond)
	require.Contains(t, letters[0].GetReason(), "no delivery event")
	res, err := b.client.RedriveDeadLetters(ctx, &turnv1.RedriveDeadLettersRequest{})
	require.NoError(t, err)
	require.EqualValues(t, 0, res.GetRedriven())
	require.EqualValues(t, 1, res.GetFailed())
}
