package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
	"github.com/bullpenhq/bullpen/services/turn/internal/model"
	"github.com/bullpenhq/bullpen/services/turn/internal/prompt"
)

// ask puts the question that the journal leads to, and keeps the answer with its calls before anything follows from it.
func (t *turn) ask(ctx context.Context) (ended bool, err error) {
	if err := t.show(ctx); err != nil {
		return false, err
	}
	start := t.engine.Now()
	answer, err := t.models.Asker.Ask(ctx, t.request())
	if err != nil {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		t.engine.metrics.asks.WithLabelValues(providerOf(err), kindOf(err)).Inc()
		return true, t.unanswered(ctx, err)
	}
	t.engine.metrics.asks.WithLabelValues(answer.Provider, answer.Stop).Inc()
	round := t.round(answer, start)
	grown := t.journal
	if err := grown.Apply(journal.Answered{Round: round}); err != nil {
		return false, err
	}
	send := t.sendable(&grown)
	if err := t.keep(ctx, round, send, answer.Scripted); err != nil {
		return false, err
	}
	t.journal = grown
	return false, t.sent(send, round.EndAt)
}

// request rebuilds the conversation from the journal.
func (t *turn) request() model.Request {
	r := model.Request{
		System: t.frozen.System, Tools: t.frozen.offered(), Opening: t.info.Opening, Seat: t.info.Seat,
	}
	for _, round := range t.journal.Rounds {
		said := model.Round{Text: round.Text, Raw: round.Raw, Dialect: round.Dialect}
		for _, call := range round.Calls {
			said.Calls = append(said.Calls, model.Call{ID: call.ID, Tool: call.Tool, Args: call.Args})
			said.Results = append(said.Results, model.Result{Text: call.Reads(), Failed: call.State != journal.Done && call.State != journal.Parked})
		}
		if len(round.Calls) == 0 {
			said.Note = prompt.Reminder
		}
		r.Rounds = append(r.Rounds, said)
	}
	return r
}

// round makes the journal's form of an answer: secrets out, text that can be kept, call ids unique, operations named. An answer
// that could not be kept would be asked for, and paid for, again and again.
func (t *turn) round(a model.Answer, start time.Time) journal.Round {
	r := journal.Round{
		Number: len(t.journal.Rounds) + 1, Provider: a.Provider, Model: a.Model, Text: clean(t.redact.Replace(a.Text)), Stop: a.Stop,
		Raw: []byte(t.redact.Replace(string(a.Raw))), Dialect: a.Dialect, InputTokens: a.InputTokens, CachedTokens: a.CachedTokens,
		OutputTokens: a.OutputTokens, StartAt: start, EndAt: t.engine.Now(),
	}
	if a.Stop != journal.StopCalls && a.Stop != journal.StopEnd {
		// An answer that did not finish: what it wanted to call is not to be trusted.
		return r
	}
	earlier := t.journal.Calls()
	for i, c := range a.Calls {
		call := journal.Call{ID: c.ID, Tool: clean(c.Tool), Args: t.redact.Replace(c.Args)}
		if call.Tool != c.Tool {
			r.Raw = nil
		}
		if !fit(call.ID, earlier) {
			call.ID, r.Raw = fmt.Sprintf("call_%d_%d", r.Number, i+1), nil
		}
		if tool, known := t.frozen.tool(call.Tool); known {
			call.Source = tool.Source
		}
		call.OperationID = journal.OperationID(t.info.WorkKey, call.Tool, call.Args, earlier)
		r.Calls = append(r.Calls, call)
		earlier = append(earlier, call)
	}
	return r
}

// fit reports whether a model's id can stand for a call: some servers count anew with each answer.
func fit(id string, earlier []journal.Call) bool {
	const longest = 128
	if id == "" || len(id) > longest || clean(id) != id {
		return false
	}
	for _, c := range earlier {
		if c.ID == id {
			return false
		}
	}
	return true
}

// keepFor is how long an answer that is paid for is offered to a database that is away.
const keepFor = 30 * time.Second

// keep commits an answer.
func (t *turn) keep(ctx context.Context, r journal.Round, send, scripted bool) error {
	return t.keepPaid(ctx, "rounds_pkey", func() error {
		return t.engine.Store.Answered(ctx, t.fence, t.info.ID, r, send, scripted)
	})
}

// keepPaid commits what a model was asked for. It is tried again while the database is away, because to ask again is to pay
// again; an attempt whose outcome was lost shows as a duplicate, by the constraint.
func (t *turn) keepPaid(ctx context.Context, duplicate string, write func() error) error {
	deadline := t.engine.Now().Add(keepFor)
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := write()
		switch {
		case err == nil, pg.IsUnique(err, duplicate):
			return nil
		case !pg.Transient(err) || ctx.Err() != nil || t.engine.Now().After(deadline):
			return err
		}
		t.log.Warn("an answer cannot be kept yet", "error", err)
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// unanswered ends a turn whose question nobody answered.
func (t *turn) unanswered(ctx context.Context, err error) error {
	failure, ok := errors.AsType[*model.Failure](err)
	if !ok {
		return t.failed(ctx, "model_failed", "The model could not be asked.", t.retry("the model could not be asked"))
	}
	t.log.Warn("no model answers", "provider", failure.Provider, "kind", string(failure.Kind), "status", failure.Status)
	reason := clean(t.redact.Replace(failure.Error()))
	switch failure.Kind {
	case model.ContextFull:
		return t.end(ctx, incomplete(journal.KindContextFull))
	case model.RateLimited, model.Unauthorized:
		wait := max(failure.RetryAfter, time.Second)
		return t.failed(ctx, "llm_unavailable", "No model may be asked now: "+reason, t.later(reason, wait))
	case model.Rejected:
		return t.failed(ctx, "model_rejected", "The provider rejected the request: "+reason, t.retry(reason))
	default:
		return t.failed(ctx, "llm_unavailable", "No model answers: "+reason, t.retry(reason))
	}
}

func providerOf(err error) string {
	if f, ok := errors.AsType[*model.Failure](err); ok {
		return f.Provider
	}
	return ""
}

func kindOf(err error) string {
	if f, ok := errors.AsType[*model.Failure](err); ok {
		return string(f.Kind)
	}
	return "error"
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
