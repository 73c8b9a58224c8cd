package cli

import (
	"github.com/spf13/cobra"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/demo"
	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/demo/statusserver"
)

// demoServer is the MCP server that the demo's company declares; the demo starts this program with it.
func demoServer() *cobra.Command {
	return &cobra.Command{
		Use:    demo.ServerCommand,
		Short:  "Serve the demo's MCP server on standard input and output",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return statusserver.Run(cmd.Context(), version()) },
	}
}
