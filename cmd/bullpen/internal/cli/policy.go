package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
)

func (a *app) policy() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "See what the rules about tools decide, and try other ones",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.explain(), a.simulate())
	return cmd
}

func (a *app) explain() *cobra.Command {
	request := &toolregistryv1.ExplainToolRequest{}
	cmd := &cobra.Command{
		Use:     "explain SEAT TOOL",
		Short:   "Say why a seat has a tool, or lacks it, and which rule decides",
		Example: `  bullpen policy explain ops-lead create_work_item --args '{"title":"Renew the certificate"}'`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			request.Seat, request.Tool = args[0], args[1]
			client, err := a.registryClient()
			if err != nil {
				return err
			}
			response, err := client.ExplainTool(operator(cmd.Context()), request)
			if err != nil {
				return err
			}
			if a.json {
				return a.printMessage(response)
			}
			shown := "The seat's list does not show it."
			if response.GetListed() {
				shown = "The seat's list shows it."
			}
			fmt.Fprintf(a.Out, "%s: %s %s\n", response.GetDecision(), response.GetExplanation(), shown)
			if len(response.GetRules()) == 0 {
				return nil
			}
			fmt.Fprintln(a.Out)
			rows := make([][]string, 0, len(response.GetRules()))
			for _, r := range response.GetRules() {
				rows = append(rows, []string{r.GetRule(), r.GetEffect(), r.GetVerdict(), r.GetBecause()})
			}
			return table(a.Out, []string{"RULE", "EFFECT", "VERDICT", "BECAUSE"}, rows)
		},
	}
	cmd.Flags().StringVar(&request.ArgumentsJson, "args", "", "arguments to decide about, one JSON object; without it, what is decided before they are known")
	return cmd
}

func (a *app) simulate() *cobra.Command {
	request := &toolregistryv1.SimulatePolicyRequest{}
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "simulate FILE",
		Short: "Run another `tool_policy` over recorded calls, and show those that it decides otherwise",
		Long:  "Runs the block `tool_policy` of FILE over recorded calls, and shows those that it decides otherwise. FILE is a company document, or\nthe block alone; of a document nothing else is looked at.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readFile(args[0])
			if err != nil {
				return err
			}
			request.PolicyYaml = policyBlock(string(text))
			if since > 0 {
				request.Since = timestamppb.New(time.Now().Add(-since))
			}
			client, err := a.registryClient()
			if err != nil {
				return err
			}
			response, err := client.SimulatePolicy(operator(cmd.Context()), request)
			if err != nil {
				return err
			}
			if a.json {
				return a.printMessage(response)
			}
			return a.printSimulation(response)
		},
	}
	cmd.Flags().StringVar(&request.Seat, "seat", "", "only this seat's calls")
	cmd.Flags().DurationVar(&since, "since", 0, "only calls of the last while, such as 24h")
	cmd.Flags().Int32Var(&request.Limit, "limit", 1000, "how many calls, the newest first")
	return cmd
}

// policyBlock answers the block `tool_policy` of a company document, with an empty comment for every other line, so that lines keep
// their numbers. A text without the block at its top is the block itself.
func policyBlock(text string) string {
	var block strings.Builder
	inside, found := false, false
	for line := range strings.Lines(text) {
		if !strings.ContainsRune(" \t#}\r\n", rune(line[0])) {
			inside = strings.HasPrefix(line, "tool_policy:")
			found = found || inside
		}
		if inside {
			block.WriteString(line)
		} else {
			block.WriteString("#\n")
		}
	}
	if !found {
		return text
	}
	return block.String()
}

func (a *app) printSimulation(r *toolregistryv1.SimulatePolicyResponse) error {
	fmt.Fprintf(a.Out, "%s looked at:", count(int(r.GetExamined()), "call"))
	for i, effect := range slices.Sorted(maps.Keys(r.GetDecisions())) {
		if i > 0 {
			fmt.Fprint(a.Out, ",")
		}
		fmt.Fprintf(a.Out, " %d %s", r.GetDecisions()[effect], effect)
	}
	fmt.Fprintln(a.Out)
	if len(r.GetDifferences()) == 0 {
		_, err := fmt.Fprintln(a.Out, "None would be decided otherwise.")
		return err
	}
	rows := make([][]string, 0, len(r.GetDifferences()))
	for _, d := range r.GetDifferences() {
		rows = append(rows, []string{d.GetAuditId(), d.GetSeat(), d.GetTool(), d.GetWas(), d.GetWasRule(), d.GetWouldBe(), d.GetWouldBeRule()})
	}
	return table(a.Out, []string{"CALL", "SEAT", "TOOL", "WAS", "BY", "WOULD BE", "BY"}, rows)
}
