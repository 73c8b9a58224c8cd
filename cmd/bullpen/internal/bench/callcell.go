package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
)

// CallCell is one arm under one load, over all rounds.
type CallCell struct {
	Transport string `json:"transport"`
	Bytes     int    `json:"bytes"`
	Workers   int    `json:"workers"`
	Arm       string `json:"arm"`
	Calls     int    `json:"calls"`
	// The distribution of all calls.
	P50  float64 `json:"p50_ms"`
	P99  float64 `json:"p99_ms"`
	P999 float64 `json:"p999_ms"`
	// Added is what the arm's quantiles are above those of the direct calls under the same load.
	AddedP50  float64 `json:"added_p50_ms"`
	AddedP99  float64 `json:"added_p99_ms"`
	AddedP999 float64 `json:"added_p999_ms"`
	// Rate is the median of the rounds; Ratio is that to the direct rate of the same round, Least and Most its spread.
	Rate  float64 `json:"calls_per_second"`
	Ratio float64 `json:"ratio_to_direct"`
	Least float64 `json:"ratio_least"`
	Most  float64 `json:"ratio_most"`
	// CPU is what this process, which is the caller and the suite, spent on 1,000 calls, in seconds. The upstream's is not in it.
	CPU float64 `json:"cpu_seconds_per_1000"`
}

// slot is one arm in one round.
type slot struct {
	took distribution
	rate float64
	cpu  float64 // seconds a call
}

// cell measures arms under one load: round after round, in each of them one arm after the other, so that what the machine does
// meanwhile hits all of them. The first arm is the one that the others are compared with.
func cell(ctx context.Context, o CallOptions, arms []arm, workers, bytes int, serial *atomic.Int64) ([]CallCell, error) {
	slots := make([][]slot, len(arms))
	for round := range o.Rounds {
		for turn := range arms {
			n := (turn + round) % len(arms) // nobody is always the first
			s, err := measure(ctx, o.Slice, workers, func(ctx context.Context) error {
				return arms[n].call(ctx, int(serial.Add(1)), bytes)
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", arms[n].name, err)
			}
			slots[n] = append(slots[n], s)
		}
	}
	cells := make([]CallCell, len(arms))
	for n, a := range arms {
		var all distribution
		var rates, ratios, cpu []float64
		for round, s := range slots[n] {
			all = append(all, s.took...)
			rates, cpu = append(rates, s.rate), append(cpu, s.cpu*1000)
			ratios = append(ratios, s.rate/slots[0][round].rate)
		}
		cells[n] = CallCell{
			Bytes: bytes, Workers: workers, Arm: a.name, Calls: len(all),
			P50: ms(all.quantile(0.5)), P99: ms(all.quantile(0.99)), P999: ms(all.quantile(0.999)),
			Rate: median(rates), Ratio: median(ratios), Least: slices.Min(ratios), Most: slices.Max(ratios), CPU: median(cpu),
		}
		cells[n].AddedP50, cells[n].AddedP99, cells[n].AddedP999 = cells[n].P50-cells[0].P50, cells[n].P99-cells[0].P99, cells[n].P999-cells[0].P999
	}
	return cells, nil
}

// measure makes calls from so many workers, each as soon as its last one is answered, until the time is over. A call that began in
// time is waited for and counts.
func measure(ctx context.Context, during time.Duration, workers int, call func(context.Context) error) (slot, error) {
	runtime.GC() // nobody pays for what another left
	var failure atomic.Pointer[error]
	parts := make([]distribution, workers)
	ready, barrier := sync.WaitGroup{}, make(chan struct{})
	var group sync.WaitGroup
	ready.Add(workers)
	var end time.Time
	for w := range workers {
		group.Go(func() {
			ready.Done()
			<-barrier
			for began := time.Now(); began.Before(end) && failure.Load() == nil; {
				if err := call(ctx); err != nil {
					failure.CompareAndSwap(nil, &err)
					return
				}
				now := time.Now()
				parts[w] = append(parts[w], now.Sub(began))
				began = now
			}
		})
	}
	ready.Wait()
	spent, began := processorTime(), time.Now()
	end = began.Add(during)
	close(barrier)
	group.Wait()
	elapsed := time.Since(began)
	spent = processorTime() - spent
	if err := failure.Load(); err != nil {
		return slot{}, *err
	}
	took := slices.Concat(parts...)
	return slot{took: took, rate: float64(len(took)) / elapsed.Seconds(), cpu: spent.Seconds() / float64(len(took))}, nil
}

// repeat makes a call so many times in all, from so many workers.
func repeat(ctx context.Context, workers, times int, call func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	var left atomic.Int64
	left.Store(int64(times))
	for range workers {
		group.Go(func() error {
			for left.Add(-1) >= 0 {
				if err := call(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// processorTime is what this process has used of the processors since its start.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// writeCells prints cells as a table.
func writeCells(w io.Writer, cells []CallCell) error {
	if len(cells) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "upstream\tbytes\tworkers\tarm\tp50 ms\tp99 ms\tp99.9 ms\tadded p50\tadded p99\tadded p99.9\tcalls/s\tratio\t(spread)\tCPU s/1,000\tcalls\t")
	for _, c := range cells {
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%.3f\t%.3f\t%.3f\t%+.3f\t%+.3f\t%+.3f\t%.0f\t%.2f\t(%.2f-%.2f)\t%.3f\t%d\t\n",
			c.Transport, c.Bytes, c.Workers, c.Arm, c.P50, c.P99, c.P999, c.AddedP50, c.AddedP99, c.AddedP999, c.Rate, c.Ratio, c.Least, c.Most, c.CPU, c.Calls)
	}
	return table.Flush()
}
