package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// Placement puts an item beside another one in its project's own order.
type Placement struct {
	Name string
	// Before or After names the neighbour; neither leaves the place as it is.
	Before, After string
	// Status, unless nil, is the lane that it goes into.
	Status  *string
	IfMatch *int32
	Act
}

// Placed is what a placement did.
type Placed struct {
	Item *item.Item
	// Placed: it stands beside its neighbour.
	Placed bool
	// Unplaced says why it does not, although its lane changed.
	Unplaced string
	Position ops.Position
}

// PlaceItem puts an item beside another one once per operation. answer fills result; its position is zero when the item stood there
// already. Placements in one project wait for each other, so no two items get one place.
func (s *Store) PlaceItem(ctx context.Context, op ops.Operation, result proto.Message, p Placement, answer func(Placed)) error {
	replayed, err := ops.DoBatch(ctx, s.pool, op, result, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		self, project, err := locate(ctx, tx, p.Name)
		if err != nil {
			return nil, err
		}
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended(current_schema() || '/order/' || $1, 0))`, project); err != nil {
			return nil, err
		}
		plan, refused := s.plan(ctx, tx, self, project, p)
		if refused != nil && (fault.ClassOf(refused) != fault.Invalid || p.Status == nil) {
			return nil, refused
		}
		held, err := lockAll(ctx, tx, append(plan.rows(), self))
		if err != nil {
			return nil, err
		}
		h := held[self]
		switch {
		case h == nil:
			return nil, noItem(p.Name)
		case h.Project != project:
			return nil, moved(h.Key())
		case h.Frozen() != nil:
			return nil, h.Frozen()
		}
		if n := held[plan.neighbour]; refused == nil && plan.neighbour != uuid.Nil && (n == nil || n.Project != project || n.Removal != nil) {
			refused = gone(p)
			if p.Status == nil {
				return nil, refused
			}
		}
		return s.place(ctx, tx, p, h, held, plan, refused, answer)
	})
	return s.written(replayed, err)
}

// place writes a placement that is decided.
func (s *Store) place(
	ctx context.Context, tx pgx.Tx, p Placement, h *held, held map[uuid.UUID]*held, plan plan, refused error, answer func(Placed),
) (*pgx.Batch, error) {
	change, changed, err := h.Apply(item.Update{Status: p.Status, IfMatch: p.IfMatch}, p.By, p.At)
	if err != nil {
		return nil, err
	}
	out := Placed{Item: h.Item, Placed: refused == nil && plan.neighbour != uuid.Nil}
	switch {
	case refused != nil:
		f, _ := fault.As(refused)
		out.Unplaced = f.Message
	case plan.neighbour == uuid.Nil:
		out.Unplaced = "no neighbour was named, so it keeps its place"
	}
	batch := &pgx.Batch{}
	if out.Placed && plan.key != "" {
		if !changed {
			change = h.Placed(p.By, p.At)
		}
		change.Fields["rank"] = item.Field{From: h.Rank, To: plan.key}
		h.Rank, changed = plan.key, true
		plan.queueSpread(batch, project(held, h.Project))
	}
	if !changed {
		answer(out)
		return batch, nil
	}
	e := h.event(p.Act, change)
	if h.Before.Open() && !h.Open() {
		if e.Facts.Unblocked, err = freed(ctx, tx, h.ID); err != nil {
			return nil, err
		}
	}
	queueUpdate(batch, h.Item)
	queueTally(batch, h.Before, h.Item)
	out.Position = e.Position
	answer(out)
	return batch, s.record(ctx, batch, e)
}

// locate answers an item's id and its project.
func locate(ctx context.Context, q querier, name string) (uuid.UUID, string, error) {
	id, err := resolve(ctx, q, name)
	if err != nil {
		return id, "", err
	}
	up, err := ancestry(ctx, q, id)
	if err != nil {
		return id, "", err
	}
	if len(up) == 0 {
		return id, "", noItem(name)
	}
	return id, up[0].project, nil
}

// project answers those of some items that are in a project now.
func project(all map[uuid.UUID]*held, key string) map[uuid.UUID]bool {
	in := map[uuid.UUID]bool{}
	for id, h := range all {
		in[id] = h.Project == key
	}
	return in
}

func gone(p Placement) error {
	argument, name := p.neighbour()
	return fault.New(fault.Invalid, "%s names %s, which is in the trash or in another project: name an item that stands in the same order", argument, name).WithField(argument)
}

func (p Placement) neighbour() (argument, name string) {
	if p.After != "" {
		return "after", p.After
	}
	return "before", p.Before
}
