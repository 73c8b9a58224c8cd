package bus

import (
	"context"
	"sync"
)

// bufferBytes is how much a slow consumer may have waiting before its
// partitions are no longer polled.
const bufferBytes = 8 << 20

// buffer holds messages between the polls and Fetch. Pollers ask for room
// before they poll, so what it holds may pass bufferBytes by one answer each.
type buffer struct {
	mu      sync.Mutex
	waiting []Message
	bytes   int
	// arrived and room each carry one token: something is there, something
	// was taken. Whoever takes a token and leaves work behind puts it back.
	arrived chan struct{}
	room    chan struct{}
}

func newBuffer() *buffer {
	return &buffer{arrived: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (b *buffer) put(msgs []Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, msgs...)
	for _, m := range msgs {
		b.bytes += wireBytes(m)
	}
	signal(b.arrived)
}

func (b *buffer) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting, b.bytes = nil, 0
	signal(b.room)
}

// take waits for the first message and returns what is there, at most limit.
func (b *buffer) take(ctx, closed context.Context, limit int) ([]Message, error) {
	for {
		// An ended context wins over waiting messages, so that a consumer
		// that is told to stop does.
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if closed.Err() != nil {
			return nil, ErrClosed
		}
		if msgs := b.drain(limit); msgs != nil {
			return msgs, nil
		}
		select {
		case <-ctx.Done():
		case <-closed.Done():
		case <-b.arrived:
		}
	}
}

func (b *buffer) drain(limit int) []Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(max(limit, 1), len(b.waiting))
	if n == 0 {
		return nil
	}
	msgs := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	for _, m := range msgs {
		b.bytes -= wireBytes(m)
	}
	if len(b.waiting) > 0 {
		signal(b.arrived)
	} else {
		b.waiting = nil
	}
	signal(b.room)
	return msgs
}

// waitRoom blocks while the buffer is full; false means that ctx ended.
func (b *buffer) waitRoom(ctx context.Context) bool {
	for {
		b.mu.Lock()
		full := b.bytes >= bufferBytes
		b.mu.Unlock()
		if !full {
			signal(b.room) // another poller may be waiting too
			return ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-b.room:
		}
	}
}
