package webhook

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/bullpenhq/bullpen/services/notification/internal/store"
)

const (
	// writers is how many commits are under way at a time.
	writers = 2
	// groupMax is how many webhooks one commit takes.
	groupMax = 64
	// groupBytes is how many bytes of bodies one commit takes; a larger body
	// goes alone.
	groupBytes = 4 << 20
)

// errStopped answers a webhook that came too late to be written.
var errStopped = errors.New("the writer has stopped")

// Writer commits webhooks in groups: whatever waits while one commit is under
// way goes into the next. Nobody waits for a group to fill, so a lone webhook
// costs one commit and no more.
type Writer struct {
	insert  func(ctx context.Context, webhooks []store.Webhook) ([]bool, error)
	written func()
	waiting chan *pending
	stopped chan struct{}
}

type pending struct {
	ctx     context.Context
	webhook store.Webhook
	done    chan result
}

type result struct {
	fresh bool
	err   error
}

// NewWriter makes a writer over a store's insert. written is called after each
// commit, outside it.
func NewWriter(insert func(ctx context.Context, webhooks []store.Webhook) ([]bool, error), written func()) *Writer {
	return &Writer{insert: insert, written: written, waiting: make(chan *pending, groupMax), stopped: make(chan struct{})}
}

// Write makes a webhook durable and answers whether it is new. An error means
// that nobody knows: the vendor has to send it again.
func (w *Writer) Write(ctx context.Context, webhook store.Webhook) (bool, error) {
	p := &pending{ctx: ctx, webhook: webhook, done: make(chan result, 1)}
	select {
	case w.waiting <- p:
	case <-ctx.Done():
		return false, ctx.Err()
	case <-w.stopped:
		return false, errStopped
	}
	select {
	case r := <-p.done:
		return r.fresh, r.err
	case <-ctx.Done():
		return false, ctx.Err()
	case <-w.stopped:
		return false, errStopped
	}
}

// Run writes until ctx ends. A group that is under way then is finished.
func (w *Writer) Run(ctx context.Context) error {
	defer close(w.stopped)
	group, _ := errgroup.WithContext(ctx)
	for range writers {
		group.Go(func() error {
			w.work(ctx)
			return nil
		})
	}
	return group.Wait()
}

func (w *Writer) work(ctx context.Context) {
	var next *pending // what did not fit into the last group
	for {
		if next == nil {
			select {
			case next = <-w.waiting:
			case <-ctx.Done():
				return
			}
		}
		var group []*pending
		group, next = w.gather(next)
		w.commit(context.WithoutCancel(ctx), group)
	}
}

// gather adds to first what waits already, and answers what no longer fits.
func (w *Writer) gather(first *pending) (group []*pending, over *pending) {
	group = []*pending{first}
	size := len(first.webhook.Body)
	for len(group) < groupMax {
		select {
		case p := <-w.waiting:
			size += len(p.webhook.Body)
			if size > groupBytes {
				return group, p
			}
			group = append(group, p)
		default:
			return group, nil
		}
	}
	return group, nil
}

// commit writes a group, apart from those whose sender has been told already
// that it was not done.
func (w *Writer) commit(ctx context.Context, group []*pending) {
	webhooks := make([]store.Webhook, 0, len(group))
	alive := group[:0]
	for _, p := range group {
		if p.ctx.Err() == nil {
			webhooks, alive = append(webhooks, p.webhook), append(alive, p)
		}
	}
	if len(alive) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	fresh, err := w.insert(ctx, webhooks)
	for i, p := range alive {
		if err != nil {
			p.done <- result{err: err}
			continue
		}
		p.done <- result{fresh: fresh[i]}
	}
	if err == nil {
		w.written()
	}
}
