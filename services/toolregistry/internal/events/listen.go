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

// ready is the state of an instance that can be called.
const ready = "ready"

// Heard is told what happened to servers.
type Heard struct {
	// Changed is told whose server is not what it was. An empty seat means that a shared one is not, and so every seat's tools.
	Changed func(seat string)
	// Updated is told of a resource of a shared server that is not what it was.
	Updated func(server, uri string)
	// Listed is told that a shared server announced other prompts or resources.
	Listed func(prompts, resources bool)
	// Ready is told of a shared server that became ready, and knows nothing of what it was asked before.
	Ready func(ctx context.Context, server string)
}

// Listen tells heard of every event of a server until ctx ends. group must be unique to the process, as each keeps surfaces of its own. An event heard twice, or one that
// cannot be read, costs a look at mcphost and nothing else, so there is neither an inbox nor a dead letter.
func Listen(ctx context.Context, b bus.Bus, group string, log *slog.Logger, heard Heard) error {
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
			heard.tell(ctx, m, log)
		}
		if err := subscription.Commit(ctx, messages...); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "offset not committed", "topic", ServerTopic, "error", err)
		}
	}
}

func (h Heard) tell(ctx context.Context, m bus.Message, log *slog.Logger) {
	var event mcphostv1.ServerEvent
	if err := proto.Unmarshal(m.Value, &event); err != nil {
		log.WarnContext(ctx, "event cannot be read", "topic", ServerTopic, "error", err)
		h.Changed("")
		return
	}
	switch fact := event.GetFact().(type) {
	case *mcphostv1.ServerEvent_ResourceUpdated:
		if fact.ResourceUpdated.GetSeat() == "" {
			h.Updated(fact.ResourceUpdated.GetServer(), fact.ResourceUpdated.GetUri())
		}
	case *mcphostv1.ServerEvent_ListsChanged:
		if fact.ListsChanged.GetSeat() == "" {
			h.Listed(fact.ListsChanged.GetPrompts(), fact.ListsChanged.GetResources())
		}
	case *mcphostv1.ServerEvent_CatalogueChanged:
		h.Changed(fact.CatalogueChanged.GetSeat())
	default:
		changed := event.GetInstanceChanged()
		h.Changed(changed.GetSeat())
		if changed.GetSeat() == "" && changed.GetState() == ready {
			h.Ready(ctx, changed.GetServer())
		}
	}
}
