package knowledge_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	knowledgev1 "github.com/bullpenhq/bullpen/gen/bullpen/knowledge/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/knowledge/v1/knowledgev1connect"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/knowledge"
)

type chart struct{}

func (chart) GetCompany(context.Context, *companyv1.GetCompanyRequest) (*companyv1.GetCompanyResponse, error) {
	return &companyv1.GetCompanyResponse{Company: &companyv1.Company{
		RevisionId: "r1", Epoch: 1, SkillsContainer: "GUIDE",
		Units: []*companyv1.Unit{{UnitId: "operations", Name: "Operations", Space: "OPS"}, {UnitId: "design", Name: "Design"}},
		Seats: []*companyv1.Seat{{Handle: "ops-lead", UnitId: "operations"}, {Handle: "designer", UnitId: "design"}},
	}}, nil
}

type bundle struct {
	client, direct knowledgev1connect.KnowledgeServiceClient
	bus            bus.Bus
}

func setup(t *testing.T) bundle {
	t.Helper()
	broker, err := embedded.Start(t.Context(), embedded.Options{})
	require.NoError(t, err)
	b, err := bus.Open(bus.Config{Brokers: broker.Brokers(), ClientID: "test"})
	require.NoError(t, err)
	require.NoError(t, b.EnsureTopics(t.Context(), knowledge.Module.Topics...))
	service, err := knowledge.New(t.Context(), knowledge.Deps{
		Pool: pgtest.Pool(t, "knowledge", knowledge.Module.Migrations), Bus: b, Company: chart{},
		Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Now: time.Now, Node: "n1",
	})
	require.NoError(t, err)
	keys, err := rpc.NewKeys(config.Secret(strings.Repeat("k", rpc.MinKeyBytes)))
	require.NoError(t, err)
	server := rpc.NewServer(rpc.ServerOptions{Service: "knowledge", Log: slog.New(slog.DiscardHandler), Keys: keys})
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
	require.Eventually(t, func() bool { return service.Ready(t.Context())[0].OK }, 10*time.Second, 5*time.Millisecond)
	as := func(name string) knowledgev1connect.KnowledgeServiceClient {
		return knowledgev1connect.NewKnowledgeServiceClient(rpc.NewClient(rpc.InProcess(server), rpc.ClientOptions{Service: name, Keys: keys}))
	}
	return bundle{client: as("toolregistry"), direct: as("turn"), bus: b}
}

func seat(ctx context.Context, handle string) context.Context {
	return rpc.As(ctx, &rpc.Principal{Kind: rpc.KindSeat, Id: handle, Seat: handle})
}

func operator(ctx context.Context) context.Context {
	return rpc.As(ctx, &rpc.Principal{Kind: rpc.KindOperator, Id: "t1", DisplayName: "ci"})
}

func refused(t *testing.T, err error, class fault.Class, field string) {
	t.Helper()
	f := rpc.FromError(err)
	require.NotNil(t, f)
	require.Equal(t, class, f.Class, f.Message)
	require.Equal(t, field, f.Field, f.Message)
}

func write(t *testing.T, b bundle, req *knowledgev1.WritePageRequest) *knowledgev1.WritePageResponse {
	t.Helper()
	res, err := b.client.WritePage(seat(t.Context(), "ops-lead"), req)
	require.NoError(t, err)
	return res
}

func TestAPageGoesToTheSeatsOwnContainerAndReadsByIdAndByAddress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	top := write(t, b, &knowledgev1.WritePageRequest{Title: "Runbooks", Body: "All of them."})
	res := write(t, b, &knowledgev1.WritePageRequest{
		Title: "  Release   checklist ", Body: "See [all](#/knowledge/pages/" + top.GetId() + ").", Parent: "runbooks", Labels: []string{"release"}, Message: "first",
	})
	require.Equal(t, "applied", res.GetOutcome())
	require.Equal(t, "OPS", res.GetContainer())
	require.Equal(t, "Release checklist", res.GetTitle())
	for _, name := range []string{res.GetId(), "OPS/Release checklist", "ops/RELEASE  CHECKLIST"} {
		got, err := b.client.GetPage(operator(t.Context()), &knowledgev1.GetPageRequest{Page: name})
		require.NoError(t, err)
		require.Contains(t, got.GetPage().GetBody(), "See [all]")
		require.Equal(t, "Runbooks", got.GetAncestors()[0].GetTitle())
		require.Equal(t, "first", got.GetRevisions()[0].GetMessage())
	}
	got, err := b.client.GetPage(operator(t.Context()), &knowledgev1.GetPageRequest{Page: top.GetId()})
	require.NoError(t, err)
	require.Equal(t, res.GetId(), got.GetChildren()[0].GetId())
	require.Equal(t, res.GetId(), got.GetLinkedFrom()[0].GetId())
}

func TestAnAddressIsTakenByItsFirstWriter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const writers = 16
	errs := make([]error, writers)
	var group sync.WaitGroup
	for n := range writers {
		group.Go(func() {
			_, errs[n] = b.client.WritePage(seat(t.Context(), "ops-lead"), &knowledgev1.WritePageRequest{Title: "Same", Body: fmt.Sprint(n)})
		})
	}
	group.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		refused(t, err, fault.Exists, "title")
	}
	require.Equal(t, 1, won)
}

func TestTheSameOperationIsOnePage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := rpc.WithOperation(seat(t.Context(), "ops-lead"), "op-1")
	req := &knowledgev1.WritePageRequest{Title: "Once", Body: "x"}
	first, err := b.client.WritePage(ctx, req)
	require.NoError(t, err)
	again, err := b.client.WritePage(ctx, req)
	require.NoError(t, err)
	require.True(t, proto.Equal(first, again))
}

func TestWhatIsAskedWronglyIsRefusedByTheArgumentsName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := seat(t.Context(), "ops-lead")
	for field, req := range map[string]*knowledgev1.WritePageRequest{
		"title":     {Title: " ", Body: "x"},
		"body":      {Title: "x", Body: " "},
		"container": {Title: "x", Body: "x", Container: "NOPE"},
		"parent":    {Title: "x", Body: "x", Parent: "nowhere"},
		"labels":    {Title: "x", Body: "x", Labels: []string{"a", "a"}},
	} {
		_, err := b.client.WritePage(ctx, req)
		refused(t, err, fault.Invalid, field)
	}
	for _, reserved := range []string{"HOME", "TS", "guide"} {
		_, err := b.client.WritePage(ctx, &knowledgev1.WritePageRequest{Title: "x", Body: "x", Container: reserved})
		refused(t, err, fault.Forbidden, "container")
	}
	_, err := b.client.WritePage(seat(t.Context(), "designer"), &knowledgev1.WritePageRequest{Title: "x", Body: "x"})
	refused(t, err, fault.Invalid, "container")
	_, err = b.client.GetPage(ctx, &knowledgev1.GetPageRequest{Page: "OPS/nothing"})
	refused(t, err, fault.NotFound, "page")
	_, err = b.client.ListPages(ctx, &knowledgev1.ListPagesRequest{After: "garbage"})
	refused(t, err, fault.Invalid, "after")
	_, err = b.direct.GetPage(ctx, &knowledgev1.GetPageRequest{Page: "OPS/nothing"})
	refused(t, err, fault.Forbidden, "")
}

func TestSearchFindsAPageAtOnceAndSaysWhenNothingMatched(t *testing.T) {
	t.Parallel()
	b := setup(t)
	write(t, b, &knowledgev1.WritePageRequest{Title: "Certificates", Body: "They expire in May. Renew with the usual script."})
	write(t, b, &knowledgev1.WritePageRequest{Title: "Lunch", Body: "The certificate of the canteen hangs by the door."})
	write(t, b, &knowledgev1.WritePageRequest{Title: "東京オフィス", Body: "鍵は受付にあります"})
	for _, skills := range []string{"TS", "GUIDE"} {
		_, err := b.client.WritePage(operator(t.Context()), &knowledgev1.WritePageRequest{Title: "Certificates tool", Body: "certificates", Container: skills})
		require.NoError(t, err)
	}
	search := func(query string) *knowledgev1.SearchKnowledgeResponse {
		res, err := b.client.SearchKnowledge(seat(t.Context(), "designer"), &knowledgev1.SearchKnowledgeRequest{Query: query})
		require.NoError(t, err)
		return res
	}
	hits := search("renew certificate").GetHits()
	require.Len(t, hits, 2, "the containers of tool skills are not searched")
	require.Equal(t, "Certificates", hits[0].GetTitle())
	require.Contains(t, hits[0].GetSnippet(), "Renew")
	require.Equal(t, "東京オフィス", search("東京オフィス").GetHits()[0].GetTitle())
	nothing := search("zebra & | ! ' \\ :*")
	require.Equal(t, "nothing_matched", nothing.GetState())
	require.NotEmpty(t, nothing.GetNote())
	require.Equal(t, "nothing_matched", search("?!").GetState())
}

func TestListsPageInOrderWithoutLossOrRepetition(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for n := range 23 {
		write(t, b, &knowledgev1.WritePageRequest{Title: fmt.Sprintf("Page %02d 50%%", n), Body: "x", Labels: []string{fmt.Sprint("l", n%2)}})
	}
	var titles []string
	req := &knowledgev1.ListPagesRequest{Container: "ops", Title: "0%", Limit: 5}
	for {
		res, err := b.client.ListPages(operator(t.Context()), req)
		require.NoError(t, err)
		require.True(t, res.GetComplete())
		for _, p := range res.GetPages() {
			require.Nil(t, p.Body)
			titles = append(titles, p.GetTitle())
		}
		if req.After = res.GetNextCursor(); req.GetAfter() == "" {
			break
		}
	}
	require.Len(t, titles, 23)
	require.IsIncreasing(t, titles)
	res, err := b.client.ListPages(operator(t.Context()), &knowledgev1.ListPagesRequest{Label: "l1"})
	require.NoError(t, err)
	require.Equal(t, int32(11), res.GetCount())
}

func TestANewPageLeavesAsAnEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	subscription, err := b.bus.Subscribe("bullpen.knowledge.page.v1", "test")
	require.NoError(t, err)
	res := write(t, b, &knowledgev1.WritePageRequest{Title: "Told", Body: "For @designer and @ghost"})
	messages, err := subscription.Fetch(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, res.GetId(), messages[0].Key)
	e := &knowledgev1.PageEvent{}
	require.NoError(t, proto.Unmarshal(messages[0].Value, e))
	require.Equal(t, "Told", e.GetPageCreated().GetPage().GetTitle())
	require.Equal(t, []string{"designer"}, e.GetPageCreated().GetMentioned())
	require.Equal(t, "ops-lead", e.GetPageCreated().GetActor())
}
