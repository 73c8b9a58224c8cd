package outbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const (
	// sentTopics looks at the newest rows only: what a service publishes now is what a broker can have lost.
	sentTopics = `
select distinct topic from (select topic, sent_at from outbox order by id desc limit 1000) as newest where sent_at is not null`

	unmarkTopic = `update outbox set sent_at = null where sent_at is not null and topic = $1`
)

// prober tells a topic that was never published to. A bus does.
type prober interface {
	Empty(ctx context.Context, topic string) (bool, error)
}

// restore finds topics that the broker has lost: the outbox has published to them, and the broker says that nobody ever did. What is
// kept of them is published again. It is asked each time a relay takes the schema, and so whenever the service has started.
func (r *Relay) restore(ctx context.Context, conn *pgx.Conn) error {
	broker, ok := r.publisher.(prober)
	if !ok {
		return nil
	}
	rows, err := conn.Query(ctx, sentTopics)
	if err != nil {
		return fmt.Errorf("read the topics: %w", err)
	}
	topics, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("read the topics: %w", err)
	}
	for _, topic := range topics {
		lost, err := broker.Empty(ctx, topic)
		if err != nil {
			return fmt.Errorf("look at topic %s: %w", topic, err)
		}
		if !lost {
			continue
		}
		tag, err := conn.Exec(ctx, unmarkTopic, topic)
		if err != nil {
			return fmt.Errorf("mark topic %s for publishing: %w", topic, err)
		}
		r.opts.Log.Warn("the broker has lost a topic, publishing it again", "topic", topic, "messages", tag.RowsAffected())
	}
	return nil
}
