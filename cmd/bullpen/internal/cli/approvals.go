package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
)

func (a *app) approvals() *cobra.Command {
	request := &toolregistryv1.ListApprovalsRequest{}
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "List the calls that wait for a person, and decide about them",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.listApprovals(cmd.Context(), request) },
	}
	list := &cobra.Command{Use: "list", Short: "List approvals, newest first", Args: cobra.NoArgs, RunE: cmd.RunE}
	for _, c := range []*cobra.Command{cmd, list} {
		c.Flags().StringVar(&request.Seat, "seat", "", "only this seat's")
		c.Flags().StringVar(&request.State, "state", "waiting", "waiting, approved, denied, expired or cancelled; empty for all")
		c.Flags().Int32Var(&request.Limit, "limit", 20, "how many")
	}
	show := &cobra.Command{
		Use:   "show ID",
		Short: "Show one call with its arguments, and what became of it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withApproval(cmd.Context(), args[0], func(_ toolregistryv1connect.ToolRegistryServiceClient, found *toolregistryv1.Approval) error {
				return a.printApproval(cmd.Context(), found)
			})
		},
	}
	cmd.AddCommand(list, show, a.decide("approve", "Let a call be made, now, and show its result"), a.decide("deny", "Refuse a call"), a.cancelApproval())
	return cmd
}

func (a *app) decide(decision, short string) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   decision + " ID",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := operator(cmd.Context())
			return a.withApproval(ctx, args[0], func(client toolregistryv1connect.ToolRegistryServiceClient, found *toolregistryv1.Approval) error {
				response, err := client.DecideApproval(ctx, &toolregistryv1.DecideApprovalRequest{
					ApprovalId: found.GetApprovalId(), Decision: decision, Note: note,
				})
				if err != nil {
					return err
				}
				if err := a.printApproval(cmd.Context(), response.GetApproval()); err != nil {
					return err
				}
				if status := response.GetApproval().GetCallStatus(); status != "" && status != "ok" {
					return fmt.Errorf("the call was approved, and ended as %s", status)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "why; the seat reads it")
	return cmd
}

func (a *app) cancelApproval() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID",
		Short: "Take a question back; its call is not made",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := operator(cmd.Context())
			return a.withApproval(ctx, args[0], func(client toolregistryv1connect.ToolRegistryServiceClient, found *toolregistryv1.Approval) error {
				response, err := client.CancelApproval(ctx, &toolregistryv1.CancelApprovalRequest{ApprovalId: found.GetApprovalId()})
				if err != nil {
					return err
				}
				return a.printApproval(cmd.Context(), response.GetApproval())
			})
		},
	}
}

func (a *app) listApprovals(ctx context.Context, request *toolregistryv1.ListApprovalsRequest) error {
	client, err := a.registryClient()
	if err != nil {
		return err
	}
	response, err := client.ListApprovals(operator(ctx), request)
	if err != nil {
		return err
	}
	if a.json {
		return a.printMessage(response)
	}
	if len(response.GetApprovals()) == 0 {
		nothing := "No approvals."
		if request.GetState() == "waiting" {
			nothing = "Nothing waits for a person."
		}
		_, err := fmt.Fprintln(a.Out, nothing)
		return err
	}
	rows := make([][]string, 0, len(response.GetApprovals()))
	for _, p := range response.GetApprovals() {
		rows = append(rows, []string{
			p.GetApprovalId(), standing(p), p.GetSeat(), p.GetTool(), moment(p.GetCreateTime()), moment(p.GetExpireTime()), p.GetRule(),
		})
	}
	return table(a.Out, []string{"APPROVAL", "STATE", "SEAT", "TOOL", "ASKED", "EXPIRES", "RULE"}, rows)
}

// standing is the state of an approval, and that of its call when it was approved.
func standing(p *toolregistryv1.Approval) string {
	if p.GetCallStatus() == "" {
		return p.GetState()
	}
	return p.GetState() + ", " + p.GetCallStatus()
}

// withApproval finds the one approval whose id begins with a text.
func (a *app) withApproval(
	ctx context.Context, id string, use func(toolregistryv1connect.ToolRegistryServiceClient, *toolregistryv1.Approval) error,
) error {
	client, err := a.registryClient()
	if err != nil {
		return err
	}
	const page = 200
	var found []*toolregistryv1.Approval
	for request := (&toolregistryv1.ListApprovalsRequest{Limit: page}); ; {
		response, err := client.ListApprovals(operator(ctx), request)
		if err != nil {
			return err
		}
		for _, p := range response.GetApprovals() {
			if strings.HasPrefix(p.GetApprovalId(), strings.ToLower(id)) {
				found = append(found, p)
			}
		}
		if request.Cursor = response.GetNextCursor(); response.GetNextCursor() == "" {
			break
		}
	}
	switch {
	case id == "" || len(found) == 0:
		return fmt.Errorf("there is no approval %q: `bullpen approvals --state ''` lists all", id)
	case len(found) > 1:
		return errors.New("more than one approval begins so; give more of its id")
	default:
		return use(client, found[0])
	}
}

func (a *app) printApproval(ctx context.Context, p *toolregistryv1.Approval) error {
	if a.json {
		return a.printMessage(p)
	}
	rows := [][]string{
		{"approval", p.GetApprovalId()},
		{"state", standing(p)},
		{"seat", p.GetSeat()},
		{"turn", p.GetTurnId()},
		{"conversation", p.GetConversationKey()},
		{"tool", p.GetTool() + " (" + p.GetSource() + ")"},
		{"rule", p.GetRule()},
		{"reason", p.GetReason()},
		{"asked", moment(p.GetCreateTime())},
		{"expires", moment(p.GetExpireTime())},
		{"decided by", a.tokenNames(ctx).full(p.GetDecidedBy())},
		{"decided", moment(p.GetDecideTime())},
		{"note", p.GetNote()},
		{"operation", p.GetOperationId()},
	}
	for _, row := range rows {
		if row[1] != "" {
			fmt.Fprintf(a.Out, "%-13s %s\n", row[0], row[1])
		}
	}
	_, err := fmt.Fprintf(a.Out, "\narguments\n%s\n", p.GetArgumentsJson())
	if p.GetResult() != "" && err == nil {
		_, err = fmt.Fprintf(a.Out, "\nresult\n%s\n", p.GetResult())
	}
	return err
}
