package item_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

func decision() *item.Decision {
	return &item.Decision{
		Question: "Which certificate authority?", Role: "approver", Recommended: "le",
		Options:  []item.Option{{ID: "le", Label: "Let's Encrypt"}, {ID: "own-ca_2", Label: "Our own", Detail: "More work"}},
		Evidence: []item.Evidence{{Kind: "url", Ref: "https://example.com/prices", Label: "Prices"}, {Kind: "run", Ref: "run-1"}},
	}
}

// Each row breaks one rule of a decision that keeps all of them.
func TestADecisionIsRefusedByTheFieldThatBreaksALimit(t *testing.T) {
	t.Parallel()
	require.NoError(t, decision().Check(agent))
	long := func(n int) string { return strings.Repeat("x", n) }
	for name, row := range map[string]struct {
		change func(*item.Decision)
		field  string
	}{
		"no question":              {func(d *item.Decision) { d.Question = " " }, "decision.question"},
		"question over 300 bytes":  {func(d *item.Decision) { d.Question = long(301) }, "decision.question"},
		"rationale over 1500":      {func(d *item.Decision) { d.Rationale = long(1501) }, "decision.rationale"},
		"no role":                  {func(d *item.Decision) { d.Role = "" }, "decision.role"},
		"a role nobody has":        {func(d *item.Decision) { d.Role = "boss" }, "decision.role"},
		"one option":               {func(d *item.Decision) { d.Options = d.Options[:1] }, "decision.options"},
		"seven options":            {func(d *item.Decision) { d.Options = make([]item.Option, 7) }, "decision.options"},
		"no option id":             {func(d *item.Decision) { d.Options[1].ID = "" }, "decision.options[1].id"},
		"option id over 32 signs":  {func(d *item.Decision) { d.Options[0].ID = long(33) }, "decision.options[0].id"},
		"option id in upper case":  {func(d *item.Decision) { d.Options[0].ID = "LE" }, "decision.options[0].id"},
		"option id with a space":   {func(d *item.Decision) { d.Options[0].ID = "l e" }, "decision.options[0].id"},
		"option id with an accent": {func(d *item.Decision) { d.Options[0].ID = "lé" }, "decision.options[0].id"},
		"the same id twice":        {func(d *item.Decision) { d.Options[1].ID = "le" }, "decision.options[1].id"},
		"no label":                 {func(d *item.Decision) { d.Options[1].Label = "" }, "decision.options[1].label"},
		"label over 80 bytes":      {func(d *item.Decision) { d.Options[1].Label = long(81) }, "decision.options[1].label"},
		"detail over 500 bytes":    {func(d *item.Decision) { d.Options[0].Detail = long(501) }, "decision.options[0].detail"},
		"a stranger recommended":   {func(d *item.Decision) { d.Recommended = "acme" }, "decision.recommended"},
		"nine pieces of evidence":  {func(d *item.Decision) { d.Evidence = make([]item.Evidence, 9) }, "decision.evidence"},
		"evidence of no kind":      {func(d *item.Decision) { d.Evidence[0].Kind = "gut" }, "decision.evidence[0].kind"},
		"evidence of nothing":      {func(d *item.Decision) { d.Evidence[1].Ref = "" }, "decision.evidence[1].ref"},
		"an http address":          {func(d *item.Decision) { d.Evidence[0].Ref = "http://example.com" }, "decision.evidence[0].ref"},
		"an address of no host":    {func(d *item.Decision) { d.Evidence[0].Ref = "https:///x" }, "decision.evidence[0].ref"},
		"a script as address":      {func(d *item.Decision) { d.Evidence[0].Ref = "javascript:alert(1)" }, "decision.evidence[0].ref"},
		"a page by its title":      {func(d *item.Decision) { d.Evidence[0] = item.Evidence{Kind: "page", Ref: "OPS/Rotas"} }, "decision.evidence[0].ref"},
		"evidence label over 80":   {func(d *item.Decision) { d.Evidence[0].Label = long(81) }, "decision.evidence[0].label"},
		"informed on paper":        {func(d *item.Decision) { d.Inform = &item.Inform{Surface: "paper", Channel: "x"} }, "decision.inform.surface"},
		"informed nowhere":         {func(d *item.Decision) { d.Inform = &item.Inform{Surface: "slack"} }, "decision.inform.channel"},
	} {
		d := decision()
		row.change(d)
		f, ok := fault.As(d.Check(agent))
		require.True(t, ok, name)
		require.Equal(t, fault.Invalid, f.Class, name)
		require.Equal(t, row.field, f.Field, name)
		require.True(t, strings.HasPrefix(f.Message, row.field), "%s: %s", name, f.Message)
	}
}

func TestADecisionAtEveryLimitIsTaken(t *testing.T) {
	t.Parallel()
	d := decision()
	d.Question, d.Rationale = strings.Repeat("é", 150), strings.Repeat("x", 1500)
	d.Options = nil
	for _, id := range []string{"a", "b", "c", "d", "e", strings.Repeat("9", 32)} {
		d.Options = append(d.Options, item.Option{ID: id, Label: strings.Repeat("l", 80), Detail: strings.Repeat("d", 500)})
	}
	d.Recommended, d.Evidence = "e", nil
	for range item.MaxEvidence {
		d.Evidence = append(d.Evidence, item.Evidence{Kind: "page", Ref: uuid.NewString(), Label: strings.Repeat("l", 80)})
	}
	require.NoError(t, d.Check(human))
}

func TestOnlyAnAgentMayPromiseToInform(t *testing.T) {
	t.Parallel()
	d := decision()
	d.Inform = &item.Inform{Surface: "slack", Channel: "C012"}
	require.NoError(t, d.Check(agent))
	for _, by := range []item.Actor{human, {Name: "ci", Kind: "operator"}} {
		f, ok := fault.As(d.Check(by))
		require.True(t, ok)
		require.Equal(t, fault.Forbidden, f.Class)
		require.Equal(t, "decision.inform", f.Field)
	}
}

func TestAQuestionIsItsAskedsToAnswerOrAPersons(t *testing.T) {
	t.Parallel()
	a := &item.Ask{Asked: "dev"}
	require.NoError(t, a.MayAnswer(item.Actor{Name: "dev", Kind: "agent", Seat: "dev"}))
	require.NoError(t, a.MayAnswer(human))
	require.NoError(t, a.MayAnswer(item.Actor{Name: "ci", Kind: "operator"}))
	require.Equal(t, fault.Forbidden, fault.ClassOf(a.MayAnswer(agent)))
}

func TestAChoiceIsOneOfTheOptions(t *testing.T) {
	t.Parallel()
	a := &item.Ask{Asked: "dev", Decision: decision()}
	require.NoError(t, a.Choose(""))
	require.NoError(t, a.Choose("le"))
	f, _ := fault.As(a.Choose("acme"))
	require.Equal(t, "choice", f.Field)
	require.Contains(t, f.Message, "le, own-ca_2")
	f, _ = fault.As((&item.Ask{Asked: "dev"}).Choose("le"))
	require.Equal(t, "choice", f.Field)
}

func TestASecondAnswerIsToldWhoAnsweredAndWhen(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	id := uuid.New()
	a := &item.Ask{Asked: "dev", Answer: &id, AnsweredBy: "dev", AnsweredAt: &at}
	f, _ := fault.As(a.AlreadyAnswered())
	require.Equal(t, fault.AlreadyAnswered, f.Class)
	require.Contains(t, f.Message, "dev at 2026-03-01T09:00:00Z")
	require.Equal(t, map[string]string{"answered_by": "dev", "answered_at": "2026-03-01T09:00:00Z"}, f.Facts)
}

func TestAShortenedTextEndsAtAWholeCharacter(t *testing.T) {
	t.Parallel()
	require.Equal(t, "short", item.Shorten("short", 5))
	require.Equal(t, "sh…", item.Shorten("shorten", 5))
	require.Equal(t, "é…", item.Shorten("éééé", 6))
	require.Equal(t, "…", item.Shorten("😀😀", 6))
}
