package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
)

func (a *app) showServer() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Print how the company configures an MCP server, as JSON that `servers put` takes",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.companyClient()
			if err != nil {
				return err
			}
			response, err := client.GetMcpServer(operator(cmd.Context()), &companyv1.GetMcpServerRequest{Name: args[0]})
			if err != nil {
				return err
			}
			if a.json {
				return a.printMessage(response)
			}
			var entry bytes.Buffer
			if err := json.Indent(&entry, []byte(response.GetServer().GetEntryJson()), "", "  "); err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.Out, entry.String())
			return err
		},
	}
}

func (a *app) putServer() *cobra.Command {
	request := &companyv1.PutMcpServerRequest{}
	var file string
	cmd := &cobra.Command{
		Use:   "put NAME",
		Short: "Change an MCP server in the company document, or add one with --create; the rest of the document stays as it is",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				return usageError{errors.New("--file is required: the entry, a JSON object, as `bullpen servers show` prints it")}
			}
			entry, err := readFile(file)
			if err != nil {
				return err
			}
			client, err := a.companyClient()
			if err != nil {
				return err
			}
			request.Name, request.EntryJson = args[0], string(entry)
			response, err := client.PutMcpServer(operator(cmd.Context()), request)
			if err != nil {
				return err
			}
			if a.json {
				return a.printMessage(response)
			}
			return a.printPut(request, response)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "the entry, a JSON object")
	cmd.Flags().StringVar(&request.Summary, "summary", "", "why, in a line")
	cmd.Flags().BoolVar(&request.Create, "create", false, "add the server behind all others; a name that is there is refused")
	cmd.Flags().StringVar(&request.IfMatch, "if-match", "", "refuse unless this revision is the active one")
	cmd.Flags().BoolVar(&request.ValidateOnly, "dry-run", false, "store nothing, and say everything that is wrong")
	return cmd
}

func (a *app) printPut(request *companyv1.PutMcpServerRequest, response *companyv1.PutMcpServerResponse) error {
	for _, warning := range response.GetWarnings() {
		fmt.Fprintln(a.Err, warning)
	}
	for _, p := range response.GetProblems() {
		fmt.Fprintf(a.Out, "%d:%d: %s: %s\n", p.GetLine(), p.GetColumn(), p.GetPath(), p.GetMessage())
	}
	switch {
	case len(response.GetProblems()) > 0:
		return fmt.Errorf("the company would have %d mistakes with it, and nothing was stored", len(response.GetProblems()))
	case request.GetValidateOnly():
		fmt.Fprintf(a.Out, "%s is fine on revision %s; nothing was stored.\n", request.GetName(), response.GetBaseRevisionId())
	case response.GetUnchanged():
		fmt.Fprintf(a.Out, "%s is so already, in revision %s.\n", request.GetName(), response.GetRevision().GetRevisionId())
	default:
		fmt.Fprintf(a.Out, "%s is in revision %s, epoch %d.\n", request.GetName(), response.GetRevision().GetRevisionId(), response.GetRevision().GetEpoch())
	}
	return nil
}
