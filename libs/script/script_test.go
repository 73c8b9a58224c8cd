package script_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/script"
)

const shop = `
rules:
  - when: {regex: 'order (\d+)', seat: ada}
    rounds:
      - say: I look at {{match.1}}.
        call: {tool: get_order, args: {number: "{{match.1}}", of: ["{{fact.seat}}"]}}
      - calls:
          - {tool: reply, args: {lines: "{{result.get_order.lines}}", first: "{{result.get_order.lines.0.name}}"}}
          - {tool: broken, args: '{"not": json'}
      - finish: {summary: "said: {{opening}}"}
  - when: {contains: hello}
    rounds:
      - say: Hi.
`

func options() script.Options {
	return script.Options{Facts: []string{"seat"}, Verbs: map[string]string{"finish": "end"}}
}

func TestScript(t *testing.T) {
	t.Parallel()
	s, err := script.Parse([]byte(shop), options())
	require.NoError(t, err)
	scene := script.Scene{Opening: "where is order 17?", Facts: map[string]string{"seat": "ada"}, Results: map[string]string{}}

	t.Run("plays the rounds of the first rule that fits", func(t *testing.T) {
		t.Parallel()
		move, err := s.Next(scene)
		require.NoError(t, err)
		require.Equal(t, "I look at 17.", move.Say)
		require.Equal(t, []script.Call{{Tool: "get_order", Args: `{"number":"17","of":["ada"]}`}}, move.Calls)

		later := scene
		later.Round, later.Results = 1, map[string]string{"get_order": `{"lines":[{"name":"cup"}]}`}
		move, err = s.Next(later)
		require.NoError(t, err)
		require.Equal(t, `{"first":"cup","lines":[{"name":"cup"}]}`, move.Calls[0].Args)
		require.Equal(t, `{"not": json`, move.Calls[1].Args)

		later.Round = 2
		move, err = s.Next(later)
		require.NoError(t, err)
		require.Equal(t, []script.Call{{Tool: "end", Args: `{"summary":"said: where is order 17?"}`}}, move.Calls)
	})

	t.Run("a rule without its fact does not fit", func(t *testing.T) {
		t.Parallel()
		other := scene
		other.Facts = map[string]string{"seat": "bo"}
		_, err := s.Next(other)
		require.Equal(t, fault.NotFound, fault.ClassOf(err))
	})

	t.Run("says when it has no more rounds and when nothing fills a placeholder", func(t *testing.T) {
		t.Parallel()
		over := scene
		over.Round = 3
		_, err := s.Next(over)
		require.ErrorContains(t, err, "ends after 3 rounds")

		empty := scene
		empty.Round = 1
		_, err = s.Next(empty)
		require.ErrorContains(t, err, "Nothing fills {{result.get_order.lines}}")
	})
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, says string }{
		"no YAML":               {"rules: [", "cannot be read"},
		"no rules":              {"rules: []", "has no rules"},
		"an unknown top key":    {"rulez: []", "cannot be read"},
		"an unknown condition":  {"rules: [{when: {moon: full}, rounds: [{say: x}]}]", "rules[0].when.moon is not known"},
		"a bad expression":      {"rules: [{when: {regex: '('}, rounds: [{say: x}]}]", "does not compile"},
		"an unknown verb":       {"rules: [{rounds: [{sing: x}]}]", "rules[0].rounds[0].sing is not known"},
		"a call without a tool": {"rules: [{rounds: [{call: {args: {}}}]}]", "must name a tool"},
		"a rule without rounds": {"rules: [{when: {contains: x}}]", "has no rounds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := script.Parse([]byte(c.text), options())
			require.Equal(t, fault.Invalid, fault.ClassOf(err))
			require.ErrorContains(t, err, c.says)
		})
	}
}
