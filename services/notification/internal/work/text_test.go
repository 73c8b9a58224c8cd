package work_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/notification/internal/work"
)

// body is what the seat ops reads of a change.
func body(t *testing.T, c *work.Change) string {
	t.Helper()
	o := work.Decide(c, telling())
	require.Len(t, o.Deliveries, 1)
	return o.Deliveries[0].Body
}

func TestAChangeIsToldAsFromAndTo(t *testing.T) {
	t.Parallel()
	c := change("human", "ines", owed("ops", "assignee"), concern("ops", "watcher"))
	c.Kind, c.Reason = "assignee", "you know the shop"
	c.Fields = []work.Field{{Name: "assignee", To: "ops"}, {Name: "status", From: "todo", To: "in_progress"}}
	require.Equal(t, `You are told because it is yours and you watch it.

What changed:
- assignee: (nothing) → ops
- status: todo → in_progress
Why it was handed on: you know the shop

`+"`get_work_item` with item OPS-1 shows all of it. Answer with `comment_on_work_item`, or by what `update_work_item` makes of it.", body(t, c))
}

func TestANewItemIsToldByWhatItSays(t *testing.T) {
	t.Parallel()
	c := change("human", "ines", owed("ops", "assignee"))
	c.Kind, c.Fields = "created", []work.Field{{Name: "assignee", To: "ops"}, {Name: "status", To: "todo"}, {Name: "title", To: "Renew"}}
	require.Contains(t, body(t, c), "A new item, OPS-1: Renew\n- assignee: ops\n- status: todo\n")
}

func TestAQuestionIsToldWithItsChoicesAndHowToAnswer(t *testing.T) {
	t.Parallel()
	c := change("human", "ines", owed("ops", "asked"))
	c.Comment = &work.Comment{
		ID: "c-1", Body: "Before Friday, please.", Question: "Which host?", Recommended: "b",
		Options: []work.Option{{ID: "a", Label: "The old one"}, {ID: "b", Label: "The new one", Detail: "costs more"}},
	}
	require.Equal(t, `You are told because you are asked a question and owe the answer.

The comment (c-1):
Before Friday, please.

To decide: Which host?
- `+"`a`"+`: The old one
- `+"`b`"+`: The new one (costs more), recommended

`+"`get_work_item` with item OPS-1 shows all of it. Answer with `comment_on_work_item`: item OPS-1, answers c-1, and the option you take in choice.", body(t, c))
}

func TestACommentIsToldWhole(t *testing.T) {
	t.Parallel()
	c := change("human", "ines", concern("ops", "watcher"))
	c.Comment = &work.Comment{ID: "c-1", Body: "One.\n\nTwo."}
	text := body(t, c)
	require.Contains(t, text, "The comment (c-1):\nOne.\n\nTwo.\n")
	require.NotContains(t, text, "Answer with", "nothing is owed")
}

func TestAPurgeSaysNothingOfTheItemButItsKey(t *testing.T) {
	t.Parallel()
	c := change("human", "ines", concern("ops", "purged"))
	c.Kind, c.Item.Title = "purged", ""
	require.Equal(t, "You are told because you lead its project.\n\nOPS-1 was destroyed for ever.", body(t, c))
}

func TestAnOrderOfWorkNamesEveryItemThatIsNewInIt(t *testing.T) {
	t.Parallel()
	first, second := owed("ops", "prioritised"), owed("ops", "prioritised")
	first.About, second.About = &ship, &renew
	c := change("human", "ines", first, second)
	c.Item = work.Item{}
	require.Contains(t, body(t, c), "because OPS-2 Ship was put into your order of work and OPS-1 Renew was put into your order of work.")
	require.Equal(t, ship, c.Subject())
}
