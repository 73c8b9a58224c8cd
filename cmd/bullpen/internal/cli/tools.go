package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
	"github.com/bullpenhq/bullpen/services/toolregistry"
)

func (a *app) tools() *cobra.Command {
	var offline bool
	request := &toolregistryv1.ListToolsRequest{}
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the tools of the company, or those of one seat",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if offline {
				return a.declaredTools()
			}
			return a.listTools(cmd, request)
		},
	}
	cmd.Flags().StringVar(&request.Seat, "seat", "", "the catalogue of this seat")
	cmd.Flags().StringVar(&request.Source, "source", "", "only this source: builtin, or mcp:<server>")
	cmd.Flags().BoolVar(&offline, "offline", false, "every tool that this build declares, without an installation")
	return cmd
}

func (a *app) registryClient() (toolregistryv1connect.ToolRegistryServiceClient, error) {
	client, err := a.client("toolregistry")
	if err != nil {
		return nil, err
	}
	return toolregistryv1connect.NewToolRegistryServiceClient(client), nil
}

func (a *app) listTools(cmd *cobra.Command, request *toolregistryv1.ListToolsRequest) error {
	client, err := a.registryClient()
	if err != nil {
		return err
	}
	response, err := client.ListTools(operator(cmd.Context()), request)
	if err != nil {
		return err
	}
	if a.json {
		return a.printMessage(response)
	}
	if err := a.toolTable(response.GetTools()); err != nil {
		return err
	}
	for _, missing := range response.GetMissingServers() {
		fmt.Fprintf(a.Out, "\nmcp:%s brings nothing now, it is %s: %s\n", missing.GetServer(), missing.GetState(), missing.GetReason())
	}
	return nil
}

func (a *app) declaredTools() error {
	declared, err := toolregistry.Declared()
	if err != nil {
		return err
	}
	if a.json {
		return a.printMessage(&toolregistryv1.ListToolsResponse{Tools: declared})
	}
	return a.toolTable(declared)
}

func (a *app) toolTable(tools []*toolregistryv1.Tool) error {
	rows := make([][]string, 0, len(tools))
	for _, t := range tools {
		first, _, _ := strings.Cut(t.GetDescription(), ". ")
		rows = append(rows, []string{t.GetName(), t.GetSource(), strings.Join(t.GetAudiences(), ", "), hints(t), t.GetDelivers(), first})
	}
	return table(a.Out, []string{"TOOL", "SOURCE", "FOR", "CLAIMS", "DELIVERS", "WHAT IT DOES"}, rows)
}

// hints is the strongest thing that a tool's hints assert.
func hints(t *toolregistryv1.Tool) string {
	claims := t.GetAnnotations()
	switch {
	case claims.ReadOnly == nil && claims.Destructive == nil:
		return "unknown"
	case claims.GetReadOnly():
		return "reads"
	case claims.GetDestructive():
		return "may destroy"
	default:
		return "writes"
	}
}

func (a *app) call() *cobra.Command {
	request := &toolregistryv1.CallToolRequest{}
	cmd := &cobra.Command{
		Use:     "call TOOL",
		Short:   "Call a tool as the operator",
		Example: `  bullpen call create_work_item --args '{"title":"Renew the certificate","project":"OPS"}'`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			request.Tool = args[0]
			client, err := a.registryClient()
			if err != nil {
				return err
			}
			response, err := client.CallTool(operator(cmd.Context()), request)
			if err != nil {
				return err
			}
			if a.json {
				err = a.printMessage(response)
			} else {
				_, err = fmt.Fprintln(a.Out, response.GetText())
			}
			if err == nil && response.GetFailed() {
				return fmt.Errorf("%s says that the call failed", response.GetSource())
			}
			return err
		},
	}
	cmd.Flags().StringVar(&request.ArgumentsJson, "args", "{}", "the arguments, one JSON object")
	cmd.Flags().StringVar(&request.OperationId, "operation", "", "the operation, to repeat a write whose outcome is unknown")
	return cmd
}
