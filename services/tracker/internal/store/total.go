package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/services/tracker/internal/query"
)

// maxTotalled is over how many items numbers are computed.
const maxTotalled = 100_000

// Number is a total; Value is nil when no item has one.
type Number struct {
	Name  string
	Value *float64
}

// aggregate writes a total of a column.
func aggregate(function, column string) string {
	switch function {
	case "median":
		return "percentile_cont(0.5) within group (order by " + column + ")"
	case "p90":
		return "percentile_cont(0.9) within group (order by " + column + ")"
	default: // sum, avg, min and max are SQL's own
		return function + "(" + column + ")"
	}
}

// Totals answers the numbers that a query asks for, over all its matches. They are nil, and over is true, when these are too many.
func (s *Store) Totals(ctx context.Context, q *query.Query, a Act) (numbers []Number, over bool, err error) {
	all := conditions(q, a)
	if q.Group != nil {
		columnOfQuery(q).only(all, *q.Group)
	}
	err = s.read(ctx, func(batch *pgx.Batch) { all.total(batch, q.Totals, &numbers) })
	return numbers, err == nil && numbers == nil, err
}

// total asks for numbers over everything that matches, into numbers; nil when there are too many.
func (s *statement) total(batch *pgx.Batch, wanted []query.Total, numbers *[]Number) {
	own := s.fork()
	inner, outer := []string{"1"}, []string{"count(*)::float8"}
	for n, t := range wanted {
		var expr string
		switch {
		case t.Func == "count":
			outer = append(outer, "count(*)::float8")
			continue
		case t.Field != nil:
			expr = amount(own.arg(t.Field.ID))
		case t.Of == "estimate":
			expr = "i.estimate_minutes"
		default:
			expr = "i.points"
		}
		name := fmt.Sprintf("v%d", n)
		inner = append(inner, expr+"::float8 as "+name)
		outer = append(outer, aggregate(t.Func, name)+"::float8")
	}
	sql := fmt.Sprintf("select %s from (select %s from items i where %s limit %d) counted", strings.Join(outer, ", "), strings.Join(inner, ", "), own.where(), maxTotalled+1)
	batch.Queue(sql, own.args...).QueryRow(func(row pgx.Row) error {
		values := make([]*float64, len(outer))
		into := make([]any, len(outer))
		for n := range values {
			into[n] = &values[n]
		}
		if err := row.Scan(into...); err != nil {
			return err
		}
		if *values[0] > maxTotalled {
			return nil
		}
		*numbers = make([]Number, 0, len(wanted))
		for n, t := range wanted {
			*numbers = append(*numbers, Number{Name: t.String(), Value: values[n+1]})
		}
		return nil
	})
}
