package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/rank"
	"github.com/bullpenhq/bullpen/services/tracker/internal/worktype"
)

// ReasonTitle is why an item is not filed: an open one has its title.
const ReasonTitle = "TITLE_EXISTS"

// Filing is a new item and how it is filed.
type Filing struct {
	Item   *item.Item
	Wishes Wishes
	// Parent, unless empty, names the item that it is part of.
	Parent string
	// Relations are what it waits for.
	Relations RelationUpdate
	// Question, unless nil, is asked with it.
	Question *Comment
	// EvenIfExists files it although an open item of the project has its title.
	EvenIfExists bool
	// Mentions are the colleagues that the body names.
	Mentions []string
	Act
}

// Filed is what came of a filing.
type Filed struct {
	Item *item.Item
	// Labels are the slugs that were declared for it.
	Labels   []string
	Warnings []string
	At       ops.Position
}

// filedIn is a project as a filing finds it.
type filedIn struct {
	catalogue                   Catalogue
	unit, lead, defaultAssignee string
	there, archived             bool
	// twin is the number of an open item with the same title; 0 for none.
	twin int32
	// number is the new item's, and at its place in the order of writes.
	number int32
	at     ops.Position
}

// InsertItem files an item once per operation. answer fills result when the item stands; on a replay result is the first answer.
func (s *Store) InsertItem(ctx context.Context, op ops.Operation, result proto.Message, f Filing, answer func(Filed)) error {
	first := &pgx.Batch{}
	p := f.look(first)
	replayed, err := ops.DoPipelined(ctx, s.pool, op, result, first, func(ctx context.Context, tx pgx.Tx) (*pgx.Batch, error) {
		i := f.Item
		if err := parent(ctx, tx, i, f.Parent); err != nil {
			return nil, err
		}
		if err := p.refuse(i); err != nil {
			return nil, err
		}
		settled, err := f.Wishes.settle(ctx, tx, p.catalogue, i, f.Act, true, i.Parent != nil)
		if err != nil {
			return nil, err
		}
		f.complete(p, settled)
		related, err := f.relate(ctx, tx)
		if err != nil {
			return nil, err
		}
		e := Event{
			Item: i, Project: i.Project, Change: item.New(i, f.By, f.At), Mentions: f.Mentions, Lead: p.lead, RoutingLead: f.Org.LeadOf(i.RoutingUnit),
			Position: p.at,
		}
		e.Change.Related(settled.update.Fields, related.Fields)
		e.Facts.Blocking = related.Blocking
		batch := &pgx.Batch{}
		queueLabels(batch, i.Project, settled.labels, f.By, f.At)
		queueInsert(batch, i)
		if e.Comment = f.Question; e.Comment != nil {
			if err := settleEvidence(ctx, tx, e.Comment.Ask.Decision); err != nil {
				return nil, err
			}
			e.Facts.Asked = e.Comment.Ask.Asked
			queueComment(batch, i.ID, e.Comment)
		}
		related.queue(batch, f.Act)
		queueTally(batch, nil, i)
		answer(Filed{Item: i, Labels: slugsOf(settled.labels), Warnings: append(settled.warnings, related.Warnings...), At: e.Position})
		return batch, s.record(ctx, batch, e)
	})
	return s.written(replayed, labelRace(err))
}

// Two that file the same title at once must not both find nothing: each holds the title from before it looks until its item stands. The
// statements go to the server together, and each sees what was committed before it began. The inner selection is kept apart from the order, or
// the planner may walk a project in that order and make a key of each title.
//
// Numbers come from a sequence of the project's, so that filings in one project do not wait for each other. What is then refused leaves a gap.
const (
	holdTitle = `select pg_advisory_xact_lock(hashtextextended(current_schema() || '/title/' || $1 || '/' || title_key($2), 0))`

	selectSameTitle = `select number from (select number, created_at from items
			where project = $1 and title_key(title) = title_key($2) and status_group < 2 and removed_at is null offset 0) same
		order by created_at limit 1`

	drawNumber = `select nextval(numbers_of(key))::int, unit, lead, default_assignee, archived, nextval('positions') from projects where key = $1`
)

// look finds out whether the item is there already, what its project declares, and which number it gets.
func (f Filing) look(batch *pgx.Batch) *filedIn {
	i, p := f.Item, &filedIn{}
	if !f.EvenIfExists {
		batch.Queue(holdTitle, i.Project, i.Title)
		batch.Queue(selectSameTitle, i.Project, i.Title).QueryRow(func(row pgx.Row) error {
			if err := row.Scan(&p.twin); !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			return nil
		})
	}
	queueCatalogue(batch, i.Project, f.Wishes.Labels != nil, &p.catalogue)
	batch.Queue(drawNumber, i.Project).QueryRow(func(row pgx.Row) error {
		var sequence int64
		err := row.Scan(&p.number, &p.unit, &p.lead, &p.defaultAssignee, &p.archived, &sequence)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		p.there, p.at = err == nil, position(sequence)
		return err
	})
	return p
}

// refuse answers why the item is not filed; nil when it may be.
func (p *filedIn) refuse(i *item.Item) error {
	switch {
	case !p.there:
		return fault.New(fault.Invalid, "there is no project %q", i.Project).WithField("project")
	case p.archived:
		return fault.New(fault.Invalid, "project %s is archived and takes no new work", i.Project).WithField("project")
	case p.twin != 0:
		key := item.Key(i.Project, p.twin)
		return fault.New(fault.Exists, "%s is open and has the same title: go on with that one, or give even_if_exists when this is something else", key).
			WithField("title").WithReason(ReasonTitle).WithFact("key", key)
	}
	return nil
}

// complete fills in what the project decides.
func (f Filing) complete(p *filedIn, s settled) {
	i := f.Item
	i.Number, i.Rank, i.Type = p.number, rank.Of(p.number), worktype.Default
	if s.update.Type != nil {
		i.Type = *s.update.Type
	}
	if s.update.Labels != nil {
		i.Labels = *s.update.Labels
	}
	if s.update.Fields != nil {
		i.Fields = s.update.Fields.All
	}
	if i.FiledUnit == "" {
		i.FiledUnit = p.unit
	}
	i.RoutingUnit = i.FiledUnit
	if i.Assignee == "" && f.Org.Has(p.defaultAssignee) {
		i.Assignee = p.defaultAssignee
	}
	if f.Question != nil {
		i.AskedOf(f.Question.Ask.Asked)
	}
}

// relate locks what the new item waits for and decides about the edges.
func (f Filing) relate(ctx context.Context, tx pgx.Tx) (*woven, error) {
	if f.Relations.empty() {
		return &woven{}, nil
	}
	r, err := lockRelated(ctx, tx, "", f.Relations)
	if err != nil {
		return nil, err
	}
	return relate(ctx, tx, f.Item, r, f.Act)
}
