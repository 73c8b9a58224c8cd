package fleet

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/authorize"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/secrets"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/server"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/session"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

// slot is how long a start counts among those that run at a time.
const slot = 15 * time.Second

// instance is one child or session, from its first start to its last stop. Its run is the only one that starts and ends sessions;
// everybody else reads under the lock and waits for changes.
type instance struct {
	fleet *Fleet
	id    identity
	spec  spec
	log   *slog.Logger
	// stop ends run; done is closed when it has returned.
	stop chan struct{}
	halt sync.Once
	done chan struct{}
	// access is what run authorises itself by; nil for a server that wants no token.
	access *authorize.Access

	mu        sync.Mutex
	machine   *server.Machine
	session   *session.Session  // while ready
	redactor  *secrets.Redactor // of what was resolved, and of the tokens that were hidden since
	resolved  *secrets.Redactor
	hidden    []string
	catalogue catalogue
	changed   chan struct{} // closed at the next change
	calls     int           // under way, or waiting for it
	usedAt    time.Time
	retired   bool // takes no more calls
}

func newInstance(f *Fleet, id identity, p spec) *instance {
	now := f.options.Now()
	log := f.options.Log.With("mcp_server", id.server)
	if id.seat != "" {
		log = log.With("seat", id.seat)
	}
	return &instance{
		fleet: f, id: id, spec: p, log: log, stop: make(chan struct{}), done: make(chan struct{}),
		machine: server.New(f.options.Policy, rand.Float64, now), changed: make(chan struct{}), usedAt: now,
	}
}

// run keeps the instance up until ctx ends or it is told to stop.
func (i *instance) run(ctx context.Context) {
	defer close(i.done)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-i.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	program := i.spec.program()
	defer i.fleet.verdicts.leave(program, i)
	for ctx.Err() == nil {
		if i.postponed(program) {
			continue
		}
		if i.change(func(m *server.Machine, now time.Time) bool { return m.Start(now) }) {
			i.live(ctx)
		} else {
			i.rest(ctx)
		}
	}
	i.change(func(m *server.Machine, now time.Time) bool { return m.Stop(now) })
}

// live starts the server, serves it, and answers when it is down again.
func (i *instance) live(ctx context.Context) {
	select {
	case i.fleet.starts <- struct{}{}:
	case <-ctx.Done():
		return
	}
	// One that installs something for minutes must not hold up the others.
	free := sync.OnceFunc(func() { <-i.fleet.starts })
	late := time.AfterFunc(slot, free)
	s, err := i.tried(ctx)
	late.Stop()
	free()
	if err == nil {
		err = i.serve(ctx, s)
	}
	if err != nil && ctx.Err() == nil {
		i.fail(err)
	}
}

// tried starts the server unless it is known that nobody can.
func (i *instance) tried(ctx context.Context) (*session.Session, error) {
	v, program := i.fleet.verdicts, i.spec.program()
	if cause := v.against(program); cause != "" {
		return nil, errors.New(cause)
	}
	s, launch, err := i.start(ctx)
	switch {
	case launch != nil:
		v.condemn(program, i.clean(err.Error()))
	case err == nil:
		v.acquit(program)
	case ctx.Err() == nil:
		v.failed(program)
	}
	return s, err
}

// postponed lets another instance of the program try in the place of one whose next start is due, unless somebody asked for it.
func (i *instance) postponed(program [sha256.Size]byte) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.fleet.options.Now()
	return i.machine.Retries(now) && i.fleet.verdicts.holdsBack(program, i) && i.machine.Postpone(now)
}

// serve watches a session until it is over; ctx ends it.
func (i *instance) serve(ctx context.Context, s *session.Session) error {
	defer s.Close()
	settle := time.NewTimer(0)
	if !settle.Stop() {
		<-settle.C
	}
	defer settle.Stop()
	settling := false
	for {
		select {
		case <-ctx.Done():
			i.withdraw()
			return nil
		case <-s.Done():
			i.withdraw()
			return &down{cause: s.Cause(), tail: s.Tail()}
		case <-s.Changed():
			if !settling { // a storm of words about changes is one look, and one that does not end is looked at all the same
				settling = true
				settle.Reset(i.fleet.options.Settle)
			}
		case <-settle.C:
			settling = false
			changes := s.TakeChanges()
			i.listsChanged(changes)
			if changes.Tools {
				i.look(ctx, s)
			}
		}
	}
}

// look lists the tools again.
func (i *instance) look(ctx context.Context, s *session.Session) {
	ctx, cancel := context.WithTimeout(ctx, defaultStart)
	defer cancel()
	tools, err := s.Tools(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		i.log.Warn("tools cannot be listed again; those of before stay", "error", i.clean(err.Error()))
	default:
		i.bring(tools, s.Protocol())
	}
}

// down is why an instance is not up.
type down struct {
	cause error
	tail  []string
}

// Error implements error.
func (d *down) Error() string { return d.cause.Error() }

func (i *instance) fail(err error) {
	cause := i.clean(err.Error())
	var tail []string
	var d *down
	if errors.As(err, &d) {
		tail = d.tail
	}
	var h *session.HandshakeError
	if errors.As(err, &h) {
		tail = h.Tail
	}
	i.log.Error("mcp_server_failed", "reason", cause, "stderr_tail", tail)
	i.change(func(m *server.Machine, now time.Time) bool { return m.Fail(reasonOf(cause, tail), now) })
}

// rest waits until the next start is due, which somebody who asks may bring forward.
func (i *instance) rest(ctx context.Context) {
	i.mu.Lock()
	due, changed := i.machine.Due(), i.changed
	i.mu.Unlock()
	wait := due.Sub(i.fleet.options.Now())
	if i.access != nil && i.access.Waiting() {
		if i.consented(ctx) {
			return
		}
		wait = min(wait, consentPoll)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
	}
}

// change makes a step of the machine, tells whoever waits, and reports it.
func (i *instance) change(step func(m *server.Machine, now time.Time) bool) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !step(i.machine, i.fleet.options.Now()) {
		return false
	}
	i.announce(true, "")
	return true
}

// report says again what is.
func (i *instance) report() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fleet.reporter.add(i, store.Fact{Report: i.reportLocked()})
}

// wakeLocked tells whoever waits for the instance; it is called under the lock.
func (i *instance) wakeLocked() {
	close(i.changed)
	i.changed = make(chan struct{})
}

// announce is called under the lock.
func (i *instance) announce(state bool, digest string) {
	i.wakeLocked()
	i.fleet.reporter.add(i, store.Fact{Report: i.reportLocked(), StateChanged: state, Digest: digest})
}

func (i *instance) reportLocked() store.Report {
	state, reason, since := i.machine.State()
	return store.Report{
		Server: i.id.server, Seat: i.id.seat, State: state, Reason: reason, At: since,
		Tools: len(i.catalogue.tools), Starts: i.machine.Starts(), Protocol: i.catalogue.protocol,
	}
}

// up makes a session with its tools the one that calls use.
func (i *instance) up(s *session.Session, tools []session.Tool) {
	i.bring(tools, s.Protocol())
	i.mu.Lock()
	defer i.mu.Unlock()
	i.session = s
	if i.machine.Up(i.fleet.options.Now()) {
		i.announce(true, "")
	}
}

// withdraw takes the session away from new calls.
func (i *instance) withdraw() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.session = nil
}

// bring replaces the tools, and says so only when they are others.
func (i *instance) bring(tools []session.Tool, protocol string) {
	i.mu.Lock()
	redactor := i.redactor
	i.mu.Unlock()
	next := catalogueOf(tools, redactor, protocol)
	i.mu.Lock()
	defer i.mu.Unlock()
	same := next.digest == i.catalogue.digest
	i.catalogue = next
	if !same {
		i.announce(false, next.digest)
	}
}

// clean takes the instance's secrets out of a text.
func (i *instance) clean(text string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.redactor.Text(text)
}

// retire lets calls under way finish, at most for patience, and then ends the instance. It does not wait for the end.
func (i *instance) retire(patience time.Duration) {
	i.mu.Lock()
	i.retired = true
	i.wakeLocked()
	i.mu.Unlock()
	go func() {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		for {
			i.mu.Lock()
			busy, changed := i.calls > 0, i.changed
			i.mu.Unlock()
			if !busy {
				break
			}
			select {
			case <-changed:
				continue
			case <-i.done:
			case <-timer.C:
			}
			break
		}
		i.halt.Do(func() { close(i.stop) })
	}()
}
