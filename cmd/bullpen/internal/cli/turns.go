package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/timeline"
	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/turn/v1/turnv1connect"
)

func (a *app) turns() *cobra.Command {
	request := &turnv1.ListTurnsRequest{}
	cmd := &cobra.Command{
		Use:   "turns",
		Short: "List turns, newest first",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.listTurns(cmd, request) },
	}
	list := &cobra.Command{Use: "list", Short: cmd.Short, Args: cobra.NoArgs, RunE: cmd.RunE}
	for _, c := range []*cobra.Command{cmd, list} {
		c.Flags().StringVar(&request.Seat, "seat", "", "only this seat's")
		c.Flags().StringVar(&request.ConversationKey, "conversation", "", "only this conversation's")
		c.Flags().StringVar(&request.State, "state", "", "running or done")
		c.Flags().Int32Var(&request.Limit, "limit", 20, "how many")
	}
	show := &cobra.Command{
		Use:   "show ID",
		Short: "Draw one turn from what woke the seat to how it ended",
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.showTurn(cmd, args[0]) },
	}
	cmd.AddCommand(list, show)
	return cmd
}

func (a *app) turnClient() (turnv1connect.TurnServiceClient, error) {
	client, err := a.client("turn")
	if err != nil {
		return nil, err
	}
	return turnv1connect.NewTurnServiceClient(client), nil
}

func (a *app) listTurns(cmd *cobra.Command, request *turnv1.ListTurnsRequest) error {
	client, err := a.turnClient()
	if err != nil {
		return err
	}
	response, err := client.ListTurns(cmd.Context(), request)
	if err != nil {
		return err
	}
	if a.json {
		return a.printMessage(response)
	}
	if len(response.GetTurns()) == 0 {
		_, err := fmt.Fprintln(a.Out, "No turns yet. `bullpen doctor` says whether something keeps mail waiting.")
		return err
	}
	rows := make([][]string, 0, len(response.GetTurns()))
	for _, t := range response.GetTurns() {
		ended := t.GetOutcome()
		if t.GetState() == "running" {
			ended = "running"
		}
		rows = append(rows, []string{t.GetTurnId(), moment(t.GetStartTime()), t.GetSeat(), ended, t.GetConversationKey(), t.GetTitle()})
	}
	return table(a.Out, []string{"TURN", "STARTED", "SEAT", "STATE", "CONVERSATION", "ABOUT"}, rows)
}

func (a *app) showTurn(cmd *cobra.Command, id string) error {
	client, err := a.turnClient()
	if err != nil {
		return err
	}
	response, err := client.GetTurn(cmd.Context(), &turnv1.GetTurnRequest{TurnId: id})
	if err != nil {
		return err
	}
	if a.json {
		return a.printMessage(response)
	}
	return timeline.Write(a.Out, response, time.Local)
}
