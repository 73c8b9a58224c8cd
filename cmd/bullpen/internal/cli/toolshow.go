package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
)

func (a *app) showTool() *cobra.Command {
	request := &toolregistryv1.ListToolsRequest{}
	cmd := &cobra.Command{
		Use:   "show TOOL",
		Short: "Show one tool whole: what it says of itself, and the arguments it takes",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.registryClient()
			if err != nil {
				return err
			}
			response, err := client.ListTools(operator(cmd.Context()), request)
			if err != nil {
				return err
			}
			tools := response.GetTools()
			at := slices.IndexFunc(tools, func(t *toolregistryv1.Tool) bool { return t.GetName() == args[0] || t.GetWireName() == args[0] })
			switch {
			case at < 0 && request.GetSeat() != "":
				return fmt.Errorf("%s has no tool %q: `bullpen policy explain %s %s` says why", request.GetSeat(), args[0], request.GetSeat(), args[0])
			case at < 0:
				return fmt.Errorf("there is no tool %q: `bullpen tools` lists those there are", args[0])
			case a.json:
				return a.printMessage(tools[at])
			default:
				return a.printTool(tools[at])
			}
		},
	}
	cmd.Flags().StringVar(&request.Seat, "seat", "", "as this seat has it")
	return cmd
}

func (a *app) printTool(t *toolregistryv1.Tool) error {
	var schema bytes.Buffer
	if err := json.Indent(&schema, []byte(t.GetInputSchemaJson()), "", "  "); err != nil {
		return err
	}
	for _, line := range [][2]string{
		{"tool", visible(toolName(t))},
		{"source", t.GetSource()},
		{"for", strings.Join(t.GetAudiences(), ", ")},
		{"claims", hints(t)},
		{"outside", outside(t)},
		{"delivers", t.GetDelivers()},
		{"state", toolState(t)},
	} {
		if line[1] != "" {
			fmt.Fprintf(a.Out, "%-10s %s\n", line[0], line[1])
		}
	}
	_, err := fmt.Fprintf(a.Out, "\n%s\n\narguments\n%s\n", visible(t.GetDescription()), schema.String())
	return err
}

// visible leaves out what a terminal obeys instead of showing.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return -1
		}
		return r
	}, text)
}
