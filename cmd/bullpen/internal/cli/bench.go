package cli

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/bench"
)

func (a *app) bench() *cobra.Command {
	o := bench.Options{Watch: a.Err}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the suite on this machine, beside floors taken in the same run",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().DurationVar(&o.Duration, "duration", time.Minute, "how long each load runs")
	cmd.PersistentFlags().IntVar(&o.Runs, "runs", 3, "how often each is repeated; medians are reported")
	cmd.PersistentFlags().DurationVar(&o.Idle, "idle", time.Minute, "boot: how long the suite rests before its memory is read")
	area := func(name, short string, run func(context.Context, bench.Options) (*bench.Report, error)) *cobra.Command {
		return &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Executable, err = os.Executable(); err != nil {
				return err
			}
			report, err := run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(report)
			}
			return report.Write(a.Out)
		}}
	}
	call, quick := bench.CallDefaults(o), false
	callCommand := area("call", "What a tool call costs that goes through the suite", func(ctx context.Context, o bench.Options) (*bench.Report, error) {
		if quick {
			return bench.Call(ctx, bench.CallQuick(o))
		}
		call.Options = o
		return bench.Call(ctx, call)
	})
	callCommand.Flags().BoolVar(&quick, "quick", false, "take seconds: show that everything works, and measure little")
	callCommand.Flags().IntVar(&call.Rounds, "rounds", call.Rounds, "how often each load runs with each arm")
	callCommand.Flags().DurationVar(&call.Slice, "slice", call.Slice, "how long each load runs with one arm in one round")
	work := bench.TrackerDefaults()
	trackerCommand := area("tracker", "How fast work is read, searched and written, among little and much of it", func(ctx context.Context, o bench.Options) (*bench.Report, error) {
		work.Options = o
		return bench.Tracker(ctx, work)
	})
	trackerCommand.Flags().IntSliceVar(&work.Items, "items", work.Items, "how many items there are, one installation for each")
	trackerCommand.Flags().IntVar(&work.History, "history", work.History, "how many rows of history each has")
	trackerCommand.Flags().DurationVar(&work.Slice, "slice", work.Slice, "how long each load runs in one round")
	cmd.AddCommand(
		trackerCommand,
		callCommand,
		area("boot", "How long until ready, and how much memory at rest", bench.Boot),
		area("webhook", "How fast webhooks are acknowledged", bench.Webhook),
		area("turn", "How soon a question becomes a turn", bench.Turn),
	)
	return cmd
}
