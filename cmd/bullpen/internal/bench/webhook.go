package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/doubles/githubdouble"
)

const (
	// webhookBytes is about the size of a comment's payload from a busy repository.
	webhookBytes = 10 << 10
	webhookRate  = 300
	peakDuring   = 15 * time.Second
	floorDuring  = 5 * time.Second
)

// Webhook measures how fast webhooks are acknowledged: at a steady rate, and at the most.
func Webhook(ctx context.Context, o Options) (report *Report, err error) {
	report = &Report{Area: "webhook", LoadBefore: load()}
	i, err := install(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, i.remove(ctx)) }()
	var p50, p99, worst []float64
	for run := range o.Runs {
		fmt.Fprintf(o.Watch, "run %d of %d: %d webhooks a second for %s\n", run+1, o.Runs, webhookRate, o.Duration)
		acks, err := steady(ctx, webhookRate, o.Duration, i.overheard)
		if err != nil {
			return nil, err
		}
		p50, p99, worst = append(p50, ms(acks.quantile(0.5))), append(p99, ms(acks.quantile(0.99))), append(worst, ms(acks.quantile(1)))
	}
	report.add(fmt.Sprintf("acknowledged at %d/s, p50, median of runs", webhookRate), median(p50), "ms", "")
	report.add(fmt.Sprintf("acknowledged at %d/s, p99, median of runs", webhookRate), median(p99), "ms", "<= 30")
	report.add(fmt.Sprintf("acknowledged at %d/s, the slowest of all", webhookRate), maximum(worst), "ms", "")
	var ratios, peaks, floors []float64
	for range o.Runs {
		floor, err := commitRate(ctx, i.postgres.DSN(), floorDuring)
		if err != nil {
			return nil, err
		}
		var serial atomic.Int64
		peak, err := rate(ctx, peakDuring, floorClients, func(ctx context.Context) error { return i.overheard(ctx, int(serial.Add(1))) })
		if err != nil {
			return nil, err
		}
		peaks, floors, ratios = append(peaks, peak), append(floors, floor), append(ratios, peak/floor)
	}
	report.add(fmt.Sprintf("most at %d clients, median of runs", floorClients), median(peaks), "/s", "")
	report.add(fmt.Sprintf("  floor: single-row commits at %d connections", floorClients), median(floors), "/s", "")
	report.add("most webhooks over single-row commits, median of runs", median(ratios), "", ">= 0.25")
	report.LoadAfter = load()
	return report, nil
}

func maximum(values []float64) float64 {
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	return most
}

// overheard sends a comment of 10 KB that addresses nobody.
func (i *installation) overheard(ctx context.Context, n int) error {
	return i.send(ctx, n, strings.Repeat("A line that nobody has to answer. ", webhookBytes/36))
}

// send posts a comment and answers once it is acknowledged.
func (i *installation) send(ctx context.Context, n int, body string) error {
	webhook := githubdouble.Webhook(githubdouble.Envelope{Secret: secret, DeliveryID: uuid.NewString(), HookID: "1"}, githubdouble.Happening{
		Kind: "issue_comment", Repo: "bench/repo", Number: n + 1, Title: "A question", Sender: "somebody", Author: "somebody",
		ID: time.Now().UnixNano(), Body: body, At: time.Now(),
	})
	request, err := webhook.Request(ctx, i.suite.url+"/webhooks/github")
	if err != nil {
		return err
	}
	response, err := i.client.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if response.StatusCode/100 != 2 {
		err = errors.Join(err, fmt.Errorf("a webhook was answered with status %d", response.StatusCode))
	}
	return errors.Join(err, response.Body.Close())
}

// steady makes a call at each tick of a rate, whatever became of those before, and answers how long each took from its tick.
func steady(ctx context.Context, perSecond int, during time.Duration, call func(ctx context.Context, n int) error) (distribution, error) {
	ctx, cancel := context.WithTimeout(ctx, during+time.Minute)
	defer cancel()
	total := int(during.Seconds() * float64(perSecond))
	took := make(distribution, total)
	var failure atomic.Pointer[error]
	var group sync.WaitGroup
	gap := time.Second / time.Duration(perSecond)
	began := time.Now()
	for n := range total {
		due := began.Add(time.Duration(n) * gap)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Until(due)):
		}
		if err := failure.Load(); err != nil {
			break
		}
		group.Go(func() {
			if err := call(ctx, n); err != nil {
				failure.CompareAndSwap(nil, &err)
			}
			took[n] = time.Since(due)
		})
	}
	group.Wait()
	if err := failure.Load(); err != nil {
		return nil, *err
	}
	return took, nil
}
