package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/bullpenhq/bullpen/libs/fault"
)

const (
	// batchBytes keeps a batch of many messages under the limit of one batch
	// that brokers have by default (1,048,588 bytes), also on topics that
	// EnsureTopics did not make.
	batchBytes = 900 << 10
	// produceWidth is how many partitions are written at the same time.
	produceWidth = 16
)

// PublishError names the messages of one Publish call that may not be on the
// broker. All others are durable.
type PublishError struct {
	// Failures are in the order of the arguments.
	Failures []Failure
	// Total is how many messages the call had.
	Total int
}

// Failure is one message that was not acknowledged. An Err of class invalid
// will fail again however often it is repeated; any other may be tried again.
type Failure struct {
	// Index is the message's place in the arguments of Publish.
	Index      int
	Topic, Key string
	Err        error
}

// Error tells how many failed and why the first did.
func (e *PublishError) Error() string {
	f := e.Failures[0]
	return fmt.Sprintf("%d of %d messages are not published; message %d for topic %s: %v",
		len(e.Failures), e.Total, f.Index, f.Topic, f.Err)
}

// Unwrap gives the cause of each failure.
func (e *PublishError) Unwrap() []error {
	errs := make([]error, len(e.Failures))
	for i, f := range e.Failures {
		errs[i] = f.Err
	}
	return errs
}

func (c *client) Publish(ctx context.Context, msgs ...Message) error {
	if err := c.usable(); err != nil {
		return err
	}
	// Each place is written by the one goroutine that owns its partition.
	failed := make([]error, len(msgs))
	var g errgroup.Group
	g.SetLimit(produceWidth)
	for _, run := range c.route(ctx, msgs, failed) {
		g.Go(func() error {
			c.produce(ctx, run, msgs, failed)
			return nil
		})
	}
	_ = g.Wait()

	var failures []Failure
	for i, err := range failed {
		if err != nil {
			failures = append(failures, Failure{Index: i, Topic: msgs[i].Topic, Key: msgs[i].Key, Err: err})
		}
	}
	if failures != nil {
		return &PublishError{Failures: failures, Total: len(msgs)}
	}
	return nil
}

// run is what one call has for one partition, as places in its arguments.
type run struct {
	topic     string
	partition int
	at        []int
}

// route sorts the messages by partition and keeps their order in each.
func (c *client) route(ctx context.Context, msgs []Message, failed []error) []*run {
	type partition struct {
		topic string
		id    int
	}
	var (
		order  []*run
		runs   = make(map[partition]*run)
		counts = make(map[string]int)
		broken = make(map[string]error)
	)
	for i, m := range msgs {
		if failed[i] = Check(m); failed[i] != nil {
			continue
		}
		if counts[m.Topic] == 0 && broken[m.Topic] == nil {
			counts[m.Topic], broken[m.Topic] = c.partitionCount(ctx, m.Topic)
		}
		if failed[i] = broken[m.Topic]; failed[i] != nil {
			continue
		}
		p := partition{m.Topic, c.partitionFor(m.Key, counts[m.Topic])}
		if runs[p] == nil {
			runs[p] = &run{topic: p.topic, partition: p.id}
			order = append(order, runs[p])
		}
		runs[p].at = append(runs[p].at, i)
	}
	return order
}

func (c *client) partitionCount(ctx context.Context, topic string) (n int, err error) {
	err = c.persist(ctx, func(ctx context.Context) error {
		t, err := c.topic(ctx, topic)
		n = len(t.Partitions)
		if err == nil && n == 0 {
			err = fmt.Errorf("topic %s: %w", topic, kafka.LeaderNotAvailable)
		}
		return err
	})
	return n, err
}

func (c *client) partitionFor(key string, count int) int {
	ids := make([]int, count)
	for i := range ids {
		ids[i] = i
	}
	var m kafka.Message
	if key != "" {
		m.Key = []byte(key)
	}
	return c.hash.Balance(m, ids...)
}

// produce writes one run, batch after batch. After a batch that failed the
// rest is not tried: it must not overtake what will be repeated. A message
// that can never be written holds nothing back.
func (c *client) produce(ctx context.Context, r *run, msgs []Message, failed []error) {
	for rest := r.at; len(rest) > 0; {
		n := batchLength(rest, msgs)
		batch := rest[:n]
		rest = rest[n:]
		err := c.persist(ctx, func(ctx context.Context) error {
			return c.produceBatch(ctx, r, batch, msgs)
		})
		if err == nil {
			continue
		}
		never := fault.ClassOf(err) == fault.Invalid
		if !never {
			batch = append(batch[:n:n], rest...)
		}
		for _, i := range batch {
			failed[i] = err
		}
		if !never {
			return
		}
	}
}

// batchLength is how many of the messages make the next batch, at least one.
func batchLength(at []int, msgs []Message) int {
	size := 0
	for n, i := range at {
		if size += wireBytes(msgs[i]); size > batchBytes && n > 0 {
			return n
		}
	}
	return len(at)
}

func (c *client) produceBatch(ctx context.Context, r *run, batch []int, msgs []Message) error {
	records := make([]kafka.Record, len(batch))
	for i, at := range batch {
		records[i] = toRecord(msgs[at])
	}
	res, err := c.kafka.Produce(ctx, &kafka.ProduceRequest{
		Topic:        r.topic,
		Partition:    r.partition,
		RequiredAcks: kafka.RequireAll,
		Records:      kafka.NewRecordReader(records...),
	})
	if err == nil {
		c.link.found()
		err = res.Error
	}
	// Only a lone message can be too large: batches stay under every default.
	if errors.Is(err, kafka.MessageSizeTooLarge) && len(batch) == 1 {
		return fault.New(fault.Invalid, "topic %s refuses a message of %d bytes: its max.message.bytes is smaller",
			r.topic, wireBytes(msgs[batch[0]])).WithField("value").WithCause(err)
	}
	return err
}
