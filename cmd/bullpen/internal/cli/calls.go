package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
)

// callFilter is what narrows the list of calls.
type callFilter struct {
	request      toolregistryv1.ListCallsRequest
	since, until string
	limit        int
}

func (a *app) calls() *cobra.Command {
	filter := &callFilter{}
	cmd := &cobra.Command{
		Use:     "calls",
		Short:   "Search the audit of tool calls, newest first",
		Example: `  bullpen calls --seat ops-lead --status failed --since 24h --text certificate`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.listCalls(cmd.Context(), filter) },
	}
	list := &cobra.Command{Use: "list", Short: cmd.Short, Args: cobra.NoArgs, RunE: cmd.RunE}
	for _, c := range []*cobra.Command{cmd, list} {
		filter.flags(c)
	}
	show := &cobra.Command{
		Use:   "show ID",
		Short: "Show one call whole: its arguments and what was answered",
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.showCall(cmd.Context(), args[0]) },
	}
	cmd.AddCommand(list, show)
	return cmd
}

func (f *callFilter) flags(c *cobra.Command) {
	r := &f.request
	c.Flags().StringVar(&r.Seat, "seat", "", "only this seat's")
	c.Flags().StringVar(&r.Tool, "tool", "", "only this tool's")
	c.Flags().StringVar(&r.Source, "source", "", "only this source's: builtin, or mcp:<server>")
	c.Flags().StringVar(&r.TurnId, "turn", "", "only this turn's")
	c.Flags().StringVar(&r.Status, "status", "", "ok, refused, failed or parked")
	c.Flags().StringVar(&r.RefusalClass, "class", "", "only calls refused with this class")
	c.Flags().StringVar(&r.Text, "text", "", "only calls whose arguments or result hold this text")
	c.Flags().StringVar(&f.since, "since", "", "only calls since then: a time such as 2026-03-01T09:00:00Z, or how long ago, such as 24h")
	c.Flags().StringVar(&f.until, "until", "", "only calls before then, given likewise")
	c.Flags().IntVar(&f.limit, "limit", 50, "how many")
}

func (a *app) listCalls(ctx context.Context, f *callFilter) error {
	var err error
	if f.request.Since, err = pastTime("since", f.since); err != nil {
		return err
	}
	if f.request.Until, err = pastTime("until", f.until); err != nil {
		return err
	}
	client, err := a.registryClient()
	if err != nil {
		return err
	}
	found, err := collectCalls(operator(ctx), client, f)
	if err != nil {
		return err
	}
	if a.json {
		return a.printMessage(&toolregistryv1.ListCallsResponse{Calls: found})
	}
	if len(found) == 0 {
		_, err := fmt.Fprintln(a.Out, "No such calls.")
		return err
	}
	names := a.tokenNames(ctx)
	rows := make([][]string, 0, len(found))
	for _, c := range found {
		ended := c.GetStatus()
		if c.GetRefusalClass() != "" {
			ended += " (" + c.GetRefusalClass() + ")"
		}
		rows = append(rows, []string{
			c.GetAuditId(), moment(c.GetStartTime()), names.short(c.GetPrincipal()), firstSentence(c.GetTool()), c.GetSource(), ended, took(c), firstSentence(c.GetArgumentsJson()),
		})
	}
	return table(a.Out, []string{"CALL", "STARTED", "BY", "TOOL", "SOURCE", "STATE", "TOOK", "ARGUMENTS"}, rows)
}

// collectCalls follows pages until there are as many calls as were asked for: a page that looks for a text may hold none.
func collectCalls(ctx context.Context, client toolregistryv1connect.ToolRegistryServiceClient, f *callFilter) ([]*toolregistryv1.CallRecord, error) {
	const page = 200
	var found []*toolregistryv1.CallRecord
	for len(found) < f.limit {
		f.request.Limit = int32(min(f.limit-len(found), page))
		response, err := client.ListCalls(ctx, &f.request)
		if err != nil {
			return nil, err
		}
		found = append(found, response.GetCalls()...)
		if f.request.Cursor = response.GetNextCursor(); f.request.GetCursor() == "" {
			break
		}
	}
	return found, nil
}

// pastTime reads a time, or how long ago it was; nothing is no time.
func pastTime(flag, text string) (*timestamppb.Timestamp, error) {
	if text == "" {
		return nil, nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return timestamppb.New(time.Now().Add(-ago)), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, usageError{fmt.Errorf("--%s is a time such as 2026-03-01T09:00:00Z, or how long ago, such as 24h; %q is neither", flag, text)}
	}
	return timestamppb.New(at), nil
}

func took(c *toolregistryv1.CallRecord) string {
	d := time.Duration(c.GetDurationMicros()) * time.Microsecond
	switch {
	case d == 0: // decided about before anything was called
		return ""
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	default:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
}

func (a *app) showCall(ctx context.Context, id string) error {
	client, err := a.registryClient()
	if err != nil {
		return err
	}
	response, err := client.GetCall(operator(ctx), &toolregistryv1.GetCallRequest{AuditId: id})
	if err != nil {
		return err
	}
	if a.json {
		return a.printMessage(response)
	}
	c := response.GetCall()
	for _, line := range [][2]string{
		{"call", c.GetAuditId()},
		{"started", moment(c.GetStartTime())},
		{"took", took(c)},
		{"by", a.tokenNames(ctx).full(c.GetPrincipal())},
		{"seat", c.GetSeat()},
		{"turn", c.GetTurnId()},
		{"tool", c.GetTool()},
		{"source", c.GetSource()},
		{"status", c.GetStatus()},
		{"class", c.GetRefusalClass()},
		{"outcome", c.GetOutcome()},
		{"operation", c.GetOperationId()},
		{"decision", c.GetDecision()},
		{"rule", c.GetRule()},
		{"approval", c.GetApprovalId()},
	} {
		if line[1] != "" {
			fmt.Fprintf(a.Out, "%-10s %s\n", line[0], line[1])
		}
	}
	_, err = fmt.Fprintf(a.Out, "\narguments\n%s\n\nresult\n%s\n", c.GetArgumentsJson(), c.GetResult())
	return err
}
