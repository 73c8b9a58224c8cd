package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/child"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/server"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/session"
)

// start fills the templates, opens a session and lists its tools: its program has its own time until it is awake, and from then on
// the server has its own until it is ready. launch is the error when it is the program itself that cannot be started.
func (i *instance) start(ctx context.Context) (s *session.Session, launch, err error) {
	ctx, cancel := context.WithTimeout(ctx, i.spec.installTimeout+2*i.spec.startTimeout) // twice, for one that is started anew
	defer cancel()
	filled, filler := i.spec.fill()
	redactor, err := filler.Fill(ctx, i.fleet.options.Company)
	if err != nil {
		return nil, nil, fmt.Errorf("its credentials cannot be resolved: %s", sentence(err))
	}
	i.mu.Lock()
	i.resolved, i.redactor, i.hidden = redactor, redactor, nil
	i.mu.Unlock()
	if err := i.authorize(ctx, filled); err != nil {
		return nil, nil, err
	}
	options := i.options(filled, &launch)
	if options.Legacy, _, err = i.fleet.options.Store.Legacy(ctx, i.spec.digest[:]); err != nil {
		i.log.Warn("cannot look up which protocol the server speaks; it is asked again", "error", err)
	}
	asked := options.Legacy
	if s, err = session.Open(ctx, options); err != nil {
		if asked {
			i.remember(ctx, false) // it may have learnt the new protocol meanwhile
		}
		return nil, launch, err
	}
	listing, cancel := context.WithTimeout(ctx, i.untilReady())
	defer cancel()
	tools, err := s.Tools(listing)
	if err != nil {
		if cause := s.Cause(); errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			err = errors.New("it did not list its tools in time")
		} else if over(s) {
			err = cause
		}
		s.Close()
		return nil, nil, &down{cause: err, tail: s.Tail()}
	}
	if s.Legacy() != asked {
		i.remember(ctx, s.Legacy())
	}
	i.up(s, tools)
	return s, nil, nil
}

// untilReady answers what is left of the time that a server which is awake has.
func (i *instance) untilReady() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, _, awake := i.machine.State()
	return max(i.spec.startTimeout-i.fleet.options.Now().Sub(awake), time.Second)
}

// options say how to open a session. launch is told why the program could not be started, nil once it could.
func (i *instance) options(p *spec, launch *error) session.Options {
	o := session.Options{
		Version: i.fleet.options.Version, Log: i.log, Redact: i.clean,
		Protocol: p.protocol, Install: p.installTimeout, Handshake: p.startTimeout, ResourceUpdated: i.resourceUpdated,
		Started: func() { i.change(func(m *server.Machine, now time.Time) bool { return m.Handshake(now) }) },
	}
	if p.transport != stdio {
		o.HTTP = &session.HTTP{URL: p.url, Headers: p.variables, SSE: p.transport == sse}
		if i.access != nil {
			o.HTTP.Authorize = i.access.Transport
		}
		return o
	}
	o.Start = func() (process *child.Process, err error) {
		process, err = child.Start(child.Options{
			Path: p.command, Args: p.args, Env: child.Environment(i.fleet.options.Getenv, p.variables),
			Log: i.log, Redact: i.clean, Grace: i.fleet.options.Grace, Launcher: i.fleet.launcher,
		})
		*launch = err
		return process, err
	}
	return o
}

func (i *instance) remember(ctx context.Context, legacy bool) {
	if err := i.fleet.options.Store.SetLegacy(ctx, i.spec.digest[:], legacy); err != nil && ctx.Err() == nil {
		i.log.Warn("cannot remember which protocol the server speaks", "error", err)
	}
}

// sentence answers what a fault says to its caller, without the cause.
func sentence(err error) string {
	if f, ok := fault.As(err); ok {
		return f.Message
	}
	return err.Error()
}
