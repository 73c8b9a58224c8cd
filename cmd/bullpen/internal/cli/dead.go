package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/notification/v1/notificationv1connect"
	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/turn/v1/turnv1connect"
)

// deadLetter is a dead letter of any service. Its id is the service's name and its id there.
type deadLetter struct {
	ID        string `json:"id"`
	Topic     string `json:"topic"`
	Key       string `json:"key"`
	Reason    string `json:"reason"`
	SetAside  string `json:"set_aside"`
	RedriveAt string `json:"redriven,omitempty"`
}

// redriven counts what a redrive did.
type redriven struct {
	Redriven int32 `json:"redriven"`
	Failed   int32 `json:"failed"`
}

func (a *app) dead() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "Show and redrive messages that could not be processed",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.listDead(cmd.Context()) },
	}
	cmd.AddCommand(
		&cobra.Command{Use: "list", Short: "List dead letters, newest first", Args: cobra.NoArgs, RunE: cmd.RunE},
		&cobra.Command{
			Use:   "redrive [ID...]",
			Short: "Process dead letters again: those named, or all",
			RunE:  func(cmd *cobra.Command, ids []string) error { return a.redriveDead(cmd.Context(), ids) },
		},
	)
	return cmd
}

func (a *app) listDead(ctx context.Context) error {
	turns, notifications, err := a.deadClients()
	if err != nil {
		return err
	}
	letters := []deadLetter{}
	webhooks, err := notifications.ListDeadLetters(ctx, &notificationv1.ListDeadLettersRequest{})
	if err != nil {
		return err
	}
	for _, d := range webhooks.GetDeadLetters() {
		letters = append(letters, deadLetter{
			ID: "notification/" + d.GetDeadLetterId(), Topic: d.GetTopic(), Key: d.GetKey(), Reason: d.GetReason(),
			SetAside: moment(d.GetCreateTime()), RedriveAt: moment(d.GetRedriveTime()),
		})
	}
	deliveries, err := turns.ListDeadLetters(ctx, &turnv1.ListDeadLettersRequest{})
	if err != nil {
		return err
	}
	for _, d := range deliveries.GetDeadLetters() {
		letters = append(letters, deadLetter{
			ID: "turn/" + d.GetDeadLetterId(), Topic: d.GetTopic(), Key: d.GetKey(), Reason: d.GetReason(),
			SetAside: moment(d.GetCreateTime()), RedriveAt: moment(d.GetRedriveTime()),
		})
	}
	if a.json {
		return a.printJSON(map[string]any{"dead_letters": letters})
	}
	if len(letters) == 0 {
		_, err := fmt.Fprintln(a.Out, "No dead letters.")
		return err
	}
	rows := make([][]string, 0, len(letters))
	for _, d := range letters {
		rows = append(rows, []string{d.ID, d.SetAside, d.Topic, d.Key, d.RedriveAt, d.Reason})
	}
	return table(a.Out, []string{"ID", "SET ASIDE", "TOPIC", "KEY", "REDRIVEN", "REASON"}, rows)
}

func (a *app) redriveDead(ctx context.Context, ids []string) error {
	turns, notifications, err := a.deadClients()
	if err != nil {
		return err
	}
	byService := map[string][]string{"notification": nil, "turn": nil}
	for _, id := range ids {
		service, number, ok := strings.Cut(id, "/")
		if _, known := byService[service]; !ok || !known {
			return usageError{fmt.Errorf("%q is no dead letter's id: `bullpen dead list` shows them, such as turn/12", id)}
		}
		byService[service] = append(byService[service], number)
	}
	var total redriven
	if all := len(ids) == 0; all || len(byService["notification"]) > 0 {
		r, err := notifications.RedriveDeadLetters(ctx, &notificationv1.RedriveDeadLettersRequest{DeadLetterIds: byService["notification"]})
		if err != nil {
			return err
		}
		total.Redriven += r.GetRedriven()
		total.Failed += r.GetFailed()
	}
	if all := len(ids) == 0; all || len(byService["turn"]) > 0 {
		r, err := turns.RedriveDeadLetters(ctx, &turnv1.RedriveDeadLettersRequest{DeadLetterIds: byService["turn"]})
		if err != nil {
			return err
		}
		total.Redriven += r.GetRedriven()
		total.Failed += r.GetFailed()
	}
	if a.json {
		err = a.printJSON(total)
	} else {
		_, err = fmt.Fprintf(a.Out, "%d redriven, %d kept.\n", total.Redriven, total.Failed)
	}
	if err == nil && total.Failed > 0 {
		return fmt.Errorf("%s failed again or cannot be found; `bullpen dead list` shows what is there, with reasons", count(int(total.Failed), "dead letter"))
	}
	return err
}

func (a *app) deadClients() (turnv1connect.TurnServiceClient, notificationv1connect.NotificationServiceClient, error) {
	turns, err := a.turnClient()
	if err != nil {
		return nil, nil, err
	}
	client, err := a.client("notification")
	if err != nil {
		return nil, nil, err
	}
	return turns, notificationv1connect.NewNotificationServiceClient(client), nil
}
