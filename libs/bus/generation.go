package bus

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"
)

const (
	// commitInterval is how long commits are gathered. What it may lose in a
	// crash is handed out again, which consumers must bear anyway.
	commitInterval = 100 * time.Millisecond
	// widthInterval is how often the partition count is compared with the one
	// that was shared out.
	widthInterval = 2 * time.Second
)

// generation is this member's share of the partitions until the next
// rebalance.
type generation struct {
	sub        *subscription
	kafka      *kafka.Generation
	partitions []int

	mu sync.Mutex
	// next is where polling goes on, per partition of ours.
	next map[int]int64
	// marked is what the consumer is done with and the broker not yet told.
	marked map[int]int64
	told   map[int]int64
	dirty  chan struct{}
}

func newGeneration(s *subscription, kg *kafka.Generation) *generation {
	g := &generation{
		sub:    s,
		kafka:  kg,
		next:   make(map[int]int64),
		marked: make(map[int]int64),
		told:   make(map[int]int64),
		dirty:  make(chan struct{}, 1),
	}
	for _, a := range kg.Assignments[s.topic] {
		g.next[a.ID] = a.Offset
	}
	g.partitions = slices.Sorted(maps.Keys(g.next))
	return g
}

// poll reads the partitions until the generation ends, and starts over with
// fresh leaders whenever something fails.
func (g *generation) poll(ctx context.Context) {
	defer g.sub.end(g)
	if len(g.partitions) == 0 {
		g.sub.link.found()
		<-ctx.Done()
		return
	}
	var p pauses
	for ctx.Err() == nil {
		err := g.pollLeaders(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case errors.Is(err, kafka.OffsetOutOfRange):
			// Said when it was seen; the next round begins at the start.
		case g.sub.link.lost(err):
			p.reset()
		}
		if !p.wait(ctx) {
			return
		}
	}
}

// pollLeaders polls each leader in its own goroutine until one fails.
func (g *generation) pollLeaders(ctx context.Context) error {
	if err := g.resolve(ctx); err != nil {
		return err
	}
	led, err := g.sub.client.leaders(ctx, g.sub.topic, g.partitions)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, partitions := range led {
		group.Go(func() error { return g.pollLeader(ctx, partitions) })
	}
	return group.Wait()
}

// resolve turns "from the beginning" into offsets.
func (g *generation) resolve(ctx context.Context) error {
	var unknown []int
	for _, p := range g.positions(g.partitions) {
		if p.offset < 0 {
			unknown = append(unknown, p.partition)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	edges, err := g.sub.client.edges(ctx, g.sub.topic, unknown)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range unknown {
		g.next[p] = edges[p].first
	}
	return nil
}

func (g *generation) pollLeader(ctx context.Context, partitions []int) error {
	partitions = slices.Clone(partitions)
	for g.sub.buffer.waitRoom(ctx) {
		portions, err := g.sub.client.fetch(ctx, g.sub.topic, g.positions(partitions))
		if err != nil {
			return err
		}
		var failed error
		for _, p := range portions {
			if p.err != nil {
				failed = errors.Join(failed, g.restart(p))
				continue
			}
			g.deliver(ctx, p)
		}
		if failed != nil {
			return failed
		}
		g.sub.link.found()
		// The one that was first in line is last next time: a full answer
		// must not always leave out the same partitions.
		partitions = append(partitions[1:], partitions[0])
	}
	return ctx.Err()
}

// restart handles a partition that refused. A committed offset outside the
// log means that the log was cut or made anew: reading begins at its start,
// since a message too often is harmless and a message too few is not.
func (g *generation) restart(p portion) error {
	if errors.Is(p.err, kafka.OffsetOutOfRange) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.sub.link.log.Warn("committed offset is outside the log, reading from its start",
			"partition", p.partition, "offset", g.next[p.partition])
		g.next[p.partition] = kafka.FirstOffset
	}
	return p.err
}

func (g *generation) deliver(ctx context.Context, p portion) {
	if len(p.messages) == 0 || ctx.Err() != nil {
		return
	}
	g.mu.Lock()
	g.next[p.partition] = p.next
	g.mu.Unlock()
	g.sub.buffer.put(p.messages)
}

func (g *generation) positions(partitions []int) []position {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := make([]position, len(partitions))
	for i, p := range partitions {
		at[i] = position{partition: p, offset: g.next[p]}
	}
	return at
}

// watchWidth ends the generation when the topic has got more partitions, so
// that they are shared out. It reads the metadata that the client keeps fresh
// anyway.
func (g *generation) watchWidth(ctx context.Context) {
	tick := time.NewTicker(widthInterval)
	defer tick.Stop()
	width := g.width(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// Nothing known (a broker that is away) is not a change.
		switch now := g.width(ctx); {
		case now == 0:
		case width == 0 && len(g.partitions) > 0:
			width = now
		case now != width:
			return
		}
	}
}

func (g *generation) width(ctx context.Context) int {
	t, err := g.sub.client.topic(ctx, g.sub.topic)
	if err != nil {
		return 0
	}
	return len(t.Partitions)
}

// mark notes what the consumer is done with. Only offsets that this
// generation has read count: an older one's partition may be another
// member's by now.
func (g *generation) mark(msgs []Message) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range msgs {
		next, ours := g.next[m.Partition]
		done := m.Offset + 1
		if !ours || m.Topic != g.sub.topic || done > next || done <= max(g.marked[m.Partition], g.told[m.Partition]) {
			continue
		}
		g.marked[m.Partition] = done
		signal(g.dirty)
	}
}

// commits tells the broker what is marked, at most every commitInterval and
// once more when the generation ends.
func (g *generation) commits(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	for {
		select {
		case <-ctx.Done():
			g.tell()
			return
		case <-g.dirty:
		}
		pause.Reset(commitInterval)
		select {
		case <-ctx.Done():
			g.tell()
			return
		case <-pause.C:
			g.tell()
		}
	}
}

func (g *generation) tell() {
	g.mu.Lock()
	marked := g.marked
	g.marked = make(map[int]int64)
	g.mu.Unlock()
	if len(marked) == 0 {
		return
	}
	err := g.kafka.CommitOffsets(map[string]map[int]int64{g.sub.topic: marked})
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil {
		maps.Copy(g.told, marked)
		g.sub.commitLink.found()
		return
	}
	// Kept for the next round. If the generation ends first, which is what
	// these codes say, they are handed out again.
	if !errors.Is(err, kafka.RebalanceInProgress) && !errors.Is(err, kafka.IllegalGeneration) &&
		!errors.Is(err, kafka.UnknownMemberId) {
		g.sub.commitLink.lost(err)
	}
	for p, done := range marked {
		g.marked[p] = max(g.marked[p], done)
	}
	signal(g.dirty)
}
