package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
)

func (a *app) toolSkills() *cobra.Command {
	request := &toolregistryv1.ListToolSkillsRequest{}
	cmd := &cobra.Command{
		Use:   "skills",
		Short: "List the tool skills in force, and the pages that are none, with why",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.registryClient()
			if err != nil {
				return err
			}
			response, err := client.ListToolSkills(operator(cmd.Context()), request)
			if err != nil {
				return err
			}
			if a.json {
				return a.printMessage(response)
			}
			return a.printSkills(response)
		},
	}
	cmd.Flags().StringVar(&request.Seat, "seat", "", "only those for tools of this seat")
	return cmd
}

func (a *app) printSkills(response *toolregistryv1.ListToolSkillsResponse) error {
	if len(response.GetSkills()) == 0 {
		fmt.Fprintln(a.Out, "No tool skill is in force.")
	} else {
		var rows [][]string
		for _, s := range response.GetSkills() {
			holds := "advice"
			if s.GetRequired() {
				holds = "required"
			}
			tools := strings.Join(s.GetTools(), " ")
			if tools == "" {
				tools = "none there now"
			}
			rows = append(rows, []string{s.GetKey(), holds, tools, s.GetSummary()})
		}
		if err := table(a.Out, []string{"KEY", "HOLDS", "TOOLS", "SUMMARY"}, rows); err != nil {
			return err
		}
	}
	for _, r := range response.GetRefused() {
		fmt.Fprintf(a.Out, "The page %q (%s) is no tool skill: %s.\n", r.GetTitle(), r.GetPageId(), r.GetReason())
	}
	return nil
}
