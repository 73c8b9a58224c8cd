package session

import (
	"context"
	"errors"
	"sync"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/child"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

// stdioLink speaks with a process. Nobody who sends waits for a process that does not read: one writer does.
type stdioLink struct {
	session *Session
	process *child.Process
	wake    chan struct{}

	mu    sync.Mutex
	queue []outgoing
}

// outgoing is a message that waits to be written; call is nil when it awaits no answer.
type outgoing struct {
	call    *call
	message []byte
}

func newStdioLink(s *Session, p *child.Process) *stdioLink {
	return &stdioLink{session: s, process: p, wake: make(chan struct{}, 1)}
}

// run begins to read and to write. A process may end at once, and its session with it, which needs the link then.
func (l *stdioLink) run() {
	l.session.background(func(context.Context) { l.read() })
	l.session.background(l.write)
}

func (l *stdioLink) send(c *call) { l.enqueue(outgoing{call: c, message: c.body}) }

func (l *stdioLink) tell(_ context.Context, message []byte) { l.post(message) }

func (l *stdioLink) post(message []byte) { l.enqueue(outgoing{message: message}) }

func (l *stdioLink) cancels() bool { return true }

func (l *stdioLink) agreed(string) {}

func (l *stdioLink) begin() {}

func (l *stdioLink) close(context.Context, [][]byte) {} // the process has been stopped

func (l *stdioLink) enqueue(o outgoing) {
	l.mu.Lock()
	l.queue = append(l.queue, o)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// write writes what is enqueued, in order, until the session is over.
func (l *stdioLink) write(ctx context.Context) {
	for {
		l.mu.Lock()
		batch := l.queue
		l.queue = nil
		l.mu.Unlock()
		for _, o := range batch {
			l.put(o)
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-l.wake:
		case <-ctx.Done():
			return
		}
	}
}

func (l *stdioLink) put(o outgoing) {
	if o.call == nil {
		_ = l.process.Write(wire.Line(o.message)) // a process that takes nothing more ends, and the reader sees it
		return
	}
	select {
	case <-o.call.done:
		return // given up before its turn came
	default:
	}
	o.call.sent.Store(true)
	err := l.process.Write(wire.Line(o.message))
	if errors.Is(err, child.ErrNotWritten) {
		o.call.sent.Store(false)
		l.session.settle(o.call, reply{failure: err})
	}
}

// read shows the session what the process says, until it ends.
func (l *stdioLink) read() {
	for {
		line, err := l.process.Next()
		if err != nil {
			l.session.fail(err)
			return
		}
		messages, err := wire.Decode(line)
		if err != nil {
			l.process.Noise(line)
			continue
		}
		for _, m := range messages {
			l.session.receive(m, nil)
		}
	}
}
