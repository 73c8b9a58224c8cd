package events

import (
	"context"
	"errors"
	"log/slog"

	"google.golang.org/protobuf/proto"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/libs/bus"
)

// ServerTopic carries what mcphost says of its servers.
const ServerTopic = "bullpen.mcphost.server.v1"

// Listen tells changed of every change of a server until ctx ends. An empty seat means that a shared server changed, and so
// every seat's tools. group must be unique to the process, as each keeps surfaces of its own. An event heard twice, or one that
// cannot be read, costs a look at mcphost and nothing else, so there is neither an inbox nor a dead letter.
func Listen(ctx context.Context, b bus.Bus, group string, log *slog.Logger, changed func(seat string)) error {
	subscription, err := b.Subscribe(ServerTopic, group)
	if err != nil {
		return err
	}
	defer subscription.Close()
	const batch = 256
	for {
		messages, err := subscription.Fetch(ctx, batch)
		if ctx.Err() != nil || errors.Is(err, bus.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, m := range messages {
			changed(seatOf(m, log))
		}
		if err := subscription.Commit(ctx, messages...); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "offset not committed", "topic", ServerTopic, "error", err)
		}
	}
}

func seatOf(m bus.Message, log *slog.Logger) string {
	var event mcphostv1.ServerEvent
	if err := proto.Unmarshal(m.Value, &event); err != nil {
		log.Warn("event cannot be read", "topic", ServerTopic, "error", err)
		return ""
	}
	if event.GetCatalogueChanged() != nil {
		return event.GetCatalogueChanged().GetSeat()
	}
	return event.GetInstanceChanged().GetSeat()
}
