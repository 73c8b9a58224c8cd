package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
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
	cmd.AddCommand(a.showTool(), a.toolChanges(), a.acceptTool(), a.toolSkills())
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
	a.toolNotes(response.GetTools())
	for _, missing := range response.GetMissingServers() {
		fmt.Fprintf(a.Out, "\nmcp:%s brings no tools now (%s): %s\n", missing.GetServer(), missing.GetState(), indented(missing.GetReason()))
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
		rows = append(rows, []string{
			toolName(t), t.GetSource(), strings.Join(t.GetAudiences(), ", "), hints(t), outside(t), t.GetDelivers(),
			strconv.Itoa(int(t.GetArgumentCount())), toolState(t), firstSentence(t.GetDescription()),
		})
	}
	return table(a.Out, []string{"TOOL", "SOURCE", "FOR", "CLAIMS", "OUTSIDE", "DELIVERS", "ARGS", "STATE", "WHAT IT DOES"}, rows)
}

// longestName is the longest name that fits a row; a tool with a longer one is shown by the name that models call it by.
const longestName = 64

func toolName(t *toolregistryv1.Tool) string {
	if len(t.GetName()) > longestName && t.GetWireName() != "" {
		return t.GetWireName()
	}
	return t.GetName()
}

// firstSentence answers the beginning of a description, in one line; one that goes on is marked.
func firstSentence(text string) string {
	const longest = 100
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	first, _, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), ". ")
	if runes := []rune(first); len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return first
}

// hints is the strongest thing that a tool's hints assert.
func hints(t *toolregistryv1.Tool) string {
	claims := t.GetAnnotations()
	switch {
	case claims.GetReadOnly():
		return "reads"
	case claims.GetDestructive():
		return "may destroy"
	case claims.ReadOnly != nil || claims.Destructive != nil:
		return "writes"
	default:
		return "unknown"
	}
}

// outside says whether a tool reaches outside the company, as far as it claims anything.
func outside(t *toolregistryv1.Tool) string {
	switch reaches := t.GetAnnotations().OpenWorld; {
	case reaches == nil:
		return "unknown"
	case *reaches:
		return "yes"
	default:
		return "no"
	}
}

func toolState(t *toolregistryv1.Tool) string {
	if t.GetQuarantine() != "" {
		return "quarantined"
	}
	return t.GetChange()
}

// toolNotes says under the table what does not fit into it.
func (a *app) toolNotes(tools []*toolregistryv1.Tool) {
	changed := 0
	for _, t := range tools {
		if t.GetQuarantine() != "" {
			fmt.Fprintf(a.Out, "\n%s of %s cannot be called: %s\n", toolName(t), t.GetSource(), t.GetQuarantine())
		}
		for _, provider := range slices.Sorted(maps.Keys(t.GetProviderQuarantine())) {
			fmt.Fprintf(a.Out, "\n%s of %s is not shown to %s: %s\n", toolName(t), t.GetSource(), provider, t.GetProviderQuarantine()[provider])
		}
		if t.GetChange() != "" {
			changed++
		}
	}
	if changed > 0 {
		fmt.Fprintf(a.Out, "\n%s since first seen: see `bullpen tools changes`\n", count(changed, "changed tool"))
	}
}

func (a *app) call() *cobra.Command {
	request := &toolregistryv1.CallToolRequest{}
	cmd := &cobra.Command{
		Use:   "call TOOL",
		Short: "Call a tool as the operator",
		Example: `  bullpen call create_work_item --args '{"title":"Renew the certificate","project":"OPS"}'
  jq -Rs '{title: "Release notes", container: "TS", body: .}' page.md | bullpen call write_page --args -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			request.Tool = args[0]
			if request.GetArgumentsJson() == "-" {
				text, err := io.ReadAll(a.In)
				if err != nil {
					return err
				}
				request.ArgumentsJson = string(text)
			}
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
	cmd.Flags().StringVar(&request.ArgumentsJson, "args", "{}", "the arguments, one JSON object; - reads them from standard input")
	cmd.Flags().StringVar(&request.OperationId, "operation", "", "the operation, to repeat a write whose outcome is unknown")
	return cmd
}
