package bench

import (
	"context"
	"fmt"
	"sync/atomic"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// writeTarget is what a write is to reach, of the rate at which single rows are committed.
const writeTarget = ">= 0.35"

// writes measures each kind of write at floorClients connections, each round beside a round of single-row commits on the same server.
func (s *trackerSite) writes(ctx context.Context, o TrackerOptions, name func(string) string, report *Report) error {
	var next atomic.Int64
	numbered := func() (item string, n int64) {
		n = next.Add(1)
		return fmt.Sprintf("P%d-%d", 1+n%trackerProjects, 1+n/trackerProjects%int64(max(1, s.items/1000))), n
	}
	priorities := []string{"low", "normal", "high", "urgent"}
	kinds := []struct {
		name string
		call func(context.Context) error
	}{
		{"create", func(ctx context.Context) error {
			n := next.Add(1)
			_, err := s.client.CreateWorkItem(ctx, &trackerv1.CreateWorkItemRequest{
				Project: fmt.Sprintf("P%d", 1+n%trackerProjects), Title: fmt.Sprintf("Bench number %d", n), Body: "Filed to see how long that takes.", EvenIfExists: true,
			})
			return err
		}},
		{"update", func(ctx context.Context) error {
			item, n := numbered()
			_, err := s.client.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{Item: item, Priority: &priorities[int(n)%len(priorities)]})
			return ignoreFrozen(err)
		}},
		{"comment", func(ctx context.Context) error {
			item, n := numbered()
			_, err := s.client.CommentOnWorkItem(ctx, &trackerv1.CommentOnWorkItemRequest{Item: item, Body: fmt.Sprintf("Remark %d.", n)})
			return ignoreFrozen(err)
		}},
	}
	rates, ratios, floors := make([][]float64, len(kinds)), make([][]float64, len(kinds)), []float64(nil)
	for round := range o.Runs {
		fmt.Fprintf(o.Watch, "%s items: writes, round %d of %d\n", thousands(s.items), round+1, o.Runs)
		for i, kind := range kinds {
			floor, err := commitRate(ctx, s.dsn, o.Slice)
			if err != nil {
				return err
			}
			written, err := rate(ctx, o.Slice, floorClients, func(bounded context.Context) error {
				// A call under way at the end is finished: one that is given up would be told that nobody knows what became of it.
				return kind.call(caller(context.WithoutCancel(bounded)))
			})
			if err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
			floors, rates[i], ratios[i] = append(floors, floor), append(rates[i], written), append(ratios[i], written/floor)
		}
	}
	report.add(name(fmt.Sprintf("floor: single-row commits at %d connections", floorClients)), median(floors), "/s", "")
	for i, kind := range kinds {
		report.add(name(kind.name+" at 8 connections"), median(rates[i]), "/s", "")
		report.add(name("  of the floor, median of rounds"), median(ratios[i]), "", writeTarget)
	}
	return nil
}

// ignoreFrozen lets a write be refused because its item is in the trash, as one of a hundred is.
func ignoreFrozen(err error) error {
	if err != nil && rpc.FromError(err).Reason == "ITEM_REMOVED" {
		return nil
	}
	return err
}
