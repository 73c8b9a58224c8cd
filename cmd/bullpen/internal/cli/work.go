package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
)

func (a *app) work() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "work",
		Short: "See what became of changes of work items",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.explainChange())
	return cmd
}

// outcomes say in words what became of a change.
func outcomes(state string) string {
	switch state {
	case "told":
		return "It was told:"
	case "nobody":
		return "It concerned nobody."
	case "quiet":
		return "It was told to nobody:"
	case "swept":
		return "It is too old: whom it was told to is not kept any more."
	default:
		return "It is not known: it has not been read yet, or there is no such change."
	}
}

func (a *app) explainChange() *cobra.Command {
	return &cobra.Command{
		Use:     "explain POSITION",
		Short:   "Say whom a change of a work item was told to, and who was left alone and why",
		Long:    "Says whom a change of a work item was told to, and who was left alone and why. POSITION is the change's place in the tracker's\norder, as writes answer it and the item's history shows it.",
		Example: `  bullpen work explain tracker@1:42`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, client, err := a.deadClients()
			if err != nil {
				return err
			}
			response, err := client.ExplainChange(operator(cmd.Context()), &notificationv1.ExplainChangeRequest{Position: args[0]})
			if err != nil {
				return err
			}
			if a.json {
				return a.printMessage(response)
			}
			fmt.Fprintln(a.Out, outcomes(response.GetState()))
			if len(response.GetDecisions()) == 0 {
				return nil
			}
			rows := make([][]string, 0, len(response.GetDecisions()))
			for _, d := range response.GetDecisions() {
				rows = append(rows, []string{d.GetHandle(), d.GetReason(), d.GetOutcome(), d.GetDetail()})
			}
			return table(a.Out, []string{"WHO", "WHY", "OUTCOME", "BECAUSE"}, rows)
		},
	}
}
