package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/session"
)

// Exchange is a request of the protocol to a server.
type Exchange struct {
	Server, Seat, Method string
	// Params and Capabilities are JSON objects; empty for none.
	Params, Capabilities string
	LogLevel             string
	// Timeout is how long it may take in all; 0 for the server's own limit.
	Timeout time.Duration
	// Notify is told each notification about it, JSON. An error of it gives the request up.
	Notify func(notification string) error
}

// Reply is the end of an exchange: one of a result and an error of the protocol, JSON as the server wrote it.
type Reply struct{ Result, Error string }

// Exchange sends a request and answers what the server says. A request that provably never reached the server is sent once more.
//
// Faults: invalid for parameters that are no object; not_found for a server or a seat's server that there is not; unavailable when
// the server could not be asked, and with outcome unknown when it was asked and did not answer.
func (f *Fleet) Exchange(ctx context.Context, x Exchange) (Reply, error) {
	params, err := object(x.Params)
	if err != nil {
		return Reply{}, fault.New(fault.Invalid, "params_json must be one JSON object.").WithField("params_json")
	}
	f.mu.Lock()
	declared := declaredServer(f.company, x.Server)
	f.mu.Unlock()
	// A tool's own limit is for whoever calls it by name, through CallTool.
	idle, limit := limits(declared, "")
	if limit == 0 {
		limit = longest
	}
	if x.Timeout > 0 {
		limit = min(x.Timeout, limit)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := Call{Server: x.Server, Seat: x.Seat}
	var before *session.Session
	for {
		i, s, err := f.ready(ctx, c, before)
		if err != nil {
			return Reply{}, err
		}
		reply, err := s.Exchange(ctx, session.Request{
			Method: x.Method, Params: unstamp(params), Capabilities: []byte(x.Capabilities), LogLevel: x.LogLevel, Owner: x.Seat, Idle: idle,
			Notify: func(n []byte) error { return x.Notify(string(i.redact(n))) },
		})
		i.end()
		if err == nil {
			return i.reply(reply)
		}
		var failed *session.CallError
		if before != nil || !errors.As(err, &failed) || failed.Sent || !failed.Lost || ctx.Err() != nil {
			c.Tool = x.Method // names it in the verdict
			return Reply{}, i.verdict(c, err, limit, idle)
		}
		before = s
	}
}

func (i *instance) reply(r session.Reply) (Reply, error) {
	if len(r.Result)+len(r.Error) > maxResult {
		return Reply{}, fault.New(fault.Unavailable, "The MCP server %q answered with %d bytes and at most %d can be carried: ask it for less.",
			i.id.server, len(r.Result)+len(r.Error), maxResult).WithReason("RESPONSE_TOO_LARGE").WithOutcome(fault.OutcomeUnknown)
	}
	if r.Error != nil {
		return Reply{Error: string(i.redact(r.Error))}, nil
	}
	return Reply{Result: string(i.fleet.stamp(i.redact(r.Result)))}, nil
}
