package store

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/query"
	"github.com/bullpenhq/bullpen/services/tracker/sample"
)

// lists are what people and agents ask for: every preset, order, filter and grouping, alone and within a project.
func lists() map[string]query.Params {
	all := map[string]query.Params{
		"everything":       {},
		"open":             {"open_only": "true"},
		"project":          {"project": "P2"},
		"project, open":    {"project": "P2", "open_only": "true"},
		"several statuses": {"project": "P1", "status": "todo,in_review,done"},
		"trash":            {"removed": "true", "sort": "-removed"},
		"collapsed":        {"project": "P1", "subtasks": "collapsed"},
		"recently closed":  {"project": "P1", "show_closed": "recent:14d"},
		"any":              {"project": "P1", "any": `[{"assignee": "seat-1"}, {"tag": "label-1"}]`},
	}
	for name, filter := range map[string]string{
		"q": "certificate 12", "text": "P1-12", "status": "todo", "status_group": "active,done", "priority": "urgent", "type": "spike", "tag": "label-3",
		"assignee": "seat-3", "reporter": "seat-3", "watcher": "seat-3", "collaborator": "seat-3", "unit": "unit-20", "routing_unit": "unit-20",
		"parent": "0193a3d0-5f1e-7c1c-9c55-0c6f2f3f6f10", "root": "0193a3d0-5f1e-7c1c-9c55-0c6f2f3f6f10", "key": "0193a3d0-5f1e-7c1c-9c55-0c6f2f3f6f10",
		"due": "next7", "start": "thismonth", "updated": "gte:-1d", "created": "thisweek", "asked_of": "seat-3", "asked_by": "seat-3", "has_open_asks": "true",
		"has_dependencies": "true", "blocked": "true", "ready": "true", "flag": "one_sided", "f.cost": "gt:900",
	} {
		all["filter "+name] = query.Params{name: filter}
	}
	for _, sort := range []string{"updated", "created", "due", "start", "priority", "title", "estimate", "points", "reopens", "status_entered"} {
		all["sort "+sort] = query.Params{"sort": sort}
		all["sort -"+sort] = query.Params{"sort": "-" + sort, "open_only": "true"}
		all["project, sort "+sort] = query.Params{"sort": sort, "project": "P2"}
	}
	all["project, sort rank"] = query.Params{"sort": "rank", "project": "P2", "status": "todo"}
	all["sort f.cost"] = query.Params{"sort": "-f.cost", "project": "P20"}
	for _, preset := range []string{"my_queue", "priorities", "triage", "blocked", "overdue", "ready"} {
		params, err := query.Preset(preset)
		if err != nil {
			panic(err)
		}
		all["preset "+preset] = params
		all["preset "+preset+", project"] = query.Merge(params, query.Params{"project": "P2"})
	}
	for _, by := range []string{
		"status", "status_group", "priority", "assignee", "type", "tag", "project", "unit", "routing_unit", "parent", "due:day", "due:week", "due:bucket", "start:week",
		"f.cost",
	} {
		all["group "+by] = query.Params{"group_by": by, "project": "P2", "open_only": "true"}
		all["company, group "+by] = query.Params{"group_by": by, "status": "in_review"}
	}
	return all
}

func parsed(t *testing.T, params query.Params) *query.Query {
	t.Helper()
	cost := field.Declaration{ID: "sample-cost", Slug: "cost", Type: field.Number}
	q, err := query.Parse(params)
	require.NoError(t, err)
	for _, conditions := range append([][]query.Condition{q.Where}, q.Any...) {
		for n, c := range conditions {
			if query.Slug(c.Key) != "" {
				conditions[n], err = c.Bind(cost, query.Names{})
				require.NoError(t, err)
			}
			if len(c.Values) == 1 && c.Values[0] == "me" {
				conditions[n].Values = []string{"seat-3"}
			}
		}
	}
	if query.Slug(q.Sort.Key) != "" {
		q.Sort.Field = &cost
	}
	if query.Slug(q.GroupBy) != "" {
		q.GroupField = &cost
	}
	return q
}

var asker = Act{
	By: item.Actor{Name: "seat-3", Kind: "agent", Seat: "seat-3"}, At: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Org: &org.Org{Zone: time.UTC},
}

// explained collects the plans of what runs.
type explained struct {
	pool  *pgxpool.Pool
	plans map[string]string
}

func (e *explained) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (e *explained) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (e *explained) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	if data.Err != nil || strings.Contains(data.SQL, "set_config") {
		return
	}
	rows, err := e.pool.Query(ctx, "explain "+data.SQL, append([]any{pgx.QueryExecModeCacheDescribe}, data.Args...)...)
	if err != nil {
		panic(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		panic(err)
	}
	e.plans[data.SQL] = strings.Join(lines, "\n")
}

func (e *explained) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (e *explained) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func TestListsOfManyItems(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "tracker", Migrations())
	require.NoError(t, sample.Load(t.Context(), pool, sample.Size{Items: 30_000, History: 1, Projects: 20, Seats: 100, Until: asker.At}))
	t.Run("no list reads the whole table", func(t *testing.T) { plans(t, pool) })
	s := &Store{pool: pool}
	t.Run("counting stops at 10,000", func(t *testing.T) {
		page, err := s.ListItems(t.Context(), parsed(t, query.Params{}), asker, nil)
		require.NoError(t, err)
		require.Equal(t, int32(10_000), page.Total)
		require.True(t, page.AtLeast)
		page, err = s.ListItems(t.Context(), parsed(t, query.Params{"f.cost": "gte:0"}), asker, nil)
		require.NoError(t, err)
		require.Equal(t, int32(1_000), page.Total)
		require.True(t, page.AtLeast)
	})
	t.Run("a company-wide board over 20,000 matches is refused", func(t *testing.T) {
		_, err := s.Groups(t.Context(), parsed(t, query.Params{"group_by": "status"}), asker)
		require.Equal(t, fault.Invalid, fault.ClassOf(err))
		_, err = s.Groups(t.Context(), parsed(t, query.Params{"group_by": "status", "project": "P1"}), asker)
		require.NoError(t, err)
		board, err := s.Groups(t.Context(), parsed(t, query.Params{"group_by": "assignee", "open_only": "true", "group_limit": "1"}), asker)
		require.NoError(t, err)
		require.Len(t, board.Groups, 32)
		require.Positive(t, board.Dropped, "there are more colleagues than columns")
	})
	t.Run("an order by a custom field over 10,000 matches is refused", func(t *testing.T) {
		_, err := s.ListItems(t.Context(), parsed(t, query.Params{"sort": "f.cost"}), asker, nil)
		require.Equal(t, fault.Invalid, fault.ClassOf(err))
	})
	t.Run("every order walks every item once", func(t *testing.T) {
		for _, sort := range []string{"updated", "-due", "priority", "-title", "estimate", "-points", "reopens", "-reopens", "rank", "f.cost"} {
			q := parsed(t, query.Params{"project": "P20", "sort": sort, "limit": "500"})
			seen := map[string]bool{}
			var cursor *Cursor
			for {
				page, err := s.ListItems(t.Context(), q, asker, cursor)
				require.NoError(t, err)
				for _, row := range page.Items {
					require.False(t, seen[row.Key()], "%s: %s came twice", sort, row.Key())
					seen[row.Key()] = true
				}
				if cursor = page.Next; cursor == nil {
					require.Len(t, seen, int(page.Total), sort)
					break
				}
			}
		}
	})
}

// plans looks at the plan of everything that every list asks the database.
func plans(t *testing.T, pool *pgxpool.Pool) {
	e := &explained{pool: pool}
	config := pool.Config().Copy()
	config.ConnConfig.Tracer, config.MaxConns = e, 1
	traced, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(traced.Close)
	s := &Store{pool: traced}
	for name, params := range lists() {
		t.Run(name, func(t *testing.T) {
			e.plans = map[string]string{}
			q := parsed(t, params)
			if q.GroupBy != "" {
				_, err := s.Groups(t.Context(), q, asker)
				require.NoError(t, err)
			} else {
				page, err := s.ListItems(t.Context(), q, asker, nil)
				require.NoError(t, err)
				if page.Next != nil {
					_, err = s.ListItems(t.Context(), q, asker, page.Next)
					require.NoError(t, err)
				}
			}
			require.NotEmpty(t, e.plans)
			for sql, plan := range e.plans {
				require.NotContains(t, plan, "Seq Scan on items", sql+"\n"+plan)
				require.NotContains(t, plan, "Seq Scan on history", sql+"\n"+plan)
			}
		})
	}
}
