package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/server"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/session"
)

const (
	// maxResult is the largest result that fits into an answer with what stands around it.
	maxResult = 31 << 20
	// longest bounds a call that the server keeps alive with progress and for which nobody set a limit.
	longest = time.Hour
	// soon is how far away the next start of a failed server may be for a call to wait for it.
	soon = 5 * time.Second
)

// Call is a call of one tool.
type Call struct {
	Server, Tool string
	// Seat is whom to call as; only shared servers can be called as nobody.
	Seat string
	// Arguments is one JSON object; empty for none.
	Arguments string
	// Timeout is how long it may take in all, the wait for a server that starts included; 0 for the server's own limit, which then
	// is one on silence: progress moves it.
	Timeout time.Duration
	// Doubted says that the call may have been carried out already, by a node that was lost. It is made only when the tool may be
	// called again; any other ends with [ErrUnrepeatable].
	Doubted bool
}

// ErrUnrepeatable is the end of a doubted call whose tool must not be called again.
var ErrUnrepeatable = errors.New("the tool must not be called again")

// Result is what the server answered, whole.
type Result struct {
	JSON   string
	Failed bool
}

// Call calls a tool. A call that the server certainly did not get, or whose tool may be called again, is made once more when the
// server was lost.
//
// Faults: invalid for arguments that are no object; not_found for a server, a tool or a seat's server that there is not;
// unavailable when the server could not be asked, and with outcome unknown when it was asked and did not answer; with reason
// [SeatHeld] or [Ending] when another node is to be asked.
func (f *Fleet) Call(ctx context.Context, c Call) (Result, error) {
	arguments, err := object(c.Arguments)
	if err != nil {
		return Result{}, err
	}
	f.mu.Lock()
	declared := declaredServer(f.company, c.Server)
	f.mu.Unlock()
	idle, limit := limits(declared, c.Tool)
	if limit == 0 {
		limit = longest
	}
	if c.Timeout > 0 {
		limit = min(c.Timeout, limit)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var before *session.Session
	doubt := c.Doubted
	for again := c.Doubted; ; again = true {
		i, s, err := f.ready(ctx, c, before)
		if err != nil {
			return Result{}, inDoubt(err, doubt)
		}
		if c.Doubted && !i.repeatable(declared, c.Tool) {
			i.end()
			return Result{}, ErrUnrepeatable
		}
		answer, err := s.Call(ctx, c.Tool, arguments, idle)
		i.end()
		if err == nil {
			return i.result(answer), nil
		}
		var failed *session.CallError
		if !errors.As(err, &failed) {
			failed = &session.CallError{Sent: true}
		}
		doubt = doubt || failed.Sent
		if again || ctx.Err() != nil || !i.again(failed, declared, c.Tool) {
			return Result{}, inDoubt(i.verdict(c, err, limit, idle), doubt)
		}
		if before = s; i.spec.transport != stdio && !over(s) {
			before = nil // an address may answer the next request in the same session
		}
	}
}

// again reports whether a call that was not answered may be made once more.
func (i *instance) again(failed *session.CallError, s *companyv1.McpServer, tool string) bool {
	if !failed.Sent {
		return failed.Lost
	}
	return !errors.Is(failed, session.ErrIdle) && i.repeatable(s, tool)
}

func (i *instance) repeatable(s *companyv1.McpServer, tool string) bool {
	i.mu.Lock()
	h := i.catalogue.hints[tool]
	i.mu.Unlock()
	return repeatable(s, tool, h)
}

// over reports whether a session has ended.
func over(s *session.Session) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

// inDoubt makes the outcome of a call unknown that may have been carried out at an earlier try.
func inDoubt(err error, doubt bool) error {
	if f, ok := fault.As(err); ok && doubt {
		return f.WithOutcome(fault.OutcomeUnknown)
	}
	return err
}

// object checks the arguments; the registry has checked what they say.
func object(text string) (json.RawMessage, error) {
	if text == "" {
		return json.RawMessage("{}"), nil
	}
	data := []byte(text)
	if trimmed := bytes.TrimSpace(data); !json.Valid(data) || trimmed[0] != '{' {
		return nil, fault.New(fault.Invalid, "arguments_json must be one JSON object.").WithField("arguments_json")
	}
	return data, nil
}

// ready answers a session of the instance that a call is for, other than before, counting the call; end must follow.
func (f *Fleet) ready(ctx context.Context, c Call, before *session.Session) (*instance, *session.Session, error) {
	for {
		i, err := f.instanceOf(ctx, c.Server, c.Seat)
		if err != nil {
			return nil, nil, err
		}
		s, err := i.begin(ctx, c.Tool, before)
		if err != nil || s != nil {
			return i, s, err
		}
		// It is being replaced; the next look finds the new one.
	}
}

// begin waits for the instance to be ready and counts a call; tool is empty for one of no tool. It answers neither session nor error
// when the instance is being replaced.
func (i *instance) begin(ctx context.Context, tool string, before *session.Session) (s *session.Session, err error) {
	i.mu.Lock()
	i.calls++ // one that is waited for is not idle
	i.mu.Unlock()
	defer func() {
		if s == nil {
			i.end()
		}
	}()
	for {
		i.mu.Lock()
		state, reason, _ := i.machine.State()
		due, changed := i.machine.Due(), i.changed
		now := i.fleet.options.Now()
		switch {
		case i.retired || state == server.Shutdown:
			i.mu.Unlock()
			return nil, nil
		case state == server.Ready && i.session != nil && i.session != before:
			defer i.mu.Unlock()
			if _, ok := i.catalogue.hints[tool]; !ok && tool != "" {
				return nil, fault.New(fault.NotFound, "The MCP server %q has no tool %q.", i.id.server, tool).WithField("tool")
			}
			i.usedAt = now
			return i.session, nil
		case state == server.Failed && i.machine.Demand(now):
			i.wakeLocked()
		case state == server.Failed && due.Sub(now) > soon:
			i.mu.Unlock()
			return nil, fault.New(fault.Unavailable, "The MCP server %q is down: %s. It is started again by itself.", i.id.server, reason)
		}
		i.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, notReady(i.id.server, state, reason).WithCause(ctx.Err())
		}
	}
}

func notReady(name string, state server.State, reason string) *fault.Error {
	if reason != "" {
		return fault.New(fault.Unavailable, "The MCP server %q is down: %s. It is started again by itself.", name, reason)
	}
	return fault.New(fault.Unavailable, "The MCP server %q was not ready in time (%s); the call was not made.", name, state)
}

// end uncounts a call.
func (i *instance) end() {
	i.mu.Lock()
	i.calls--
	idle := i.calls == 0
	i.usedAt = i.fleet.options.Now()
	if i.retired {
		i.wakeLocked()
	}
	i.mu.Unlock()
	if idle {
		i.fleet.idle()
	}
}

func (i *instance) result(a session.Answer) Result {
	data := i.redact(a.Result)
	if len(data) > maxResult {
		a = session.Failure(fmt.Sprintf("The tool ran, but its result takes %d bytes and at most %d can be carried: ask it for less.", len(data), maxResult))
		data = a.Result
	}
	return Result{JSON: string(data), Failed: a.Failed}
}

func (i *instance) redact(data []byte) []byte {
	i.mu.Lock()
	r := i.redactor
	i.mu.Unlock()
	return r.JSON(data)
}

// verdict says what is known of a call that was not answered.
func (i *instance) verdict(c Call, err error, limit, idle time.Duration) error {
	var failed *session.CallError
	sent := !errors.As(err, &failed) || failed.Sent
	cause := errors.New(i.clean(err.Error())) // for the log
	f := fault.New(fault.Unavailable, "The MCP server %q could not be asked: %s.", c.Server, cause)
	switch {
	case !sent:
		return f.WithCause(cause)
	case errors.Is(err, session.ErrIdle):
		f = fault.New(fault.Unavailable, "The MCP server %q said nothing of %s for %s, so the call was cancelled; it may or may not have been carried out.", c.Server, c.Tool, idle)
	case errors.Is(err, context.DeadlineExceeded):
		f = fault.New(fault.Unavailable, "The MCP server %q did not finish %s within %s, so the call was cancelled; it may or may not have been carried out.", c.Server, c.Tool, limit)
	case errors.Is(err, context.Canceled):
		f = fault.New(fault.Unavailable, "The call of %s was given up before the MCP server %q answered; it may or may not have been carried out.", c.Tool, c.Server)
	default:
		f = fault.New(fault.Unavailable, "The MCP server %q was lost while it ran %s; it may or may not have been carried out. The server is started again by itself.", c.Server, c.Tool)
	}
	return f.WithOutcome(fault.OutcomeUnknown).WithCause(cause)
}
