package shelf_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	knowledgev1 "github.com/bullpenhq/bullpen/gen/bullpen/knowledge/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/knowledge/v1/knowledgev1connect"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/shelf"
)

// library plays the knowledge base; it lists one page at a time.
type library struct {
	knowledgev1connect.UnimplementedKnowledgeServiceHandler

	mu    sync.Mutex
	pages []*knowledgev1.Page
	reads map[string]int
	// broken pages cannot be read.
	broken map[string]bool
}

func (l *library) ListPages(_ context.Context, req *knowledgev1.ListPagesRequest) (*knowledgev1.ListPagesResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer := &knowledgev1.ListPagesResponse{Complete: true}
	for _, p := range l.pages {
		if p.GetContainer() != req.GetContainer() || p.GetId() <= req.GetAfter() {
			continue
		}
		if len(answer.GetPages()) == 1 {
			answer.NextCursor = answer.GetPages()[0].GetId()
			break
		}
		answer.Pages = append(answer.Pages, &knowledgev1.Page{Id: p.GetId(), Container: p.GetContainer(), Title: p.GetTitle(), Version: p.GetVersion()})
	}
	return answer, nil
}

func (l *library) GetPage(_ context.Context, req *knowledgev1.GetPageRequest) (*knowledgev1.GetPageResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads[req.GetPage()]++
	if l.broken[req.GetPage()] {
		return nil, fault.New(fault.Unavailable, "the disk is away")
	}
	for _, p := range l.pages {
		if p.GetId() == req.GetPage() {
			return &knowledgev1.GetPageResponse{Page: p}, nil
		}
	}
	return nil, fault.New(fault.NotFound, "no such page")
}

// change changes what the library holds while nobody reads.
func (l *library) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
}

// document is a company that changes.
type document struct {
	mu      sync.Mutex
	company *companyv1.Company
	changed chan struct{}
}

func (d *document) current() *companyv1.Company {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.company
}

func (d *document) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

func (d *document) put(c *companyv1.Company) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.company = c
	close(d.changed)
	d.changed = make(chan struct{})
}

type bundle struct {
	library  *library
	document *document
	bus      bus.Bus
	shelf    *shelf.Shelf
}

func setup(t *testing.T) *bundle {
	t.Helper()
	broker, err := embedded.Start(t.Context(), embedded.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	opened, err := bus.Open(bus.Config{Brokers: broker.Brokers(), ClientID: "test", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = opened.Close() })
	require.NoError(t, opened.EnsureTopics(t.Context(), bus.Topic{Name: shelf.Topic, Partitions: 1}))
	keys, err := rpc.NewKeys(config.Secret(strings.Repeat("k", rpc.MinKeyBytes)))
	require.NoError(t, err)
	server := rpc.NewServer(rpc.ServerOptions{Service: "knowledge", Log: slog.New(slog.DiscardHandler), Keys: keys})
	b := &bundle{
		library: &library{reads: map[string]int{}, broken: map[string]bool{}}, bus: opened, document: &document{changed: make(chan struct{})},
	}
	knowledgev1connect.RegisterKnowledgeServiceHandler(server, b.library)
	b.shelf = shelf.New(shelf.Options{
		Knowledge: rpc.NewClient(rpc.InProcess(server), rpc.ClientOptions{Service: "toolregistry", Keys: keys}), Bus: opened, Group: "shelf-test",
		Company: b.document.current, Changed: b.document.wait, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { require.NoError(t, b.shelf.Run(ctx)) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return b
}

// until waits for a walk after which the keys in force are these.
func (b *bundle) until(t *testing.T, keys ...string) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		changed := b.shelf.Changed()
		if set := b.shelf.Skills(); set != nil && strings.Join(set.Keys(), " ") == strings.Join(keys, " ") {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			require.FailNow(t, "the skills did not change", "in force are %v", b.shelf.Skills().Keys())
		}
	}
}

func (b *bundle) announce(t *testing.T) {
	t.Helper()
	require.NoError(t, b.bus.Publish(t.Context(), bus.Message{Topic: shelf.Topic, Key: "p", Value: []byte("x")}))
}

func page(id, key string, version int32) *knowledgev1.Page {
	body := "---\nkey: " + key + "\ntrigger: {tool: push}\nsummary: s\n---\nSee ${wiki}."
	return &knowledgev1.Page{Id: id, Container: "GUIDE", Title: key, Body: &body, Version: version}
}

func company(revision, container string) *companyv1.Company {
	return &companyv1.Company{RevisionId: revision, SkillsContainer: container, SkillVariables: map[string]string{"wiki": "w"}}
}

func TestTheSkillsOfTheCompanysContainerAreRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.library.change(func() { b.library.pages = []*knowledgev1.Page{page("1", "b", 1), page("2", "a", 1)} })
	require.Nil(t, b.shelf.Skills(), "nothing is known before there is a company")
	b.document.put(company("r1", "GUIDE"))
	b.until(t, "a", "b")
	s, _ := b.shelf.Skills().Lookup("a")
	require.Equal(t, "See w.", s.Body)
	b.document.put(company("r2", ""))
	b.until(t)
	b.document.put(company("r3", "GUIDE"))
	b.until(t, "a", "b")
}

func TestAnAnnouncedPageIsReadAndTheOthersAreNotReadAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.library.change(func() { b.library.pages = []*knowledgev1.Page{page("1", "a", 1), page("2", "b", 1)} })
	b.document.put(company("r1", "GUIDE"))
	b.until(t, "a", "b")
	b.library.change(func() { b.library.pages[1] = page("2", "c", 2) })
	b.announce(t)
	b.until(t, "a", "c")
	b.library.change(func() { require.Equal(t, map[string]int{"1": 1, "2": 2}, b.library.reads) })
}

func TestAWalkThatIsNotCompleteReplacesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.library.change(func() { b.library.pages = []*knowledgev1.Page{page("1", "a", 1)} })
	b.document.put(company("r1", "GUIDE"))
	b.until(t, "a")
	b.library.change(func() {
		b.library.pages = []*knowledgev1.Page{page("2", "b", 1), page("3", "c", 1)}
		b.library.broken["3"] = true
	})
	b.announce(t)
	require.Eventually(t, func() bool {
		b.library.mu.Lock()
		defer b.library.mu.Unlock()
		return b.library.reads["3"] > 0
	}, time.Minute, time.Millisecond)
	require.Equal(t, []string{"a"}, b.shelf.Skills().Keys(), "the last complete walk holds")
	b.library.change(func() { b.library.broken["3"] = false })
	b.announce(t)
	b.until(t, "b", "c")
}
