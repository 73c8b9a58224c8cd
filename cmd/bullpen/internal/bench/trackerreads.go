package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/services/tracker"
)

// mostReads bounds the calls of one kind in one round.
const mostReads = 400

// deepPages is how many pages are turned before the one that is measured.
const deepPages = 40

// read is one kind of question.
type read struct {
	name, target string
	ask          func(ctx context.Context, n int) error
}

const (
	listTarget   = "p99 <= 10"
	searchTarget = "p99 <= 80"
)

// reads measures every kind of question in interleaved rounds, beside the least that a question can cost.
func (s *trackerSite) reads(ctx context.Context, o TrackerOptions, kinds []read, name func(string) string, report *Report) error {
	pool, err := pg.Open(ctx, s.dsn, tracker.Module.Name)
	if err != nil {
		return err
	}
	defer pool.Close()
	kinds = append(slices.Clone(kinds), read{"  floor: one row by its key, straight from Postgres", "", func(ctx context.Context, n int) error {
		var title string
		return pool.QueryRow(ctx, "select title from items where project = $1 and number = $2", "P1", 1+n*7919%(s.items/100)).Scan(&title)
	}})
	took := make([]distribution, len(kinds))
	for round := range o.Runs {
		fmt.Fprintf(o.Watch, "%s items: reads, round %d of %d\n", thousands(s.items), round+1, o.Runs)
		for i, kind := range kinds {
			some, err := timed(ctx, o.Slice, round*mostReads, kind.ask)
			if err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
			took[i] = append(took[i], some...)
		}
	}
	for i, kind := range kinds {
		report.add(name(kind.name+", p50"), ms(took[i].quantile(0.5)), "ms", "")
		report.add(name(kind.name+", p99"), ms(took[i].quantile(0.99)), "ms", kind.target)
	}
	return nil
}

// firstReads measures the first question of each kind after a restart of Postgres and the suite.
func (s *trackerSite) firstReads(ctx context.Context, o TrackerOptions, kinds []read, name func(string) string, report *Report) error {
	fmt.Fprintf(o.Watch, "%s items: the first reads after a restart\n", thousands(s.items))
	if err := s.restart(ctx); err != nil {
		return err
	}
	report.add(name("suite ready on its index, after a restart, in"), ms(s.suite.started), "ms", "<= 1500")
	for _, kind := range kinds {
		first, err := timed(ctx, 0, mostReads*o.Runs, kind.ask)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		report.add(name(kind.name+", first after a restart"), ms(first[0]), "ms", "")
	}
	return nil
}

// timed asks again and again, at least once, for so long at the most.
func timed(ctx context.Context, during time.Duration, from int, ask func(context.Context, int) error) (distribution, error) {
	var took distribution
	began := time.Now()
	for n := 0; n == 0 || n < mostReads && time.Since(began) < during; n++ {
		at := time.Now()
		if err := ask(caller(ctx), from+n); err != nil {
			return nil, err
		}
		took = append(took, time.Since(at))
	}
	return took, ctx.Err()
}

func (s *trackerSite) kinds(ctx context.Context) ([]read, error) {
	list := func(request *trackerv1.ListWorkItemsRequest) func(context.Context, int) error {
		return func(ctx context.Context, _ int) error {
			_, err := s.client.ListWorkItems(ctx, request)
			return err
		}
	}
	search := func(text func(n int) string) func(context.Context, int) error {
		return func(ctx context.Context, n int) error {
			_, err := s.client.SearchWorkItems(ctx, &trackerv1.SearchWorkItemsRequest{Text: text(n)})
			return err
		}
	}
	of := func(texts ...string) func(int) string { return func(n int) string { return texts[n%len(texts)] } }
	deep, err := s.deep(caller(ctx))
	if err != nil {
		return nil, err
	}
	board, err := s.board(caller(ctx))
	if err != nil {
		return nil, err
	}
	return []read{
		{"list a project, newest first", listTarget, list(&trackerv1.ListWorkItemsRequest{Project: "P1"})},
		{"list somebody's open items", listTarget, list(&trackerv1.ListWorkItemsRequest{Assignee: "seat-3", OpenOnly: true})},
		{"list a project, several status groups", listTarget, list(&trackerv1.ListWorkItemsRequest{Project: "P1", Status: []string{"todo", "in_progress", "done"}})},
		{"list open items by due date", listTarget, list(&trackerv1.ListWorkItemsRequest{OpenOnly: true, Sort: "due"})},
		{"list open items by priority", listTarget, list(&trackerv1.ListWorkItemsRequest{OpenOnly: true, Sort: "-priority"})},
		{"list by a label", listTarget, list(&trackerv1.ListWorkItemsRequest{Label: "label-3", OpenOnly: true})},
		{fmt.Sprintf("list, page %d", deepPages+1), listTarget, list(deep)},
		{"board of a project", "", list(board)},
		{"search, a common word", searchTarget, search(of("certificate", "review", "warehouse", "dashboard"))},
		{"search, two common words", searchTarget, search(of("renew certificate", "repair checkout", "measure returns"))},
		{"search, a rare word", searchTarget, search(func(n int) string { return fmt.Sprint(1 + n*7919%s.items) })},
		{"search, a typo", searchTarget, search(of("certifcate", "warehosue", "newsleter", "dashboarf"))},
		{"read one item whole", "", func(ctx context.Context, n int) error {
			_, err := s.client.GetWorkItem(ctx, &trackerv1.GetWorkItemRequest{Item: fmt.Sprintf("P1-%d", 1+n*7919%(s.items/100))})
			return err
		}},
	}, nil
}

// deep answers the question for a page far down a list.
func (s *trackerSite) deep(ctx context.Context) (*trackerv1.ListWorkItemsRequest, error) {
	request := &trackerv1.ListWorkItemsRequest{Project: "P1", Limit: 25}
	for range deepPages {
		page, err := s.client.ListWorkItems(ctx, request)
		if err != nil {
			return nil, err
		}
		request.Cursor = page.GetNextCursor()
	}
	return request, nil
}

// board saves a view in the shape of a board and answers the question for it.
func (s *trackerSite) board(ctx context.Context) (*trackerv1.ListWorkItemsRequest, error) {
	params, err := structpb.NewStruct(map[string]any{"container": "project:P1", "group_by": "status", "open_only": "true"})
	if err != nil {
		return nil, err
	}
	view, err := s.client.SaveWorkView(ctx, &trackerv1.SaveWorkViewRequest{Container: "project:P1", Name: "Board", Type: "board", Params: params})
	if err != nil {
		return nil, err
	}
	return &trackerv1.ListWorkItemsRequest{View: view.GetId(), Limit: 20}, nil
}
