package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
)

func (a *app) servers() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "List the MCP servers and how they do on each node",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.registryClient()
			if err != nil {
				return err
			}
			response, err := client.ListMcpServers(operator(cmd.Context()), &toolregistryv1.ListMcpServersRequest{})
			if err != nil {
				return err
			}
			if a.json {
				return a.printMessage(response)
			}
			if len(response.GetServers()) == 0 {
				_, err := fmt.Fprintln(a.Out, "The company declares no MCP servers.")
				return err
			}
			return a.serverTable(response.GetServers())
		},
	}
	cmd.AddCommand(a.showServer(), a.putServer(), a.restartServer())
	return cmd
}

func (a *app) restartServer() *cobra.Command {
	var seat string
	cmd := &cobra.Command{
		Use:   "restart NAME",
		Short: "Start a server's instances anew on every node, as after a secret was rotated",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.registryClient()
			if err != nil {
				return err
			}
			response, err := client.RestartMcpServer(operator(cmd.Context()), &toolregistryv1.RestartMcpServerRequest{Server: args[0], Seat: seat})
			if err != nil {
				return err
			}
			if a.json {
				return a.printMessage(response)
			}
			_, err = fmt.Fprintf(a.Out, "%s: instances that start anew: %d.\n", args[0], response.GetRestarted())
			return err
		},
	}
	cmd.Flags().StringVar(&seat, "seat", "", "only the instance of this seat")
	return cmd
}

// serverState is a state as people read it.
func serverState(s *toolregistryv1.McpServerStatus) string {
	text := strings.ReplaceAll(s.GetState(), "_", " ")
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// instanceState is where an instance is in its life, as people read it.
func instanceState(state string) string {
	switch state {
	case "spawn", "initialise":
		return "starting"
	case "shutdown":
		return "stopping"
	default:
		return state
	}
}

func (a *app) serverTable(servers []*toolregistryv1.McpServerStatus) error {
	var rows [][]string
	for _, s := range servers {
		reach := "each seat's own"
		if s.GetShared() {
			reach = "shared"
		}
		reason := s.GetReason()
		if s.GetSeat() != "" && reason != "" {
			reason = s.GetSeat() + ": " + reason
		}
		rows = append(rows, []string{s.GetServer(), serverState(s), reach, s.GetTransport(), "", fmt.Sprint(s.GetToolCount()), firstSentence(reason)})
		for _, n := range s.GetNodes() {
			rows = append(rows, []string{
				"  on " + n.GetNode(), instanceState(n.GetState()), "", "", fmt.Sprintf("%d of %d", n.GetReady(), n.GetInstances()), "", firstSentence(n.GetReason()),
			})
		}
	}
	if err := table(a.Out, []string{"SERVER", "STATE", "REACH", "TRANSPORT", "READY", "TOOLS", "FIRST FAILURE"}, rows); err != nil {
		return err
	}
	for _, s := range servers {
		if s.GetAuthorizationUrl() != "" {
			fmt.Fprintf(a.Out, "\n%s waits for an operator's consent: %s\n", s.GetServer(), s.GetAuthorizationUrl())
		}
	}
	return nil
}
