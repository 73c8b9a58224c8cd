package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/child"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

const (
	// probeTime is how long a server that is awake has for its answer to the first question of the newest protocol.
	probeTime = 3 * time.Second
	// defaultHandshake bounds what neither the options nor the context do.
	defaultHandshake = time.Minute
	// glance is how often a program that installs itself is looked at.
	glance = 20 * time.Millisecond

	declaredModern, declaredLegacy = "modern", "legacy"
)

// handshakes are the revisions with one, newest first.
func handshakes() []string { return []string{legacy, "2025-06-18", "2025-03-26", "2024-11-05"} }

// Open starts what must be started and agrees on a protocol, within ctx and the times in o. What it started is ended when it fails.
//
//	server/discover ─► a modern answer: modern
//	               ├─► any other answer, or silence: initialize on the same process or address
//	               └─► exit, or silence to both: a new process, and initialize as the first thing it hears
//
// What is remembered to be legacy begins with initialize, and is probed when it refuses that. The times run from the moment a program
// is awake: until then it may be installing itself.
func Open(ctx context.Context, o Options) (*Session, error) {
	s, err := open(ctx, o, o.Protocol != declaredLegacy && (!o.Legacy || o.Protocol == declaredModern))
	if err == nil || o.HTTP != nil || o.Protocol == declaredModern || ctx.Err() != nil {
		return s, err
	}
	if !errors.Is(err, errWedged) && !errors.Is(err, errExited) || o.Protocol == declaredLegacy || o.Legacy {
		return nil, err
	}
	o.Log.Debug("server did not take the probe and is started anew without it", "error", o.Redact(err.Error()))
	return open(ctx, o, false)
}

var (
	// errWedged is a server that was asked and says nothing at all.
	errWedged = errors.New("it did not answer the handshake in time")
	// errExited is a server that ended while it was asked.
	errExited = errors.New("it ended while it was asked")
	errAsleep = errors.New("it did not say its first word in time")
)

func open(ctx context.Context, o Options, probe bool) (*Session, error) {
	s := newSession(ctx, o)
	n := &negotiation{session: s, probe: probe}
	var err error
	if o.HTTP != nil {
		err = n.http(ctx)
	} else {
		err = n.stdio(ctx)
	}
	if err != nil {
		return nil, n.abort(ctx, err)
	}
	s.agreed.Store(true)
	s.link.begin()
	if s.modern {
		s.background(s.listener.run)
	}
	return s, nil
}

// negotiation finds out what a server speaks.
type negotiation struct {
	session *Session
	probe   bool
}

// abort ends what a failed handshake left, and answers why it failed. A process that ended by itself is the reason, whatever else
// was seen.
func (n *negotiation) abort(ctx context.Context, err error) error {
	s := n.session
	exited := false
	if s.process != nil {
		if cause := s.process.Cause(); cause != nil && !errors.Is(cause, child.ErrStopped) {
			err, exited = cause, true
		}
	}
	if !exited && ctx.Err() != nil && !errors.Is(err, errAsleep) {
		err = errWedged
	}
	s.Close()
	if exited {
		err = exitError{err}
	}
	return &HandshakeError{cause: err, Tail: s.Tail()}
}

// exitError is the end of a process, in its own words.
type exitError struct{ error }

// Is implements the match with errExited.
func (e exitError) Is(target error) bool { return target == errExited }

// Unwrap answers the end's cause.
func (e exitError) Unwrap() error { return e.error }

// stdio starts the process and asks it.
func (n *negotiation) stdio(ctx context.Context) error {
	s := n.session
	process, err := s.options.Start()
	if err != nil {
		return err
	}
	link := newStdioLink(s, process)
	s.process, s.link = process, link
	link.run()
	first, err := n.ask(n.probe)
	if err != nil {
		return err
	}
	if err := n.awake(ctx); err != nil {
		return err
	}
	n.started()
	ctx, cancel := n.bounded(ctx)
	defer cancel()
	return n.agree(ctx, first, n.again)
}

// started says that the server hears us.
func (n *negotiation) started() {
	if n.session.options.Started != nil {
		n.session.options.Started()
	}
}

// awake waits until the program said something, or took our first word from its input, which no installer does.
func (n *negotiation) awake(ctx context.Context) error {
	s := n.session
	if s.options.Install > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.options.Install)
		defer cancel()
	}
	ticker := time.NewTicker(glance)
	defer ticker.Stop()
	for s.heard.Load() == 0 && !s.process.Reads() {
		select {
		case <-ticker.C:
		case <-s.lifetime.Done():
			return errExited
		case <-ctx.Done():
			return errAsleep
		}
	}
	return nil
}

func (n *negotiation) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := n.session.options.Handshake
	if _, has := ctx.Deadline(); limit <= 0 && !has {
		limit = defaultHandshake
	}
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// ask sends the probe, or the old handshake.
func (n *negotiation) ask(probe bool) (*call, error) {
	s := n.session
	c := s.newCall(methodInitialize)
	params := fmt.Appendf(nil, `{"protocolVersion":"%s","capabilities":%s,"clientInfo":%s}`, legacy, canBeAsked, s.self())
	if probe {
		c = s.newCall(methodDiscover)
		c.header = modernHeaders(methodDiscover)
		params = fmt.Appendf(nil, `{"_meta":{%s,"%s":{}}}`, s.meta, metaCapabilities)
	}
	return c, s.begin(c, params)
}

// agree follows the first question to an agreement. again says how to come to the second.
func (n *negotiation) agree(ctx context.Context, first *call, again func(ctx context.Context, first *call, probe bool) error) error {
	if first.method == methodInitialize {
		if err := n.wait(ctx, first); err != nil {
			return err
		}
		err := n.greeted(ctx, first.reply)
		if err == nil || n.session.options.Protocol == declaredLegacy || first.reply.failure != nil {
			return err
		}
		n.session.options.Log.Debug("server refuses the handshake it took before; it is probed", "error", n.session.options.Redact(err.Error()))
		if again(ctx, first, true) == nil {
			return nil
		}
		return err
	}
	probe, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	err := n.wait(probe, first)
	if err == nil && offers(first.reply, modern) {
		if first, err = n.ask(true); err == nil {
			err = n.wait(probe, first)
		}
	}
	if err == nil {
		err = n.discovered(first.reply)
		var final finalError
		if err == nil || errors.As(err, &final) {
			return err
		}
	}
	if n.session.options.Protocol == declaredModern {
		return fmt.Errorf("it is declared to speak %s and does not: %w", modern, err)
	}
	if n.session.isOver() || ctx.Err() != nil {
		return err
	}
	return again(ctx, first, false)
}

// again asks the other question on the same process. The first may still be answered: a modern answer counts, however late.
func (n *negotiation) again(ctx context.Context, first *call, probe bool) error {
	if half, ok := ctx.Deadline(); ok && !probe {
		var cancel context.CancelFunc // a second process needs time, too
		ctx, cancel = context.WithDeadline(ctx, time.Now().Add(time.Until(half)/2))
		defer cancel()
	}
	second, err := n.ask(probe)
	if err != nil {
		return err
	}
	if probe {
		if err := n.wait(ctx, second); err != nil {
			return err
		}
		return n.discovered(second.reply)
	}
	late := first.done
	if first.isDone() {
		late = nil // it has been looked at
	}
	for {
		select {
		case <-late:
			late = nil
		case <-second.done:
		case <-ctx.Done():
			return errWedged
		}
		switch {
		case first.isDone() && first.reply.failure == nil && n.discovered(first.reply) == nil:
			return nil
		case second.isDone() && second.reply.failure != nil:
			return second.reply.failure
		case second.isDone():
			return n.greeted(ctx, second.reply)
		}
	}
}

// wait answers when the call has ended, leaving it open when the time is over.
func (n *negotiation) wait(ctx context.Context, c *call) error {
	select {
	case <-c.done:
		return c.reply.failure
	case <-ctx.Done():
		return errWedged
	}
}

// greeting is what a server says of itself.
type greeting struct {
	capabilities []byte
	instructions string
}

func readGreeting(members []wire.Member) greeting {
	g := greeting{capabilities: wire.Get(members, "capabilities")}
	if len(g.capabilities) == 0 || g.capabilities[0] != '{' {
		g.capabilities = []byte("{}")
	}
	g.instructions, _ = wire.Text(wire.Get(members, "instructions"))
	return g
}

// can reports whether the server declares a capability, or a part of one.
func (g greeting) can(capability, part string) bool {
	members, err := wire.Object(g.capabilities)
	if err != nil {
		return false
	}
	value := wire.Get(members, capability)
	if part == "" {
		return value != nil && string(value) != "null"
	}
	parts, err := wire.Object(value)
	return err == nil && string(wire.Get(parts, part)) == "true"
}

// finalError is an answer after which no older handshake is worth trying.
type finalError struct{ error }

// offers reports whether a refusal of the version that was asked for names a version among those that the server takes.
func offers(r reply, version string) bool {
	e := readRefusal(r.refusal)
	if r.refusal == nil || e.Code != codeNoVersion {
		return false
	}
	data, err := wire.Object(e.Data)
	if err != nil {
		return false
	}
	versions, err := wire.Elements(wire.Get(data, "supported"), maxEntries)
	return err == nil && slices.ContainsFunc(versions, func(v []byte) bool { text, _ := wire.Text(v); return text == version })
}

// discovered reads the answer to the probe. The list of versions must hold the modern one: what stands between an old server and us
// may answer in its place.
func (n *negotiation) discovered(r reply) error {
	s := n.session
	if r.refusal != nil {
		e := readRefusal(r.refusal)
		err := fmt.Errorf("it refused %s: %s (%d)", methodDiscover, e.Message, e.Code)
		if e.Code == codeHeaderMismatch || e.Code == codeNoCapability {
			return finalError{err} // only a modern server says this
		}
		return err
	}
	members, err := wire.Object(r.result)
	if err != nil {
		return errors.New("its answer to the probe is no object")
	}
	versions, err := wire.Elements(wire.Get(members, "supportedVersions"), maxEntries)
	if err != nil || !slices.ContainsFunc(versions, func(v []byte) bool { text, _ := wire.Text(v); return text == modern }) {
		return fmt.Errorf("it answers the probe and does not speak %s", modern)
	}
	s.modern, s.protocol, s.greeting = true, modern, readGreeting(members)
	s.link.agreed(modern)
	return nil
}

// greeted reads the answer to the old handshake, and ends that.
func (n *negotiation) greeted(ctx context.Context, r reply) error {
	s := n.session
	if r.refusal != nil {
		e := readRefusal(r.refusal)
		return fmt.Errorf("the handshake failed: %s (%d)", e.Message, e.Code)
	}
	members, err := wire.Object(r.result)
	if err != nil {
		return errors.New("the handshake failed: its answer is no object")
	}
	version, _ := wire.Text(wire.Get(members, "protocolVersion"))
	if !slices.Contains(handshakes(), version) {
		return fmt.Errorf("the handshake failed: it wants to speak the protocol %.40q, which is not known here", version)
	}
	s.protocol, s.greeting = version, readGreeting(members)
	s.link.agreed(version)
	s.link.tell(ctx, wire.Notification(notificationInitialized, nil))
	return nil
}
