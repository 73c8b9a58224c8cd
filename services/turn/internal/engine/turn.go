package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/turn/internal/delivery"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
	"github.com/bullpenhq/bullpen/services/turn/internal/mailbox"
	"github.com/bullpenhq/bullpen/services/turn/internal/model"
	"github.com/bullpenhq/bullpen/services/turn/internal/prompt"
	"github.com/bullpenhq/bullpen/services/turn/internal/store"
)

// turn is one execution in the hands of this worker.
type turn struct {
	engine  *Engine
	fence   store.Fence
	info    journal.Turn
	frozen  frozen
	journal journal.Journal
	mail    []mailbox.Mail
	models  model.Models
	redact  *strings.Replacer
	log     *slog.Logger
	// fresh is set while the current call is one that this worker dispatched and has not made yet.
	fresh bool
}

func (s *seat) newTurn(info journal.Turn, f frozen, mail []mailbox.Mail, m model.Models) *turn {
	return &turn{
		engine: s.engine, fence: s.fence, info: info, frozen: f, mail: mail, models: m, redact: redactor(m.Secrets),
		log: s.engine.Log.With("seat", info.Seat, "turn_id", info.ID, "conversation_key", info.ConversationKey),
	}
}

// begin starts a turn on waiting mail. A fault says that it cannot begin now, and nothing has changed.
func (s *seat) begin(
	ctx context.Context, c *companyv1.Company, person *companyv1.Seat, m model.Models, picked []mailbox.Mail,
) (*turn, error) {
	e := s.engine
	f, err := e.freeze(ctx, c, person, m.Dialects)
	if err != nil {
		return nil, err
	}
	base, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("freeze the turn: %w", err)
	}
	merged := mailbox.Merge(picked)
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("mint a turn id: %w", err)
	}
	info := journal.Turn{
		ID: id.String(), WorkKey: mailbox.WorkKey(picked), Seat: s.fence.Seat, ConversationKey: picked[0].ConversationKey,
		Obligation: merged.Obligation, Surface: merged.Surface, RevisionID: c.GetRevisionId(), Title: merged.Title, Base: base,
		Running: true, ReceiveAt: merged.ReceiveAt, StartAt: e.Now(),
		Opening: redactor(m.Secrets).Replace(prompt.Opening(merged.Text, merged.Obligation, merged.Surface)),
	}
	for i := range picked {
		if err := picked[i].Claim(info.ID); err != nil {
			return nil, fmt.Errorf("claim mail: %w", err)
		}
		info.MailIDs = append(info.MailIDs, picked[i].DeliveryID)
	}
	if err := e.Store.Begin(ctx, s.fence, info, picked); err != nil {
		return nil, err
	}
	t := s.newTurn(info, f, picked, m)
	f.leftOut(t.log, m.Dialects)
	t.log.Info("turn started", "work_key", info.WorkKey, "mail", len(picked))
	return t, nil
}

// resume reads a turn back that another worker left.
func (s *seat) resume(ctx context.Context, info journal.Turn) (*turn, error) {
	e := s.engine
	var f frozen
	if err := json.Unmarshal(info.Base, &f); err != nil {
		return nil, fmt.Errorf("thaw the turn: %w", err)
	}
	mail, err := e.Store.Mail(ctx, info.MailIDs)
	if err != nil {
		return nil, err
	}
	t := s.newTurn(info, f, mail, model.Models{})
	if t.journal, err = e.Store.Journal(ctx, info.ID); err != nil {
		return nil, err
	}
	t.log.Info("turn resumed", "resumes", info.Resumes, "rounds", len(t.journal.Rounds))
	for {
		_, _, m, why := s.ready(ctx)
		if why == nil {
			t.models, t.redact = m, redactor(m.Secrets)
			s.held.Store(nil)
			return t, nil
		}
		s.held.Store(&why.Message)
		s.rest(ctx, heldPause(m))
		if s.over(ctx) {
			return nil, errStopped
		}
	}
}

// run goes from the journal's last line to the turn's end. It answers nil when the turn has ended, and an error when this
// worker must let go of it.
func (t *turn) run(ctx context.Context) (err error) {
	defer func() {
		if value := recover(); value != nil {
			t.log.Error("turn panicked", "panic", value, "stack", string(debug.Stack()))
			err = t.end(ctx, ending{
				outcome: journal.OutcomeFailed, kind: "unhandled_exception", summary: fmt.Sprintf("The engine failed: %v", value),
			})
		}
	}()
	for {
		if err := t.mayGoOn(ctx); err != nil {
			return err
		}
		step := t.journal.Next(t.frozen.limits())
		var ended bool
		switch step.Act {
		case journal.Ask:
			ended, err = t.ask(ctx)
		case journal.Dispatch:
			ended, err = t.dispatch(ctx, step)
		case journal.Settle:
			err = t.call(ctx)
		case journal.End:
			ended, err = true, t.end(ctx, incomplete(step.Kind))
		}
		if ended || err != nil {
			return err
		}
	}
}

func (t *turn) mayGoOn(ctx context.Context) error {
	select {
	case <-t.engine.stopping:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	default:
		return nil
	}
}

// ending is how a turn ends.
type ending struct {
	outcome string
	kind    string
	summary string
	// again gives the mail back: it is worked on anew.
	again func(m *mailbox.Mail) error
	// settle ends the call that ended the turn.
	settle *store.Settle
}

// incomplete is the engine's own word for a turn that ended without a submission.
func incomplete(kind string) ending {
	words := map[string]string{
		journal.KindMaxRounds:    "The turn used all its rounds without submitting.",
		journal.KindToolLoop:     "The seat kept making the same call after it was told to stop.",
		journal.KindRefused:      "The model refused.",
		journal.KindContextFull:  "The conversation grew longer than the model reads.",
		journal.KindLength:       "The model's answer was longer than it may be.",
		journal.KindNotSubmitted: "The seat stopped calling tools without submitting.",
	}
	return ending{outcome: journal.OutcomeIncomplete, kind: kind, summary: words[kind]}
}

func (t *turn) end(ctx context.Context, e ending) error {
	now := t.engine.Now()
	if t.owed(e) {
		e.summary = strings.TrimSpace(e.summary + " The answer that was owed has not been delivered.")
	}
	for i := range t.mail {
		settle := (*mailbox.Mail).Finish
		if e.again != nil {
			settle = e.again
		}
		if err := settle(&t.mail[i]); err != nil {
			return fmt.Errorf("settle mail: %w", err)
		}
	}
	ended, err := t.engine.Store.End(ctx, t.fence, t.info.ID, store.Ending{
		Outcome: e.outcome, ErrorKind: e.kind, Summary: t.redact.Replace(e.summary), At: now, Mail: t.mail, Settle: e.settle,
	})
	if err != nil {
		return err
	}
	t.engine.metrics.turns.WithLabelValues(e.outcome, e.kind).Inc()
	t.engine.metrics.duration.WithLabelValues(e.outcome).Observe(now.Sub(ended.StartAt).Seconds())
	t.log.Info("turn ended", "outcome", e.outcome, "error_kind", e.kind, "rounds", ended.Rounds, "calls", ended.Calls)
	return nil
}

// owed reports whether a turn that did not deliver should have.
func (t *turn) owed(e ending) bool {
	if t.info.Obligation != delivery.ObligationTool || e.again != nil {
		return false
	}
	unfinished := e.outcome == journal.OutcomeIncomplete || e.outcome == journal.OutcomeFailed
	return unfinished && len(delivery.Citable(t.obligation(), t.record(), t.frozen.reach())) == 0
}

func (t *turn) obligation() delivery.Obligation {
	return delivery.Obligation{Kind: t.info.Obligation, Surface: t.info.Surface}
}

// record answers the calls as the delivery check reads them. A call that waits for a person counts as a delivery that is on its
// way: when it is not let through, the mail that says so owes the answer again.
func (t *turn) record() []delivery.Call {
	var calls []delivery.Call
	for _, c := range t.journal.Calls() {
		calls = append(calls, delivery.Call{Tool: c.Tool, Succeeded: c.State == journal.Done || c.State == journal.Parked})
	}
	return calls
}

// reachedOutside reports whether a call may have had an effect that doing the turn again would double.
func (t *turn) reachedOutside() bool {
	for _, c := range t.journal.Calls() {
		tool, known := t.frozen.tool(c.Tool)
		if known && tool.outside() && (c.State == journal.Done || c.State == journal.Unknown || c.State == journal.Dispatched) {
			return true
		}
	}
	return false
}

// failed ends a turn that could not go on. When nothing has reached the outside its mail is worked on again.
func (t *turn) failed(ctx context.Context, kind, summary string, again func(m *mailbox.Mail) error) error {
	e := ending{outcome: journal.OutcomeFailed, kind: kind, summary: summary}
	if !t.reachedOutside() {
		e.again = again
	}
	return t.end(ctx, e)
}

// retry answers how mail is given back after a failure.
func (t *turn) retry(reason string) func(m *mailbox.Mail) error {
	now := t.engine.Now()
	return func(m *mailbox.Mail) error { return m.Retry(reason, now) }
}

// later answers how mail is given back when nothing was wrong with it.
func (t *turn) later(reason string, wait time.Duration) func(m *mailbox.Mail) error {
	until := t.engine.Now().Add(wait)
	return func(m *mailbox.Mail) error { return m.Wait(reason, until) }
}

// redactor takes resolved secrets out of whatever is kept.
func redactor(secrets []string) *strings.Replacer {
	const shortest = 6 // a shorter one would take words apart
	var pairs []string
	for _, secret := range secrets {
		if len(secret) >= shortest {
			pairs = append(pairs, secret, "[REDACTED:secret]")
		}
	}
	return strings.NewReplacer(pairs...)
}

// sentence answers a fault's message, or another error's text.
func sentence(err error) string {
	if f, ok := fault.As(err); ok {
		return f.Message
	}
	return err.Error()
}
