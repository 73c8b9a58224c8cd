package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	heartbeat = time.Second
	// sessionTimeout is how long a killed member holds its partitions; brokers
	// accept no less than six seconds by default.
	sessionTimeout   = 6 * time.Second
	rebalanceTimeout = 10 * time.Second
	rejoinPause      = 250 * time.Millisecond
	// leaveGrace is how long Close waits for the coordinator before it cuts
	// the connection.
	leaveGrace = 3 * time.Second
)

// subscription is one group member. A goroutine follows the group from
// generation to generation; each generation polls into the buffer that Fetch
// takes from.
//
//	join ─► generation: poll, commit ─► rebalance or lost connection ─┐
//	  ▲                                                               │
//	  └──────────── buffer emptied, read again from committed ────────┘
type subscription struct {
	client *client
	topic  string
	group  string
	// link is about reading and membership, commitLink about commits.
	link       *link
	commitLink *link
	sockets    *sockets
	members    *kafka.ConsumerGroup
	buffer     *buffer

	ctx  context.Context
	stop context.CancelFunc
	done chan struct{}
	once sync.Once

	mu      sync.Mutex
	current *generation
}

func (c *client) Subscribe(topic, group string) (Subscription, error) {
	if topic == "" || group == "" {
		return nil, fmt.Errorf("bus: subscribe needs a topic and a group, got %q and %q", topic, group)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	open := newSockets()
	members, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                group,
		Brokers:           c.cfg.Brokers,
		Topics:            []string{topic},
		Dialer:            &kafka.Dialer{ClientID: c.cfg.ClientID, Timeout: dialTimeout, DialFunc: open.dial},
		HeartbeatInterval: heartbeat,
		SessionTimeout:    sessionTimeout,
		RebalanceTimeout:  rebalanceTimeout,
		JoinGroupBackoff:  rejoinPause,
		StartOffset:       kafka.FirstOffset,
	})
	if err != nil {
		return nil, fmt.Errorf("bus: subscribe to %s as %s: %w", topic, group, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &subscription{
		client:     c,
		topic:      topic,
		group:      group,
		link:       newLink(c.log.With("use", "subscribe", "topic", topic, "group", group)),
		commitLink: newLink(c.log.With("use", "commit", "topic", topic, "group", group)),
		sockets:    open,
		members:    members,
		buffer:     newBuffer(),
		ctx:        ctx,
		stop:       stop,
		done:       make(chan struct{}),
	}
	c.subs[s] = struct{}{}
	go s.follow()
	return s, nil
}

// follow takes part in one generation after the other until Close.
func (s *subscription) follow() {
	defer close(s.done)
	for {
		gen, err := s.members.Next(s.ctx)
		switch {
		case err == nil:
			s.begin(gen)
		case s.ctx.Err() != nil, errors.Is(err, kafka.ErrGroupClosed):
			return
		case errors.Is(err, kafka.RebalanceInProgress):
			// Others are joining; kafka-go goes round by itself.
		default:
			s.link.lost(err)
		}
	}
}

func (s *subscription) begin(kg *kafka.Generation) {
	g := newGeneration(s, kg)
	s.mu.Lock()
	s.current = g
	s.mu.Unlock()
	kg.Start(g.poll)
	kg.Start(g.commits)
	kg.Start(g.watchWidth)
}

// end forgets a generation and what it has read but not handed out: the next
// reads again from what is committed.
func (s *subscription) end(g *generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == g {
		s.current = nil
	}
	s.buffer.clear()
}

func (s *subscription) Fetch(ctx context.Context, limit int) ([]Message, error) {
	return s.buffer.take(ctx, s.ctx, limit)
}

func (s *subscription) Commit(ctx context.Context, msgs ...Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.ctx.Err() != nil {
		return ErrClosed
	}
	s.mu.Lock()
	g := s.current
	s.mu.Unlock()
	if g != nil {
		g.mark(msgs)
	}
	return nil
}

func (s *subscription) Close() error {
	s.once.Do(func() {
		s.stop()
		left := make(chan struct{})
		go func() {
			defer close(left)
			_ = s.members.Close()
		}()
		grace := time.NewTimer(leaveGrace)
		defer grace.Stop()
		select {
		case <-left:
		case <-grace.C:
		}
		s.sockets.closeAll()
		<-left
		<-s.done
		s.client.mu.Lock()
		delete(s.client.subs, s)
		s.client.mu.Unlock()
	})
	return nil
}
