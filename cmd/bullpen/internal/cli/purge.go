package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1/trackerv1connect"
)

func (a *app) purge() *cobra.Command {
	request := &trackerv1.PurgeWorkItemRequest{}
	cmd := &cobra.Command{
		Use:   "purge KEY",
		Short: "Destroy a work item for ever",
		Long: `Destroys a work item for ever: what it says, its thread and its history. What is part of it moves up, and its key is never given again. That it
was destroyed, by whom and why, stays in the history of its project, and only the project's lead is told. To put an item away so that it can come
back, use the tool remove_work_item.

The key has to be typed again: on standard input, or with --confirm.`,
		Example: `  bullpen purge OPS-12 --reason "holds a customer's passport number"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			request.Item = args[0]
			return a.purgeItem(cmd.Context(), request)
		},
	}
	cmd.Flags().StringVar(&request.Reason, "reason", "", "why; it is kept")
	cmd.Flags().StringVar(&request.ConfirmKey, "confirm", "", "the key, typed again")
	_ = cmd.MarkFlagRequired("reason") // the flag is there
	return cmd
}

func (a *app) purgeItem(ctx context.Context, request *trackerv1.PurgeWorkItemRequest) error {
	c, err := a.client("tracker")
	if err != nil {
		return err
	}
	if request.GetConfirmKey() == "" {
		if request.ConfirmKey, err = a.typedAgain(request.GetItem()); err != nil {
			return err
		}
	}
	response, err := trackerv1connect.NewTrackerServiceClient(c).PurgeWorkItem(operator(ctx), request)
	if err != nil {
		return err
	}
	if a.json {
		return a.printMessage(response)
	}
	_, err = fmt.Fprintf(a.Out, "%s is destroyed; %s moved up.\n", response.GetKey(), count(int(response.GetMovedUp()), "subtask"))
	return err
}

// typedAgain asks whoever sits there for the key.
func (a *app) typedAgain(key string) (string, error) {
	fmt.Fprintf(a.Err, "%s will be destroyed for ever. Type its key to go on: ", key)
	line, err := bufio.NewReader(a.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if line = strings.TrimSpace(line); line == "" {
		return "", errors.New("nothing was typed, and nothing was destroyed: type the key, or give it with --confirm")
	}
	return line, nil
}
