package tracker_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1/trackerv1connect"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/tracker"
)

// roster is a company with one unit that owns a project, one that owns none, and a person.
type roster struct{}

func (roster) GetCompany(context.Context, *companyv1.GetCompanyRequest) (*companyv1.GetCompanyResponse, error) {
	return &companyv1.GetCompanyResponse{Company: &companyv1.Company{
		RevisionId: "r1", Epoch: 1, Timezone: "Europe/Lisbon",
		Units: []*companyv1.Unit{
			{UnitId: "operations", Name: "Operations", Project: "OPS", Lead: "ops-lead", Purpose: "Run the shop floor"},
			{UnitId: "design", Name: "Design"},
			{UnitId: "shop", Name: "Shop", Project: "SHOP"},
		},
		Seats: []*companyv1.Seat{
			{Handle: "ops-lead", Name: "Ops Lead", Kind: "agent", UnitId: "operations"},
			{Handle: "designer", Name: "Designer", Kind: "agent", UnitId: "design"},
			{Handle: "ines", Name: "Ines Rocha", Kind: "human"},
		},
	}}, nil
}

func (roster) LookupColleague(_ context.Context, r *companyv1.LookupColleagueRequest) (*companyv1.LookupColleagueResponse, error) {
	switch strings.ToLower(r.GetQuery()) {
	case "designer", "the designer":
		return &companyv1.LookupColleagueResponse{Colleague: &companyv1.Colleague{Handle: "designer"}}, nil
	case "lead":
		return &companyv1.LookupColleagueResponse{Candidates: []*companyv1.Colleague{{Handle: "ops-lead"}, {Handle: "designer"}}}, nil
	default:
		return nil, fault.New(fault.NotFound, "nobody")
	}
}

type bundle struct {
	client trackerv1connect.TrackerServiceClient
	direct trackerv1connect.TrackerServiceClient // signed by a service that is not the door
	bus    bus.Bus
	pool   *pgxpool.Pool
}

func setup(t *testing.T) bundle {
	t.Helper()
	return setupAt(t, time.Now)
}

// setupAt is setup on a clock of the test's.
func setupAt(t *testing.T, now func() time.Time) bundle {
	t.Helper()
	broker, err := embedded.Start(t.Context(), embedded.Options{})
	require.NoError(t, err)
	b, err := bus.Open(bus.Config{Brokers: broker.Brokers(), ClientID: "test"})
	require.NoError(t, err)
	require.NoError(t, b.EnsureTopics(t.Context(), tracker.Module.Topics...))
	pool := pgtest.Pool(t, "tracker", tracker.Module.Migrations)
	service, err := tracker.New(t.Context(), tracker.Deps{
		Pool: pool, Bus: b, Company: roster{},
		Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Now: now, Node: "n1",
	})
	require.NoError(t, err)
	keys, err := rpc.NewKeys(config.Secret(strings.Repeat("k", rpc.MinKeyBytes)))
	require.NoError(t, err)
	server := rpc.NewServer(rpc.ServerOptions{Service: "tracker", Log: slog.New(slog.DiscardHandler), Keys: keys})
	service.Register(server)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, b.Close())
		require.NoError(t, broker.Close())
	})
	require.Eventually(t, func() bool { return service.Ready(t.Context())[0].OK }, patience, 5*time.Millisecond)
	as := func(name string) trackerv1connect.TrackerServiceClient {
		return trackerv1connect.NewTrackerServiceClient(rpc.NewClient(rpc.InProcess(server), rpc.ClientOptions{Service: name, Keys: keys, Timeout: patience}))
	}
	return bundle{client: as("toolregistry"), direct: as("turn"), bus: b, pool: pool}
}

func seat(ctx context.Context, handle string) context.Context {
	return rpc.As(ctx, &rpc.Principal{Kind: rpc.KindSeat, Id: handle, Seat: handle, Turn: &toolv1.TurnClaims{TurnId: "turn-1"}})
}

func operator(ctx context.Context) context.Context {
	return rpc.As(ctx, &rpc.Principal{Kind: rpc.KindOperator, Id: "t1", DisplayName: "ci"})
}

func refusal(t *testing.T, err error, class fault.Class, field string) *fault.Error {
	t.Helper()
	f := rpc.FromError(err)
	require.NotNil(t, f)
	require.Equal(t, class, f.Class, f.Message)
	require.Equal(t, field, f.Field, f.Message)
	return f
}

func file(t *testing.T, b bundle, title string) *trackerv1.CreateWorkItemResponse {
	t.Helper()
	res, err := b.client.CreateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.CreateWorkItemRequest{Title: title})
	require.NoError(t, err)
	return res
}

func TestAnItemGoesToTheSeatsOwnProjectAndIsReadBackWhole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	res, err := b.client.CreateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.CreateWorkItemRequest{
		Title: "Renew the certificate", Body: "Ask @designer and @nobody-here.", Assignee: "The Designer", Priority: "high", Due: "2020-01-31",
	})
	require.NoError(t, err)
	require.Equal(t, "applied", res.GetOutcome())
	require.Equal(t, "OPS-1", res.GetKey())
	require.Equal(t, "designer", res.GetAssignee())
	require.Regexp(t, `^tracker@1:\d+$`, res.GetPosition())
	require.Len(t, res.GetWarnings(), 1)
	for _, name := range []string{"OPS-1", "ops-1", res.GetId()} {
		got, err := b.client.GetWorkItem(operator(t.Context()), &trackerv1.GetWorkItemRequest{Item: name})
		require.NoError(t, err)
		require.Equal(t, "Ask @designer and @nobody-here.", got.GetItem().GetBody())
		require.Equal(t, "ops-lead", got.GetItem().GetReporter())
		require.True(t, got.GetItem().GetOverdue())
		require.Len(t, got.GetHistory(), 1)
		require.Equal(t, res.GetPosition(), got.GetHistory()[0].GetPosition())
		require.Equal(t, "turn-1", got.GetHistory()[0].GetTurnId())
	}
}

func TestWhatIsAskedWronglyIsRefusedByTheArgumentsName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := seat(t.Context(), "ops-lead")
	create := func(req *trackerv1.CreateWorkItemRequest) error {
		_, err := b.client.CreateWorkItem(ctx, req)
		return err
	}
	refusal(t, create(&trackerv1.CreateWorkItemRequest{}), fault.Invalid, "title")
	refusal(t, create(&trackerv1.CreateWorkItemRequest{Title: "  "}), fault.Invalid, "title")
	refusal(t, create(&trackerv1.CreateWorkItemRequest{Title: strings.Repeat("x", 257)}), fault.Invalid, "title")
	refusal(t, create(&trackerv1.CreateWorkItemRequest{Title: "x", Project: "NOPE"}), fault.Invalid, "project")
	refusal(t, create(&trackerv1.CreateWorkItemRequest{Title: "x", Due: "2026-02-30"}), fault.Invalid, "due")
	refusal(t, create(&trackerv1.CreateWorkItemRequest{Title: "x", Status: "doing"}), fault.Invalid, "status")
	refusal(t, create(&trackerv1.CreateWorkItemRequest{Title: "x", Parent: "OPS-99"}), fault.Invalid, "parent")
	require.Contains(t, refusal(t, create(&trackerv1.CreateWorkItemRequest{Title: "x", Assignee: "bob"}), fault.Invalid, "assignee").Message, "designer, ines, ops-lead")
	require.Contains(t, refusal(t, create(&trackerv1.CreateWorkItemRequest{Title: "x", Assignee: "lead"}), fault.Invalid, "assignee").Message, "ops-lead, designer")
	_, err := b.client.CreateWorkItem(seat(t.Context(), "designer"), &trackerv1.CreateWorkItemRequest{Title: "x"})
	refusal(t, err, fault.Invalid, "project")
	_, err = b.client.GetWorkItem(ctx, &trackerv1.GetWorkItemRequest{Item: "OPS-77"})
	refusal(t, err, fault.NotFound, "item")
	key := file(t, b, "x").GetKey()
	_, err = b.client.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{Item: key, Body: proto.String("new")})
	require.Contains(t, refusal(t, err, fault.Invalid, "").Message, "if_match")
	_, err = b.client.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{Item: key, Reason: proto.String("why")})
	require.Contains(t, refusal(t, err, fault.Invalid, "").Message, "assignee")
	_, err = b.client.CommentOnWorkItem(ctx, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "x", ReplyTo: "0193a3d0-5f1e-7c1c-9c55-0c6f2f3f6f10"})
	refusal(t, err, fault.Invalid, "reply_to")
}

func TestASeatThatDoesNotComeThroughTheDoorIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.direct.CreateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.CreateWorkItemRequest{Title: "x"})
	refusal(t, err, fault.Forbidden, "")
}

func TestTheSameOperationLandsOnceHoweverOftenItIsSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const callers = 64
	answers := make([]*trackerv1.CreateWorkItemResponse, callers)
	var group sync.WaitGroup
	for n := range callers {
		group.Go(func() {
			ctx := rpc.WithOperation(seat(t.Context(), "ops-lead"), "op-1")
			res, err := b.client.CreateWorkItem(ctx, &trackerv1.CreateWorkItemRequest{Title: "Once"})
			if err == nil {
				answers[n] = res
			}
		})
	}
	group.Wait()
	for _, answer := range answers {
		require.NotNil(t, answer)
		require.Empty(t, cmp.Diff(answers[0], answer, protocmp.Transform()))
	}
	list, err := b.client.ListWorkItems(operator(t.Context()), &trackerv1.ListWorkItemsRequest{})
	require.NoError(t, err)
	require.Equal(t, int32(1), list.GetTotal())
	_, err = b.client.CreateWorkItem(rpc.WithOperation(seat(t.Context(), "ops-lead"), "op-1"), &trackerv1.CreateWorkItemRequest{Title: "Other"})
	require.Equal(t, "OPERATION_REUSED", refusal(t, err, fault.Conflict, "").Reason)
}

func TestOfManyEditsOfOneVersionExactlyOneWins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Contested").GetKey()
	const callers = 32
	errs := make([]error, callers)
	var group sync.WaitGroup
	for n := range callers {
		group.Go(func() {
			_, errs[n] = b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{
				Item: key, Title: proto.String(fmt.Sprintf("Title %d", n)), IfMatch: proto.Int32(1),
			})
		})
	}
	group.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		require.Equal(t, "2", refusal(t, err, fault.StaleVersion, "if_match").Facts["current_version"])
	}
	require.Equal(t, 1, won)
	got, err := b.client.GetWorkItem(operator(t.Context()), &trackerv1.GetWorkItemRequest{Item: key})
	require.NoError(t, err)
	require.Equal(t, int32(2), got.GetItem().GetVersion())
	require.Len(t, got.GetHistory(), 2)
}

func TestAnUpdateThatChangesNothingWritesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Same").GetKey()
	res, err := b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{Item: key, Status: proto.String("todo")})
	require.NoError(t, err)
	require.Equal(t, "unchanged", res.GetOutcome())
	require.Empty(t, res.GetPosition())
	require.Equal(t, int32(1), res.GetVersion())
}

func TestAThreadIsReadFromItsEndPageByPage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Long talk").GetKey()
	for n := range 45 {
		res, err := b.client.CommentOnWorkItem(seat(t.Context(), "designer"), &trackerv1.CommentOnWorkItemRequest{Item: key, Body: fmt.Sprintf("%d for @ops-lead and @ghost", n)})
		require.NoError(t, err)
		require.Equal(t, []string{"ops-lead"}, res.GetMentioned())
		require.Len(t, res.GetWarnings(), 1)
	}
	var bodies []string
	req := &trackerv1.GetWorkItemRequest{Item: key, Include: []string{"comments"}}
	for {
		res, err := b.client.GetWorkItem(operator(t.Context()), req)
		require.NoError(t, err)
		require.Empty(t, res.GetHistory())
		var shown []string
		for _, c := range res.GetComments() {
			shown = append(shown, c.GetBody())
		}
		bodies = append(shown, bodies...)
		if req.CommentsCursor = res.GetNextCommentsCursor(); req.GetCommentsCursor() == "" {
			break
		}
	}
	require.Len(t, bodies, 45)
	require.True(t, strings.HasPrefix(bodies[0], "0 for") && strings.HasPrefix(bodies[44], "44 for"))
}

func TestListsPageWithoutLossOrRepetitionAndFiltersHoldTogether(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range 25 {
		res := file(t, b, fmt.Sprintf("Item %d 100%%_done", n))
		if n%5 == 0 {
			_, err := b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{
				Item: res.GetKey(), Status: proto.String("done"), Assignee: proto.String("designer"),
			})
			require.NoError(t, err)
		}
	}
	for _, sort := range []string{"", "updated", "created", "-created"} {
		seen := map[string]bool{}
		req := &trackerv1.ListWorkItemsRequest{Project: "ops", Sort: sort, Limit: 4, OpenOnly: true}
		for {
			res, err := b.client.ListWorkItems(operator(t.Context()), req)
			require.NoError(t, err)
			require.Equal(t, int32(20), res.GetTotal())
			for _, i := range res.GetItems() {
				require.False(t, seen[i.GetKey()], "%s came twice", i.GetKey())
				require.Nil(t, i.Body)
				seen[i.GetKey()] = true
			}
			if req.Cursor = res.GetNextCursor(); req.GetCursor() == "" {
				break
			}
		}
		require.Len(t, seen, 20, sort)
	}
	count := func(req *trackerv1.ListWorkItemsRequest) int32 {
		res, err := b.client.ListWorkItems(seat(t.Context(), "designer"), req)
		require.NoError(t, err)
		return res.GetTotal()
	}
	require.Equal(t, int32(5), count(&trackerv1.ListWorkItemsRequest{Assignee: "me"}))
	require.Equal(t, int32(20), count(&trackerv1.ListWorkItemsRequest{Assignee: "nobody"}))
	require.Equal(t, int32(25), count(&trackerv1.ListWorkItemsRequest{Text: "100%_d"}), "a title's signs are taken as they stand")
	require.Equal(t, int32(11), count(&trackerv1.ListWorkItemsRequest{Text: "OPS-1"}), "OPS-1 and OPS-10 to OPS-19")
	require.Equal(t, int32(0), count(&trackerv1.ListWorkItemsRequest{Assignee: "me", OpenOnly: true}))
	first, err := b.client.ListWorkItems(operator(t.Context()), &trackerv1.ListWorkItemsRequest{Limit: 1})
	require.NoError(t, err)
	_, err = b.client.ListWorkItems(operator(t.Context()), &trackerv1.ListWorkItemsRequest{Limit: 1, OpenOnly: true, Cursor: first.GetNextCursor()})
	refusal(t, err, fault.Invalid, "cursor")
	projects, err := b.client.ListProjects(operator(t.Context()), &trackerv1.ListProjectsRequest{Q: "ops"})
	require.NoError(t, err)
	require.Equal(t, int32(20), projects.GetProjects()[0].GetTaskCounts().GetTodo())
	require.Equal(t, int32(5), projects.GetProjects()[0].GetTaskCounts().GetDone())
}

func TestSubtasksStayInTheProjectAndInDepth(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parent := file(t, b, "level 1").GetKey()
	for level := 2; level <= 7; level++ {
		res, err := b.client.CreateWorkItem(operator(t.Context()), &trackerv1.CreateWorkItemRequest{Title: fmt.Sprint("level ", level), Project: "OPS", Parent: parent})
		require.NoError(t, err)
		parent = res.GetKey()
	}
	_, err := b.client.CreateWorkItem(operator(t.Context()), &trackerv1.CreateWorkItemRequest{Title: "level 8", Project: "OPS", Parent: parent})
	refusal(t, err, fault.Invalid, "parent")
	_, err = b.client.CreateWorkItem(operator(t.Context()), &trackerv1.CreateWorkItemRequest{Title: "elsewhere", Project: "SHOP", Parent: "OPS-1"})
	refusal(t, err, fault.Invalid, "parent")
	got, err := b.client.GetWorkItem(operator(t.Context()), &trackerv1.GetWorkItemRequest{Item: "OPS-1"})
	require.NoError(t, err)
	require.Equal(t, []string{"OPS-2"}, got.GetSubtasks())
}

func TestEveryChangeLeavesAsAnEventWithItsRoutingInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	subscription, err := b.bus.Subscribe("bullpen.tracker.item.v1", "test")
	require.NoError(t, err)
	res := file(t, b, "Told")
	_, err = b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{
		Item: res.GetKey(), Assignee: proto.String("designer"), Reason: proto.String("yours"),
	})
	require.NoError(t, err)
	_, err = b.client.CommentOnWorkItem(seat(t.Context(), "designer"), &trackerv1.CommentOnWorkItemRequest{Item: res.GetKey(), Body: "On it, @ines"})
	require.NoError(t, err)
	var events []*trackerv1.ItemEvent
	for len(events) < 3 {
		messages, err := subscription.Fetch(t.Context(), 10)
		require.NoError(t, err)
		for _, m := range messages {
			require.Equal(t, res.GetId(), m.Key)
			e := &trackerv1.ItemEvent{}
			require.NoError(t, proto.Unmarshal(m.Value, e))
			events = append(events, e)
		}
	}
	require.Equal(t, "Told", events[0].GetItemCreated().GetItem().GetTitle())
	require.Equal(t, "ops-lead", events[0].GetItemCreated().GetRouting().GetLead())
	require.Equal(t, "designer", events[1].GetItemUpdated().GetRouting().GetAssignee())
	require.Equal(t, "yours", events[1].GetItemUpdated().GetRouting().GetReason())
	require.Equal(t, []string{"ines"}, events[2].GetItemCommented().GetRouting().GetMentioned())
	require.Less(t, events[0].GetSequence(), events[1].GetSequence())
	require.Less(t, events[1].GetSequence(), events[2].GetSequence())
}
