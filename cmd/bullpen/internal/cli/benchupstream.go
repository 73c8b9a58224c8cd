package cli

import (
	"github.com/spf13/cobra"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/bench"
	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/bench/upstream"
)

// benchUpstream is the MCP server that `bullpen bench call` measures calls against; it starts this program with it.
func (a *app) benchUpstream() *cobra.Command {
	var tools int
	var http bool
	cmd := &cobra.Command{
		Use:    bench.UpstreamCommand,
		Short:  "Serve the benchmark's MCP server on standard input and output, or over HTTP",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if http {
				return upstream.Serve(cmd.Context(), tools, a.In, a.Out)
			}
			return upstream.Run(cmd.Context(), tools)
		},
	}
	cmd.Flags().IntVar(&tools, "tools", 0, "how many tools to bring beside the one that is called")
	cmd.Flags().BoolVar(&http, "http", false, "serve on a free loopback port, and print its address")
	return cmd
}
