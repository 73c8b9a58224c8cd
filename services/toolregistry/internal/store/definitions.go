package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/sighting"
)

const (
	// selectKnown is called by JudgeTools: what is known of some servers' instances, and what was accepted for all.
	selectKnown = `select server, seat, tool, digest from known_definitions where server = any($1) and (seat = any($2) or seat = '')`

	// selectChanged is called by JudgeTools.
	selectChanged = `select server, seat, tool, digest from changed_definitions where server = any($1) and seat = any($2)`

	// lockDefinitions is called by JudgeTools before it writes: two processes that see a tool first must not both be right.
	lockDefinitions = `select pg_advisory_xact_lock(hashtextextended('toolregistry.definitions', 0))`

	insertDefinition = `insert into definitions (digest, definition) values ($1, $2) on conflict (digest) do nothing`

	// insertKnown is called by JudgeTools, without who accepted, and by AcceptTool.
	insertKnown = `
insert into known_definitions (server, seat, tool, digest, accepted_by) values ($1, $2, $3, $4, $5) on conflict do nothing`

	// upsertChanged is called by JudgeTools.
	upsertChanged = `
insert into changed_definitions (server, seat, tool, digest) values ($1, $2, $3, $4)
on conflict (server, seat, tool) do update set digest = excluded.digest, seen_at = now()`

	// deleteChanged is called by JudgeTools.
	deleteChanged = `delete from changed_definitions where server = $1 and seat = $2 and tool = $3`
)

// queryer is a pool or a transaction.
type queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// JudgeTools answers which of the definitions that instances show are not known, and writes down what is seen for the first time and
// what changed. It writes nothing, and locks nothing, when all is as it was.
func (s *Store) JudgeTools(ctx context.Context, listings []sighting.Listing) (map[sighting.Entry]bool, error) {
	if len(listings) == 0 {
		return nil, nil
	}
	verdict, err := judge(ctx, s.pool, listings)
	if err != nil || verdict.Settled() {
		return verdict.Changed, err
	}
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockDefinitions); err != nil {
			return err
		}
		if verdict, err = judge(ctx, tx, listings); err != nil {
			return err
		}
		batch := &pgx.Batch{}
		for _, sight := range slices.Concat(verdict.Learn, verdict.Note) {
			batch.Queue(insertDefinition, sight.Digest, sight.Definition())
		}
		for _, e := range verdict.Learn {
			batch.Queue(insertKnown, e.Server, e.Seat, e.Tool, e.Digest, "")
		}
		for _, e := range verdict.Note {
			batch.Queue(upsertChanged, e.Server, e.Seat, e.Tool, e.Digest)
		}
		for _, e := range verdict.Forget {
			batch.Queue(deleteChanged, e.Server, e.Seat, e.Tool)
		}
		return tx.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return nil, fmt.Errorf("write down definitions: %w", err)
	}
	return verdict.Changed, nil
}

func judge(ctx context.Context, q queryer, listings []sighting.Listing) (sighting.Verdict, error) {
	var servers, seats []string
	for _, listing := range listings {
		servers, seats = append(servers, listing.Server), append(seats, listing.Seat)
	}
	known, err := entries(ctx, q, selectKnown, servers, seats)
	if err != nil {
		return sighting.Verdict{}, err
	}
	noted, err := entries(ctx, q, selectChanged, servers, seats)
	if err != nil {
		return sighting.Verdict{}, err
	}
	return sighting.Judge(listings, known, noted), nil
}

func entries(ctx context.Context, q queryer, query string, args ...any) ([]sighting.Entry, error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read definitions: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sighting.Entry])
	if err != nil {
		return nil, fmt.Errorf("read definitions: %w", err)
	}
	return all, nil
}

// selectAcceptances is called by Acceptances.
const selectAcceptances = `select last_value + is_called::int from definition_acceptances`

// Acceptances answers a number that moves whenever an operator accepts a definition.
func (s *Store) Acceptances(ctx context.Context) (n int64, err error) {
	if err := s.pool.QueryRow(ctx, selectAcceptances).Scan(&n); err != nil {
		return 0, fmt.Errorf("read acceptances: %w", err)
	}
	return n, nil
}

// ChangedTool is a tool that differs from what is known of it.
type ChangedTool struct {
	sighting.Entry
	// Known and Current are the definitions, JSON. Known is the one that was accepted last, or else the first that was seen.
	Known, Current string
}

const selectChangedTools = `
select c.server, c.seat, c.tool, c.digest, coalesce(k.definition, ''), d.definition
from changed_definitions c
join definitions d using (digest)
left join lateral (
    select kd.definition from known_definitions n join definitions kd on kd.digest = n.digest
    where n.server = c.server and n.tool = c.tool and n.seat in ('', c.seat)
    order by n.known_at desc, n.digest limit 1) k on true
where $1 = '' or c.server = $1
order by c.server, c.tool, c.seat`

// ListChangedTools answers every tool that differs from what is known, of one server or, when that is empty, of all.
func (s *Store) ListChangedTools(ctx context.Context, server string) ([]ChangedTool, error) {
	rows, err := s.pool.Query(ctx, selectChangedTools, server)
	if err != nil {
		return nil, fmt.Errorf("list changed tools: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c ChangedTool, err error) {
		return c, row.Scan(&c.Server, &c.Seat, &c.Tool, &c.Digest, &c.Known, &c.Current)
	})
	if err != nil {
		return nil, fmt.Errorf("list changed tools: %w", err)
	}
	return all, nil
}

const (
	// selectShown is called by AcceptTool.
	selectShown = `select coalesce(bool_or(digest = $3), false), count(*) > 0 from changed_definitions where server = $1 and tool = $2`
	// selectAccepted is called by AcceptTool.
	selectAccepted = `select exists (select from known_definitions where server = $1 and seat = '' and tool = $2 and digest = $3)`
	// deleteAccepted is called by AcceptTool.
	deleteAccepted = `delete from changed_definitions where server = $1 and tool = $2 and digest = $3`
	// moveAcceptances is called by AcceptTool.
	moveAcceptances = `select nextval('definition_acceptances')`
)

// AcceptTool makes a definition known for every seat. Faults: stale_version when the tool shows another one by now, not_found when
// it has not changed. To accept again changes nothing.
func (s *Store) AcceptTool(ctx context.Context, server, tool, digest, by string) error {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockDefinitions); err != nil {
			return err
		}
		var shown, changed, accepted bool
		if err := tx.QueryRow(ctx, selectShown, server, tool, digest).Scan(&shown, &changed); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, selectAccepted, server, tool, digest).Scan(&accepted); err != nil {
			return err
		}
		switch {
		case accepted:
			return nil
		case !shown && changed:
			return fault.New(fault.StaleVersion, "The tool `%s` of `%s` has changed again since; look at the definition that it has now.", tool, server).
				WithField("digest")
		case !shown:
			return fault.New(fault.NotFound, "No changed definition of the tool `%s` of `%s` waits to be accepted.", tool, server).WithField("tool")
		}
		batch := &pgx.Batch{}
		batch.Queue(insertKnown, server, "", tool, digest, by)
		batch.Queue(deleteAccepted, server, tool, digest)
		batch.Queue(moveAcceptances)
		return tx.SendBatch(ctx, batch).Close()
	})
}

// deleteUnused is called by SweepDefinitions.
const deleteUnused = `
delete from definitions d
where not exists (select from known_definitions k where k.digest = d.digest)
  and not exists (select from changed_definitions c where c.digest = d.digest)`

// SweepDefinitions forgets definitions that were changed again before anybody accepted them.
func (s *Store) SweepDefinitions(ctx context.Context) error {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockDefinitions); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, deleteUnused)
		return err
	})
}
