package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/suite"
)

// reference prints the pages that are generated from the code; `make generate` writes them into docs/reference.
func (a *app) reference() *cobra.Command {
	cmd := &cobra.Command{
		Use:    "reference",
		Short:  "Print a generated page of the documentation",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "configuration",
		Short: "Every flag and its environment twin",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(a.Out, suite.ConfigurationPage())
			return err
		},
	})
	return cmd
}
