package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
	"github.com/bullpenhq/bullpen/services/turn/internal/model"
)

// summarizing is a company whose large results are condensed.
func summarizing() *companyv1.Company {
	c := newCompany()
	c.ToolResults = &companyv1.ToolResults{Mode: "summarize", SummarizeOverBytes: 2000, TopItems: 2}
	return c
}

func readOnly(name, source string) *toolregistryv1.Tool {
	yes := true
	return &toolregistryv1.Tool{
		Name: name, Source: source, InputSchemaJson: `{"type":"object"}`, Annotations: &toolregistryv1.Annotations{ReadOnly: &yes},
	}
}

// listing is a large list in which one member is about a kettle.
func listing() string {
	var all []string
	for i := range 60 {
		title := fmt.Sprintf("something that nobody asked about, number %d", i)
		if i == 40 {
			title = "the kettle leaks"
		}
		all = append(all, fmt.Sprintf(`{"key":"OPS-%d","title":%q}`, i, title))
	}
	return `{"items":[` + strings.Join(all, ",") + `],"count":60}`
}

// talk is a bundle whose model plays rounds and remembers what it was shown.
type talk struct {
	*bundle
	mu     sync.Mutex
	shown  []string
	paid   int
	models stub
}

func newTalk(t *testing.T, c *companyv1.Company, texts map[string]string, rounds ...model.Answer) *talk {
	t.Helper()
	k := &talk{bundle: setup(t, c)}
	k.registry.tools = append(tools(), loader(), readOnly("read_tool_result", "builtin"), readOnly("get_page", "builtin"))
	k.registry.texts = texts
	k.models = stub{ask: func(_ context.Context, r model.Request) (model.Answer, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.shown = nil
		for _, round := range r.Rounds {
			for _, result := range round.Results {
				k.shown = append(k.shown, result.Text)
			}
		}
		return rounds[len(r.Rounds)], nil
	}}
	return k
}

// auxiliary gives the seat a model that answers a text, or fails.
func (k *talk) auxiliary(answer string, err error) {
	k.models.auxiliary = func(_ context.Context, r model.Request) (model.Answer, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.paid++
		if len(r.Tools) > 0 || !strings.Contains(r.System, "kettle") {
			return model.Answer{}, errors.New("the task is missing, or there are tools")
		}
		return model.Answer{Provider: "cheap", Model: "small", Text: answer, Stop: journal.StopEnd, InputTokens: 70, OutputTokens: 7}, err
	}
}

func (k *talk) run(t *testing.T) (journal.Turn, *journal.Journal) {
	t.Helper()
	k.bundle.models = k.models
	k.post(t, letter("ada", "slack:1", "What about the kettle?"))
	k.start(t, "n1", nil)
	turn := k.ended(t, 1)[0]
	return turn, k.journal(t, turn.ID)
}

func TestALargeListIsShownByItsMembersAndKeptWhole(t *testing.T) {
	t.Parallel()
	k := newTalk(t, summarizing(), map[string]string{"get_work_item": listing()}, calls("get_work_item", `{}`), giveUp)
	_, j := k.run(t)
	require.Equal(t, listing(), j.Calls()[0].Result.Text, "the journal keeps the result")
	label, rest, _ := strings.Cut(k.shown[0], "\n")
	require.Contains(t, label, "2 of 60 members of `items` shown")
	require.Contains(t, label, fmt.Sprintf("call_ref %q", j.Calls()[0].Result.AuditID))
	require.Equal(t, `{"items":[{"key":"OPS-0","title":"something that nobody asked about, number 0"},{"key":"OPS-40","title":"the kettle leaks"}],"count":60}`, rest)
	require.Equal(t, k.shown[0], j.Calls()[0].Reads())
}

func TestAnAuxiliaryModelChoosesTheMembersWhereTheSeatHasOne(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"[3]":   `{"items":[{"key":"OPS-3","title":"something that nobody asked about, number 3"}],"count":60}`,
		"dunno": "OPS-40", // by the task's words then
	} {
		k := newTalk(t, summarizing(), map[string]string{"get_work_item": listing()}, calls("get_work_item", `{}`), giveUp)
		k.auxiliary(answer, nil)
		turn, _ := k.run(t)
		require.Contains(t, k.shown[0], want)
		require.Equal(t, 1, k.paid)
		require.EqualValues(t, 70, turn.InputTokens, "it is charged, of use or not")
	}
}

func TestALargeTextIsCondensedByTheAuxiliaryModelAndChargedOnce(t *testing.T) {
	t.Parallel()
	prose := strings.Repeat("The kettle is old. ", 500)
	k := newTalk(t, summarizing(), map[string]string{"look_up": prose}, calls("look_up", `{}`), calls("get_work_item", `{}`), giveUp)
	k.auxiliary("It is old.", nil)
	turn, j := k.run(t)
	require.Equal(t, 1, k.paid, "what is shown is settled once for the turn")
	require.EqualValues(t, 70, turn.InputTokens)
	require.EqualValues(t, 7, turn.OutputTokens)
	require.Equal(t, prose, j.Calls()[0].Result.Text)
	require.True(t, strings.HasPrefix(k.shown[0], "[Condensed by a model"), k.shown[0])
	require.True(t, strings.HasSuffix(k.shown[0], "\nIt is old."))
}

func TestWhatNoModelCondensesIsShownWhole(t *testing.T) {
	t.Parallel()
	prose := strings.Repeat("The kettle is old. ", 500)
	for name, prepare := range map[string]func(k *talk){
		"without an auxiliary model":       func(*talk) {},
		"when it fails":                    func(k *talk) { k.auxiliary("", errors.New("down")) },
		"when its answer is longer":        func(k *talk) { k.auxiliary(prose+prose, nil) },
		"when it says nothing":             func(k *talk) { k.auxiliary(" ", nil) },
		"when nothing could read the rest": func(k *talk) { k.registry.tools = tools(); k.auxiliary("It is old.", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTalk(t, summarizing(), map[string]string{"look_up": prose}, calls("look_up", `{}`), calls("get_work_item", `{}`), giveUp)
			prepare(k)
			_, j := k.run(t)
			require.Equal(t, prose, k.shown[0])
			require.Equal(t, prose, j.Calls()[0].Result.Text)
			require.LessOrEqual(t, k.paid, 1, "it is not tried again in each round")
		})
	}
}

func TestWhatASeatAsksForWordForWordIsShownWhole(t *testing.T) {
	t.Parallel()
	large := listing()
	texts := map[string]string{
		"create_work_item": large, "load_tool_skill": large, "read_tool_result": large, "get_page": large, "get_work_item": "small",
	}
	k := newTalk(t, summarizing(), texts,
		calls("create_work_item", `{}`, "load_tool_skill", `{}`, "read_tool_result", `{}`, "get_page", `{}`, "get_work_item", `{}`), giveUp)
	k.auxiliary("short", nil)
	k.run(t)
	require.Equal(t, []string{large, large, large, large, "small"}, k.shown)
	require.Zero(t, k.paid)

	full := newTalk(t, newCompany(), map[string]string{"look_up": large}, calls("look_up", `{}`), giveUp)
	full.auxiliary("short", nil)
	full.run(t)
	require.Equal(t, []string{large}, full.shown, "results are whole where the company does not ask for summaries")
}

// A worker that takes a turn up shows what was shown, byte for byte, and pays for none of it again.
func TestAResumedTurnPaysForNoSummaryAgain(t *testing.T) {
	t.Parallel()
	prose := strings.Repeat("The kettle is old. ", 2000)
	k := newTalk(t, summarizing(), map[string]string{"look_up": prose, "get_work_item": listing()},
		calls("look_up", `{}`, "get_work_item", `{}`), giveUp)
	k.auxiliary("It is old.", nil)
	answer := k.models.ask
	reached := make(chan []string, 1)
	hang := k.models
	hang.ask = func(ctx context.Context, r model.Request) (model.Answer, error) {
		a, err := answer(ctx, r)
		if len(r.Rounds) == 1 {
			reached <- k.shown
			<-ctx.Done()
			return model.Answer{}, ctx.Err()
		}
		return a, err
	}
	k.bundle.models = hang
	k.options.DrainTimeout = 1
	k.post(t, letter("ada", "slack:1", "What about the kettle?"))
	first := k.start(t, "n1", nil)
	before := <-reached
	first.stop()
	k.bundle.models = k.models
	k.start(t, "n2", nil)
	turn := k.ended(t, 1)[0]
	require.EqualValues(t, 1, turn.Resumes)
	require.Equal(t, before, k.shown)
	require.Equal(t, 2, k.paid, "for each of the two results once")
	require.EqualValues(t, 140, turn.InputTokens)
}
