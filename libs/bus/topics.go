package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/segmentio/kafka-go"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// topicMessageBytes is the batch limit of topics that we make: the largest
// message with its head, and room for a dead letter's reason beside it.
const topicMessageBytes = 2 << 20

func (c *client) EnsureTopics(ctx context.Context, topics ...Topic) error {
	if err := c.usable(); err != nil {
		return err
	}
	if len(topics) == 0 {
		return nil
	}
	if err := c.persist(ctx, func(ctx context.Context) error { return c.createMissing(ctx, topics) }); err != nil {
		return fmt.Errorf("create topics: %w", err)
	}
	for _, t := range topics {
		if err := c.persist(ctx, func(ctx context.Context) error { return c.led(ctx, t) }); err != nil {
			return err
		}
	}
	c.link.found()
	return nil
}

// createMissing asks for the topics that the cluster does not have. Another
// process may be doing the same: that they exist by now is not an error.
func (c *client) createMissing(ctx context.Context, topics []Topic) error {
	var missing []kafka.TopicConfig
	for _, t := range topics {
		_, err := c.topic(ctx, t.Name)
		switch {
		case errors.Is(err, kafka.UnknownTopicOrPartition):
			missing = append(missing, topicConfig(t))
		case err != nil:
			return err
		}
	}
	if len(missing) == 0 {
		return nil
	}
	res, err := c.kafka.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: missing})
	if err != nil {
		return err
	}
	for name, err := range res.Errors {
		if err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
			return fmt.Errorf("topic %s: %w", name, err)
		}
	}
	return nil
}

func topicConfig(t Topic) kafka.TopicConfig {
	entry := func(name, value string) kafka.ConfigEntry {
		return kafka.ConfigEntry{ConfigName: name, ConfigValue: value}
	}
	cfg := kafka.TopicConfig{
		Topic:             t.Name,
		NumPartitions:     max(t.Partitions, 1),
		ReplicationFactor: -1, // the broker's default
		ConfigEntries:     []kafka.ConfigEntry{entry("max.message.bytes", strconv.Itoa(topicMessageBytes))},
	}
	switch {
	case t.Compacted:
		cfg.ConfigEntries = append(cfg.ConfigEntries, entry("cleanup.policy", "compact"))
	case t.Retention > 0:
		cfg.ConfigEntries = append(cfg.ConfigEntries, entry("retention.ms", strconv.FormatInt(t.Retention.Milliseconds(), 10)))
	}
	return cfg
}

// led answers nil once every partition of the topic has a leader, and refuses
// a topic that is narrower than wanted.
func (c *client) led(ctx context.Context, want Topic) error {
	have, err := c.topic(ctx, want.Name)
	if err != nil {
		return err
	}
	if n := len(have.Partitions); n > 0 && n < want.Partitions {
		return fault.New(fault.Conflict,
			"topic %s has %d partitions and %d are wanted: adding some moves keys to other partitions, so do it "+
				"with the broker's own tools while nothing is published, or delete the topic",
			want.Name, n, want.Partitions).WithField("partitions")
	}
	if len(have.Partitions) == 0 {
		return fmt.Errorf("topic %s: %w", want.Name, kafka.LeaderNotAvailable)
	}
	for _, p := range have.Partitions {
		if p.Error != nil || p.Leader.Host == "" {
			return fmt.Errorf("partition %d of topic %s: %w", p.ID, want.Name, kafka.LeaderNotAvailable)
		}
	}
	return nil
}
