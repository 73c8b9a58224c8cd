package bus

import (
	"context"
	"fmt"
)

// maxEmptyReads is how often a partition may answer nothing before its
// announced end until that counts as a fault and not as a delay.
const maxEmptyReads = 5

func (c *client) ReadAll(ctx context.Context, topic string) ([]Message, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	edges, err := c.allEdges(ctx, topic)
	if err != nil {
		return nil, err
	}
	var all []Message
	for p := range len(edges) {
		msgs, err := c.readPartition(ctx, topic, p, edges[p])
		if err != nil {
			return nil, err
		}
		all = append(all, msgs...)
	}
	c.link.found()
	return all, nil
}

func (c *client) Empty(ctx context.Context, topic string) (bool, error) {
	if err := c.usable(); err != nil {
		return false, err
	}
	edges, err := c.allEdges(ctx, topic)
	if err != nil {
		return false, err
	}
	for _, e := range edges {
		if e.end > 0 {
			return false, nil
		}
	}
	return true, nil
}

// allEdges answers where every partition of a topic begins and ends.
func (c *client) allEdges(ctx context.Context, topic string) (map[int]edge, error) {
	count, err := c.partitionCount(ctx, topic)
	if err != nil {
		return nil, err
	}
	partitions := make([]int, count)
	for i := range partitions {
		partitions[i] = i
	}
	var edges map[int]edge
	err = c.persist(ctx, func(ctx context.Context) (err error) {
		edges, err = c.edges(ctx, topic, partitions)
		return err
	})
	return edges, err
}

func (c *client) readPartition(ctx context.Context, topic string, partition int, e edge) ([]Message, error) {
	var all []Message
	at := position{partition: partition, offset: e.first}
	for empty := 0; at.offset < e.end; {
		var got portion
		err := c.persist(ctx, func(ctx context.Context) error {
			portions, err := c.fetch(ctx, topic, []position{at})
			if err != nil {
				return err
			}
			if len(portions) != 1 {
				return fmt.Errorf("asked for one partition of topic %s, the broker answered %d", topic, len(portions))
			}
			got = portions[0]
			return got.err
		})
		if err != nil {
			return nil, err
		}
		if len(got.messages) == 0 {
			if empty++; empty == maxEmptyReads {
				return nil, fmt.Errorf("partition %d of topic %s: nothing at offset %d, before its end at %d",
					partition, topic, at.offset, e.end)
			}
			continue
		}
		empty = 0
		at.offset = got.next
		for _, m := range got.messages {
			if m.Offset < e.end {
				all = append(all, m)
			}
		}
	}
	return all, nil
}
