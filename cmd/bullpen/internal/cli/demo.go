package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/demo"
	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/story"
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
				err = fmt.Errorf("the demo could not be run to its end: %w", err)
			}
			if a.json {
				if err := a.printJSON(whole(report, err)); err != nil {
					return err
				}
			}
			if err != nil {
				return err
			}
			if !a.json {
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
				return errors.New("not every check held")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&logLevel, "log-level", "error", "least level of the services' log, on standard error")
	return cmd
}

// whole is a report that can be read whatever happened: an end that came too early is a check that did not hold.
func whole(report *story.Report, err error) *story.Report {
	if report == nil {
		report = &story.Report{Checks: []story.Check{}}
	}
	if err != nil {
		report.OK = false
		report.Checks = append(report.Checks, story.Check{Name: "the demo ran to its end", Detail: err.Error()})
	}
	return report
}
