package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/services/turn/internal/condense"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
	"github.com/bullpenhq/bullpen/services/turn/internal/model"
	"github.com/bullpenhq/bullpen/services/turn/internal/store"
)

// readToolResult is the tool that reads what a summary leaves out.
const readToolResult = "read_tool_result"

// condenseTimeout bounds one question about one piece of a result.
const condenseTimeout = 60 * time.Second

// frozenSummaries say how large results are shown, in a company that asks for it.
type frozenSummaries struct {
	OverBytes int `json:"over_bytes"`
	TopItems  int `json:"top_items"`
}

// freezeSummaries answers nil where results are shown whole.
func freezeSummaries(c *companyv1.Company) *frozenSummaries {
	r := c.GetToolResults()
	if r.GetMode() != "summarize" || r.GetSummarizeOverBytes() <= 0 || r.GetTopItems() <= 0 {
		return nil
	}
	return &frozenSummaries{OverBytes: int(r.GetSummarizeOverBytes()), TopItems: int(r.GetTopItems())}
}

// show settles how the results that came since the last question are shown to the model. The journal, the delivery check and the
// audit keep each result itself: what is shown changes no verdict on the turn.
func (t *turn) show(ctx context.Context) error {
	if len(t.journal.Rounds) == 0 || !t.summarises() {
		return nil
	}
	round := t.journal.Rounds[len(t.journal.Rounds)-1]
	for ordinal, call := range round.Calls {
		if !t.large(call) {
			continue
		}
		show, err := t.condensed(ctx, call)
		if err != nil {
			return err
		}
		show.Round, show.Ordinal, show.At = round.Number, ordinal, t.engine.Now()
		err = t.keepPaid(ctx, "shown_pkey", func() error { return t.engine.Store.Shown(ctx, t.fence, t.info.ID, show) })
		if err != nil {
			return err
		}
		if err := t.journal.Apply(journal.Condensed{Round: show.Round, Ordinal: show.Ordinal, Shown: show.Shown}); err != nil {
			return err
		}
	}
	return nil
}

// summarises reports whether large results are condensed in this turn: only where the seat could read the rest.
func (t *turn) summarises() bool {
	if t.frozen.Summaries == nil {
		return false
	}
	_, reads := t.frozen.tool(readToolResult)
	return reads
}

// large reports whether a call's result is to be condensed: a success of a read that the audit has, and not one that a seat asks
// for word for word.
func (t *turn) large(c journal.Call) bool {
	switch {
	case c.State != journal.Done, c.Shown != nil, c.Result.Class != "", c.Result.Outcome != "", c.Result.AuditID == "":
		return false
	case slices.Contains([]string{loadToolSkill, readToolResult, "get_page", "use_skill"}, c.Tool) && c.Source == sourceBuiltin:
		return false
	default:
		return len(c.Result.Text) > t.frozen.Summaries.OverBytes
	}
}

// sourceBuiltin is the source of the suite's own tools.
const sourceBuiltin = "builtin"

// condensed answers how a large result is shown: a list by its members, other text in a model's words where the seat has a model
// for that, and whole where neither makes it smaller.
func (t *turn) condensed(ctx context.Context, call journal.Call) (store.Show, error) {
	text := call.Result.Text
	want := condense.Want{
		Task: t.info.Opening, TopItems: t.frozen.Summaries.TopItems, Over: t.frozen.Summaries.OverBytes, Ref: call.Result.AuditID,
	}
	show := store.Show{Shown: journal.Shown{Whole: true}}
	how := "whole"
	if question, ok := condense.Choice(text, want); ok && t.models.Auxiliary != nil {
		answer, err := t.askAuxiliary(ctx, question, &show)
		if err != nil {
			return show, err
		}
		if shown, ok := condense.Chosen(text, answer, want); ok {
			show.Shown, how = journal.Shown{Text: shown}, "chosen"
		}
	}
	if shown, ok := condense.List(text, want); ok && show.Shown.Whole {
		show.Shown, how = journal.Shown{Text: shown}, "list"
	}
	if show.Shown.Whole && t.models.Auxiliary != nil {
		shown, err := t.rewritten(ctx, text, want, &show)
		if err != nil {
			return show, err
		}
		if shown != "" {
			show.Shown, how = journal.Shown{Text: shown}, "model"
		}
	}
	t.engine.metrics.shown.WithLabelValues(how).Inc()
	return show, nil
}

// rewritten asks the seat's auxiliary model for the text in fewer words, piece by piece; empty when it does not give them.
func (t *turn) rewritten(ctx context.Context, text string, want condense.Want, show *store.Show) (string, error) {
	var answers []string
	for _, question := range condense.Questions(text, want) {
		answer, err := t.askAuxiliary(ctx, question, show)
		if err != nil || answer == "" {
			return "", err
		}
		answers = append(answers, answer)
	}
	shown, ok := condense.Rewritten(text, answers, want)
	if !ok {
		return "", nil
	}
	return shown, nil
}

// askAuxiliary asks the seat's auxiliary model once, and charges what it said to show, whether it was of use or not. It answers
// nothing for a model that fails or does not finish: that stops no turn. Its error is that the turn must let go.
func (t *turn) askAuxiliary(ctx context.Context, q condense.Question, show *store.Show) (string, error) {
	asking, cancel := context.WithTimeout(ctx, condenseTimeout)
	defer cancel()
	answer, err := t.models.Auxiliary.Ask(asking, model.Request{System: q.System, Opening: q.Text, Seat: t.info.Seat})
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		t.engine.metrics.asks.WithLabelValues(providerOf(err), kindOf(err)).Inc()
		t.log.Warn("the auxiliary model condenses nothing", "error", t.redact.Replace(err.Error()))
		return "", nil
	}
	t.engine.metrics.asks.WithLabelValues(answer.Provider, answer.Stop).Inc()
	show.Provider, show.Model = answer.Provider, answer.Model
	show.InputTokens += answer.InputTokens
	show.OutputTokens += answer.OutputTokens
	show.Scripted = show.Scripted || answer.Scripted
	if answer.Stop != journal.StopEnd {
		return "", nil
	}
	return strings.TrimSpace(clean(t.redact.Replace(answer.Text))), nil
}
