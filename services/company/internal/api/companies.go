package api

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/company/internal/document"
	"github.com/bullpenhq/bullpen/services/company/internal/revision"
	"github.com/bullpenhq/bullpen/services/company/internal/roster"
	"github.com/bullpenhq/bullpen/services/company/internal/store"
)

// maxCompanies is how many revisions are kept read: the active one, and a few that turns in progress still run on.
const maxCompanies = 8

// companies reads stored revisions and keeps the last few, which is safe because a revision never changes. Which one is
// active is asked of the database each time: it is one indexed row, and nobody is ever answered from a stale company.
type companies struct {
	store *store.Store

	mu   sync.Mutex
	kept map[uuid.UUID]*company
	// order holds the ids by use, the latest last.
	order []uuid.UUID
}

// company is a revision as it is read. Its values are shared: nobody changes them.
type company struct {
	revision revision.Revision
	message  *companyv1.Company
	roster   *roster.Roster
}

func newCompanies(s *store.Store) *companies {
	return &companies{store: s, kept: map[uuid.UUID]*company{}}
}

// active answers the active company, or refuses with not_found, reason NO_ACTIVE_REVISION.
func (c *companies) active(ctx context.Context) (*company, error) {
	r, ok, err := c.store.Active(ctx)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, revision.None()
	}
	return c.of(ctx, r)
}

// of answers the company of a revision.
func (c *companies) of(ctx context.Context, r revision.Revision) (*company, error) {
	if found, ok := c.lookup(r.ID); ok {
		return found, nil
	}
	text, err := c.store.Document(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	parsed, problems := document.Parse(text)
	if len(problems) > 0 {
		// It was accepted once, by another build.
		return nil, fault.New(fault.Unavailable, "The revision %s was stored by another build, and this one cannot honour it. "+
			"Put a corrected document. First of %d problems: %s", r.ID, len(problems), problems[0]).WithReason("REVISION_UNREADABLE")
	}
	read := &company{revision: r, message: companyToProto(parsed, r), roster: roster.New(parsed)}
	c.keep(read)
	return read, nil
}

func (c *companies) lookup(id uuid.UUID) (*company, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.kept[id]
	if ok {
		c.touch(id)
	}
	return found, ok
}

func (c *companies) keep(read *company) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept[read.revision.ID] = read
	c.touch(read.revision.ID)
	for len(c.order) > maxCompanies {
		delete(c.kept, c.order[0])
		c.order = c.order[1:]
	}
}

func (c *companies) touch(id uuid.UUID) {
	for i, other := range c.order {
		if other == id {
			c.order = append(c.order[:i], c.order[i+1:]...)
			break
		}
	}
	c.order = append(c.order, id)
}

// Active answers the id of the active revision in words for a probe, and an error that says why there is no company.
func (h *Handler) Active(ctx context.Context) (string, error) {
	c, err := h.companies.active(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("revision %s, epoch %d", c.revision.ID, c.revision.Epoch), nil
}
