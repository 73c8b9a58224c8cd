package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/fetch"
)

const (
	// fetchWait is how long a broker holds a request that finds nothing. It
	// answers as soon as one byte is there, so the wait costs no latency.
	fetchWait = 500 * time.Millisecond
	// What one request may bring, of one partition and in all. A single
	// larger message is answered whole.
	fetchPartitionBytes = 1 << 20
	fetchBytes          = 4 << 20
)

// position is where reading a partition goes on.
type position struct {
	partition int
	offset    int64
}

// portion is what one request brought of a partition.
type portion struct {
	partition int
	messages  []Message
	// next is the offset to go on from.
	next int64
	err  error
}

// fetch is one long poll for several partitions that have the same leader:
// kafka-go's own readers take a connection and a poll for each partition.
func (c *client) fetch(ctx context.Context, topic string, from []position) ([]portion, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchWait+requestTimeout)
	defer cancel()
	req := &fetch.Request{
		ReplicaID:    -1,
		MaxWaitTime:  int32(fetchWait.Milliseconds()),
		MinBytes:     1,
		MaxBytes:     fetchBytes,
		SessionID:    -1,
		SessionEpoch: -1,
		Topics:       []fetch.RequestTopic{{Topic: topic}},
	}
	offsets := make(map[int]int64, len(from))
	for _, p := range from {
		offsets[p.partition] = p.offset
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, fetch.RequestPartition{
			Partition:          int32(p.partition),
			CurrentLeaderEpoch: -1,
			FetchOffset:        p.offset,
			LogStartOffset:     -1,
			PartitionMaxBytes:  fetchPartitionBytes,
		})
	}
	answer, err := c.transport.RoundTrip(ctx, c.kafka.Addr, req)
	if err != nil {
		return nil, err
	}
	res := answer.(*fetch.Response)
	if res.ErrorCode != 0 {
		return nil, kafka.Error(res.ErrorCode)
	}
	var portions []portion
	for _, t := range res.Topics {
		for _, p := range t.Partitions {
			portions = append(portions, readPortion(topic, offsets[int(p.Partition)], p))
		}
	}
	return portions, nil
}

func readPortion(topic string, offset int64, res fetch.ResponsePartition) portion {
	p := portion{partition: int(res.Partition), next: offset}
	if res.ErrorCode != 0 {
		p.err = fmt.Errorf("partition %d of topic %s: %w", p.partition, topic, kafka.Error(res.ErrorCode))
		return p
	}
	if p.messages, p.err = readRecords(topic, p.partition, offset, res.RecordSet.Records); p.err != nil {
		p.err = fmt.Errorf("partition %d of topic %s at offset %d: %w", p.partition, topic, offset, p.err)
	}
	if n := len(p.messages); n > 0 {
		p.next = p.messages[n-1].Offset + 1
	}
	return p
}

// leaders sorts partitions by the broker that leads them.
func (c *client) leaders(ctx context.Context, topic string, partitions []int) (map[int][]int, error) {
	t, err := c.topic(ctx, topic)
	if err != nil {
		return nil, err
	}
	leader := make(map[int]int, len(t.Partitions))
	for _, p := range t.Partitions {
		if p.Error == nil {
			leader[p.ID] = p.Leader.ID
		}
	}
	led := make(map[int][]int)
	for _, p := range partitions {
		id, ok := leader[p]
		if !ok {
			return nil, fmt.Errorf("partition %d of topic %s: %w", p, topic, kafka.LeaderNotAvailable)
		}
		led[id] = append(led[id], p)
	}
	return led, nil
}

// edge is where a partition's log begins and ends: the offset of its oldest
// message, and the offset that the next message will get.
type edge struct{ first, end int64 }

func (c *client) edges(ctx context.Context, topic string, partitions []int) (map[int]edge, error) {
	var asks []kafka.OffsetRequest
	for _, p := range partitions {
		asks = append(asks, kafka.FirstOffsetOf(p), kafka.LastOffsetOf(p))
	}
	res, err := c.kafka.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: asks}})
	if err != nil {
		return nil, err
	}
	edges := make(map[int]edge, len(partitions))
	for _, p := range res.Topics[topic] {
		if p.Error != nil {
			return nil, fmt.Errorf("offsets of partition %d of topic %s: %w", p.Partition, topic, p.Error)
		}
		edges[p.Partition] = edge{first: p.FirstOffset, end: p.LastOffset}
	}
	return edges, nil
}
