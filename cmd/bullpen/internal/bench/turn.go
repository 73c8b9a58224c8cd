package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/turn/v1/turnv1connect"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

const (
	turnRate = 50
	// settle bounds the wait for the last turns after a load.
	settle = time.Minute
)

// Turn measures how soon a question that was acknowledged becomes a turn, at a steady rate over many seats and conversations, each
// turn answering through the vendor's double.
func Turn(ctx context.Context, o Options) (report *Report, err error) {
	report = &Report{Area: "turn", LoadBefore: load()}
	i, err := install(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, i.remove(ctx)) }()
	keys, err := i.suite.keys()
	if err != nil {
		return nil, err
	}
	turns := turnv1connect.NewTurnServiceClient(rpc.NewClient(rpc.HTTPTransport(i.suite.url), rpc.ClientOptions{Service: "bench", Keys: keys}))
	var p50, p99, worst, length []float64
	asked := 0
	for run := range o.Runs {
		fmt.Fprintf(o.Watch, "run %d of %d: %d questions a second for %s\n", run+1, o.Runs, turnRate, o.Duration)
		from := time.Now()
		first := asked
		acks, err := steady(ctx, turnRate, o.Duration, func(ctx context.Context, n int) error {
			return i.send(ctx, first+n, fmt.Sprintf("@%s can you look?", login(n%seats)))
		})
		if err != nil {
			return nil, err
		}
		asked += len(acks)
		ended, err := settled(ctx, turns, from, len(acks))
		if err != nil {
			return nil, err
		}
		var wait, took distribution
		for _, t := range ended {
			wait = append(wait, t.GetStartTime().AsTime().Sub(t.GetReceiveTime().AsTime()))
			took = append(took, t.GetEndTime().AsTime().Sub(t.GetStartTime().AsTime()))
		}
		p50, p99 = append(p50, ms(wait.quantile(0.5))), append(p99, ms(wait.quantile(0.99)))
		worst, length = append(worst, ms(wait.quantile(1))), append(length, ms(took.quantile(0.5)))
	}
	report.add(fmt.Sprintf("durable to turn started at %d/s, p50, median of runs", turnRate), median(p50), "ms", "<= 15")
	report.add(fmt.Sprintf("durable to turn started at %d/s, p99, median of runs", turnRate), median(p99), "ms", "<= 60")
	report.add("durable to turn started, the slowest of all", maximum(worst), "ms", "")
	report.add("a turn of two rounds and one answer, p50, median of runs", median(length), "ms", "")
	floor, err := commitRate(ctx, i.postgres.DSN(), floorDuring)
	if err != nil {
		return nil, err
	}
	report.add(fmt.Sprintf("  floor: single-row commits at %d connections", floorClients), floor, "/s", "")
	report.add("turns", float64(asked), "", "")
	report.LoadAfter = load()
	return report, nil
}

// settled waits until so many turns that began since a moment have ended, and answers them.
func settled(ctx context.Context, turns turnv1connect.TurnServiceClient, from time.Time, count int) ([]*turnv1.Turn, error) {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	for {
		ended, err := since(ctx, turns, from)
		if err == nil && len(ended) >= count {
			return ended, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("%d of %d turns ended within %s of the load", len(ended), count, settle), err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// since answers the turns that began since a moment and have ended.
func since(ctx context.Context, turns turnv1connect.TurnServiceClient, from time.Time) ([]*turnv1.Turn, error) {
	var found []*turnv1.Turn
	request := &turnv1.ListTurnsRequest{State: "done", Limit: 200}
	for {
		page, err := turns.ListTurns(ctx, request)
		if err != nil {
			return nil, err
		}
		for _, t := range page.GetTurns() {
			if t.GetReceiveTime().AsTime().Before(from) {
				return found, nil
			}
			found = append(found, t)
		}
		if request.Cursor = page.GetNextCursor(); request.GetCursor() == "" {
			return found, nil
		}
	}
}
