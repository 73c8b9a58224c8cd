// Package shelf keeps the company's tool skills current: it walks the skills container of the knowledge base and reads its pages.
//
//	page event, new revision, slow poll ─► walk the whole container ─► every page read ─► the set changes
//	                                                   └► anything fails ─► the set stays as it was
//
// A walk that is not complete never replaces one that was: a page that could not be read must not look like one that was taken
// away, because with it goes the guard of its tools. Pages that have not changed are not read again.
package shelf

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"connectrpc.com/connect/v2"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	knowledgev1 "github.com/bullpenhq/bullpen/gen/bullpen/knowledge/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/knowledge/v1/knowledgev1connect"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/follow"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/skill"
)

// Topic announces that pages have changed.
const Topic = "bullpen.knowledge.page.v1"

const (
	// pageOfPages is how many pages a look at the container lists at a time.
	pageOfPages = 500
	// maxPages bounds a walk.
	maxPages = 2000
	// lookTimeout bounds one look at the knowledge base.
	lookTimeout = 15 * time.Second
	// slowly is how soon a lost announcement is made good.
	slowly = 30 * time.Second
)

// Options are what a shelf needs.
type Options struct {
	// Knowledge calls the knowledge base.
	Knowledge *connect.Client
	Bus       bus.Bus
	// Group is unique to the process.
	Group string
	// Company answers the active revision, nil when there is none; Changed is closed when there may be another.
	Company func() *companyv1.Company
	Changed func() <-chan struct{}
	Log     *slog.Logger
}

// Shelf holds the tool skills. Safe for concurrent use.
type Shelf struct {
	options  Options
	client   knowledgev1connect.KnowledgeServiceClient
	follower *follow.Follower[*skill.Set]

	mu sync.Mutex
	// read are the pages that were read last, by id; container is where they are.
	read      map[string]readPage
	container string
}

type readPage struct {
	version int32
	page    skill.Page
}

// New makes a shelf that is empty until it runs.
func New(o Options) *Shelf {
	s := &Shelf{options: o, client: knowledgev1connect.NewKnowledgeServiceClient(o.Knowledge)}
	s.follower = follow.New(follow.Options[*skill.Set]{
		Bus: o.Bus, Topic: Topic, Group: o.Group, Load: s.load, Poll: slowly, Log: o.Log,
	})
	return s
}

// Skills answers the skills in force; nil while nothing is known.
func (s *Shelf) Skills() *skill.Set {
	set, _ := s.follower.Current()
	return set
}

// Changed answers a channel that is closed after the next walk.
func (s *Shelf) Changed() <-chan struct{} { return s.follower.Changed() }

// Run follows the pages and the company until ctx ends. Before a company is known nothing is walked: it names the container.
func (s *Shelf) Run(ctx context.Context) error {
	for changed := s.options.Changed(); s.options.Company() == nil; changed = s.options.Changed() {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
	var again sync.WaitGroup
	again.Go(func() { s.followCompany(ctx) })
	defer again.Wait()
	return s.follower.Run(ctx)
}

// followCompany walks again when another revision may name another container, or other variables.
func (s *Shelf) followCompany(ctx context.Context) {
	revision := s.options.Company().GetRevisionId()
	for {
		changed := s.options.Changed()
		if now := s.options.Company().GetRevisionId(); now != revision {
			revision = now
			_ = s.follower.Refresh(ctx) // said in the log, mended by the next round
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// load walks the container. It is never called twice at a time.
func (s *Shelf) load(ctx context.Context) (*skill.Set, error) {
	company := s.options.Company()
	container := company.GetSkillsContainer()
	if container == "" {
		s.keep("", nil)
		return &skill.Set{}, nil
	}
	listed, err := s.list(ctx, container)
	if err != nil {
		return nil, err
	}
	known := s.known(container)
	fresh := map[string]readPage{}
	pages := make([]skill.Page, 0, len(listed))
	for _, l := range listed {
		page, ok := known[l.GetId()]
		if !ok || page.version != l.GetVersion() {
			if page, err = s.page(ctx, l.GetId()); err != nil {
				return nil, err
			}
		}
		fresh[l.GetId()] = page
		pages = append(pages, page.page)
	}
	set := skill.Read(pages, company.GetSkillVariables())
	s.keep(container, fresh)
	s.report(set)
	return set, nil
}

// list answers every page of the container, without what it says.
func (s *Shelf) list(ctx context.Context, container string) ([]*knowledgev1.Page, error) {
	var all []*knowledgev1.Page
	req := &knowledgev1.ListPagesRequest{Container: container, Limit: pageOfPages}
	for {
		answer, err := look(ctx, s.client.ListPages, req)
		if err != nil {
			return nil, fmt.Errorf("list the tool skills: %w", err)
		}
		if !answer.GetComplete() {
			return nil, fmt.Errorf("the list of the pages in %s is not complete now", container)
		}
		all = append(all, answer.GetPages()...)
		if len(all) > maxPages {
			return nil, fmt.Errorf("the container %s has more than %d pages; tool skills are read from a container of their own", container, maxPages)
		}
		if req.After = answer.GetNextCursor(); req.GetAfter() == "" {
			return all, nil
		}
	}
}

func (s *Shelf) page(ctx context.Context, id string) (readPage, error) {
	answer, err := look(ctx, s.client.GetPage, &knowledgev1.GetPageRequest{Page: id})
	if err != nil {
		return readPage{}, fmt.Errorf("read the tool skill %s: %w", id, err)
	}
	p := answer.GetPage()
	return readPage{version: p.GetVersion(), page: skill.Page{ID: id, Title: p.GetTitle(), Body: p.GetBody()}}, nil
}

// look asks the knowledge base once, within its time.
func look[Q, A any](ctx context.Context, ask func(context.Context, Q) (A, error), req Q) (A, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	answer, err := ask(ctx, req)
	if err != nil {
		return answer, rpc.FromError(err)
	}
	return answer, nil
}

func (s *Shelf) known(container string) map[string]readPage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.container != container {
		return nil
	}
	return s.read
}

func (s *Shelf) keep(container string, pages map[string]readPage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.container, s.read = container, pages
}

// report says what is wrong with pages, once for each walk that finds something else than the one before.
func (s *Shelf) report(set *skill.Set) {
	before := map[string]bool{}
	if last := s.Skills(); last != nil {
		for _, r := range last.Refused {
			before[r.PageID+r.Reason] = true
		}
		for _, w := range last.Warnings {
			before[w] = true
		}
	}
	for _, r := range set.Refused {
		if !before[r.PageID+r.Reason] {
			s.options.Log.Warn("a page of the skills container is no tool skill", "page_id", r.PageID, "title", r.Title, "reason", r.Reason)
		}
	}
	for _, w := range set.Warnings {
		if !before[w] {
			s.options.Log.Warn("a tool skill may not do what is meant", "why", w)
		}
	}
}
