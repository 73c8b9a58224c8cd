package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
)

func (a *app) toolChanges() *cobra.Command {
	return &cobra.Command{
		Use:   "changes [SERVER]",
		Short: "Show tools whose definition is not what was first seen, with both",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &toolregistryv1.ListToolChangesRequest{}
			if len(args) > 0 {
				request.Server = args[0]
			}
			client, err := a.registryClient()
			if err != nil {
				return err
			}
			response, err := client.ListToolChanges(operator(cmd.Context()), request)
			if err != nil {
				return err
			}
			if a.json {
				return a.printMessage(response)
			}
			for _, change := range response.GetChanges() {
				a.printChange(change)
			}
			if len(response.GetChanges()) == 0 {
				fmt.Fprintln(a.Out, "No tool differs from what was first seen or accepted.")
			}
			return nil
		},
	}
}

// printChange prints what differs, member by member, spelt as JSON: nothing in it can hide or move what stands beside it.
func (a *app) printChange(c *toolregistryv1.ToolChange) {
	state := "changed"
	if c.GetHeld() {
		state = "held: seats do not have it until it is accepted"
	}
	fmt.Fprintf(a.Out, "%s %s (%s), digest %s\n", c.GetServer(), quotedIfOdd(c.GetTool()), state, c.GetDigest())
	known, current := membersOf(c.GetKnownJson()), membersOf(c.GetCurrentJson())
	names := maps.Clone(known)
	maps.Copy(names, current)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if known[name] != current[name] {
			fmt.Fprintf(a.Out, "  %s\n    was %s\n    is  %s\n", name, orNothing(known[name]), orNothing(current[name]))
		}
	}
}

func quotedIfOdd(name string) string {
	if quoted := fmt.Sprintf("%+q", name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

func membersOf(document string) map[string]string {
	var raw map[string]json.RawMessage
	members := map[string]string{}
	if json.Unmarshal([]byte(document), &raw) == nil {
		for name, value := range raw {
			members[name] = string(value)
		}
	}
	return members
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

func (a *app) acceptTool() *cobra.Command {
	var digest string
	var all bool
	cmd := &cobra.Command{
		Use:   "accept SERVER [TOOL]",
		Short: "Take a changed definition as the one that is known",
		Long: "Takes the definition that a tool of an MCP server has now as the one that is known, for every seat. Look at it with\n" +
			"`bullpen tools changes` first.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) == 2) {
				return usageError{fmt.Errorf("name one tool, or give --all for every changed tool of the server")}
			}
			client, err := a.registryClient()
			if err != nil {
				return err
			}
			listed, err := client.ListToolChanges(operator(cmd.Context()), &toolregistryv1.ListToolChangesRequest{Server: args[0]})
			if err != nil {
				return err
			}
			accepted := []*toolregistryv1.ToolChange{}
			for _, change := range listed.GetChanges() {
				if (all || change.GetTool() == args[1]) && (digest == "" || change.GetDigest() == digest) {
					accepted = append(accepted, change)
				}
			}
			if len(accepted) == 0 {
				return fmt.Errorf("no such changed tool of %s; `bullpen tools changes` shows those there are", args[0])
			}
			if !all && len(accepted) > 1 {
				return fmt.Errorf("seats are shown %d definitions of it; choose one with --digest", len(accepted))
			}
			for _, change := range accepted {
				if _, err := client.AcceptToolChange(operator(cmd.Context()), &toolregistryv1.AcceptToolChangeRequest{
					Server: change.GetServer(), Tool: change.GetTool(), Digest: change.GetDigest(),
				}); err != nil {
					return err
				}
			}
			if a.json {
				return a.printMessage(&toolregistryv1.ListToolChangesResponse{Changes: accepted})
			}
			_, err = fmt.Fprintf(a.Out, "Accepted %s of %s.\n", count(len(accepted), "definition"), args[0])
			return err
		},
	}
	cmd.Flags().StringVar(&digest, "digest", "", "only the definition with this digest")
	cmd.Flags().BoolVar(&all, "all", false, "every changed tool of the server")
	return cmd
}
