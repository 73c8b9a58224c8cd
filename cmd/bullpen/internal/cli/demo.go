package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/demo"
	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/timeline"
)

func (a *app) demo() *cobra.Command {
	var logLevel string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Do the main job once, on throw-away data, and check every part of it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			executable, err := os.Executable()
			if err != nil {
				return err
			}
			watch := a.Out
			if a.json {
				watch = io.Discard
			}
			report, err := demo.Run(cmd.Context(), demo.Options{
				Executable: executable, Getenv: a.getenv, Watch: watch, LogLevel: logLevel, Log: a.Err,
			})
			if err != nil {
				return fmt.Errorf("the demo could not be run to its end: %w", err)
			}
			if a.json {
				if err := a.printJSON(report); err != nil {
					return err
				}
			} else {
				for _, journal := range report.Journals {
					fmt.Fprintln(a.Out)
					if err := timeline.Write(a.Out, journal, time.Local); err != nil {
						return err
					}
				}
				t := report.Timings
				fmt.Fprintf(a.Out, "\nacknowledged in %.1f ms, turn started %.1f ms later, turn took %.1f ms (the slowest of each)\n",
					t.AckMS, t.AckToTurnMS, t.TurnMS)
			}
			if !report.OK {
				return fmt.Errorf("not every check held")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&logLevel, "log-level", "error", "least level of the services' log, on standard error")
	return cmd
}
