package journal_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
)

func drawEvent(t *rapid.T, rounds int) journal.Event {
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		r := journal.Round{Number: rounds + rapid.IntRange(0, 2).Draw(t, "number"), Stop: journal.StopCalls}
		for range rapid.IntRange(0, 3).Draw(t, "calls") {
			r.Calls = append(r.Calls, journal.Call{Tool: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tool"), State: journal.Done})
		}
		return journal.Answered{Round: r}
	case 1:
		return journal.Sent{At: time.Unix(1, 0)}
	case 2:
		return journal.Condensed{
			Round: rounds - rapid.IntRange(-1, 1).Draw(t, "round"), Ordinal: rapid.IntRange(-1, 3).Draw(t, "ordinal"),
			Shown: journal.Shown{Text: "s"},
		}
	default:
		state := rapid.SampledFrom([]journal.State{
			journal.Planned, journal.Dispatched, journal.Done, journal.Failed, journal.Unknown, journal.Parked,
		}).Draw(t, "state")
		return journal.Settled{State: state, Result: journal.Result{Text: "r"}, At: time.Unix(2, 0)}
	}
}

// sound is what must hold of every journal.
func sound(t *rapid.T, j journal.Journal) {
	for i, r := range j.Rounds {
		require.Equal(t, i+1, r.Number)
		open := false
		for _, c := range r.Calls {
			if i < len(j.Rounds)-1 {
				require.True(t, c.State.Ended(), "only the last round may have calls that run")
			}
			if open {
				require.Equal(t, journal.Planned, c.State, "calls run one after the other")
			}
			open = open || !c.State.Ended()
			require.Equal(t, c.State.Ended(), c.Result.Text != "", "a result and its state go together")
			require.True(t, c.Shown == nil || c.State == journal.Done, "only what is done is shown otherwise")
		}
	}
}

func TestNoIllegalJournalIsReachable(t *testing.T) {
	t.Parallel()
	limits := journal.Limits{MaxRounds: 5, IdenticalCalls: 3}
	rapid.Check(t, func(t *rapid.T) {
		var j journal.Journal
		var taken []journal.Event
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			e := drawEvent(t, len(j.Rounds))
			step := j.Next(limits)
			err := j.Apply(e)
			sound(t, j)
			if err != nil {
				require.Equal(t, fault.Conflict, fault.ClassOf(err))
				continue
			}
			taken = append(taken, e)
			switch e.(type) {
			case journal.Answered:
				require.Contains(t, []journal.Act{journal.Ask, journal.End}, step.Act, "an answer comes only where one may be asked for")
			case journal.Sent:
				require.NotEqual(t, journal.Ask, step.Act)
			}
		}
		var replayed journal.Journal
		for _, e := range taken {
			require.NoError(t, replayed.Apply(e))
		}
		require.Equal(t, j, replayed)
		require.Equal(t, j.Next(limits), replayed.Next(limits))
	})
}

func TestNext(t *testing.T) {
	t.Parallel()
	limits := journal.Limits{MaxRounds: 3, IdenticalCalls: 3}
	silent := journal.Round{Stop: journal.StopEnd}
	for name, c := range map[string]struct {
		rounds []journal.Round
		want   journal.Step
	}{
		"asks first":                    {nil, journal.Step{Act: journal.Ask}},
		"reminds twice":                 {[]journal.Round{silent, silent}, journal.Step{Act: journal.Ask}},
		"ends a refusal":                {[]journal.Round{{Stop: journal.StopRefusal}}, journal.Step{Act: journal.End, Kind: journal.KindRefused}},
		"ends a full context":           {[]journal.Round{{Stop: journal.StopContext}}, journal.Step{Act: journal.End, Kind: journal.KindContextFull}},
		"ends an answer cut short":      {[]journal.Round{{Stop: journal.StopLength}}, journal.Step{Act: journal.End, Kind: journal.KindLength}},
		"ends when all rounds are used": {[]journal.Round{silent, silent, silent}, journal.Step{Act: journal.End, Kind: journal.KindMaxRounds}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var j journal.Journal
			for i, r := range c.rounds {
				r.Number = i + 1
				require.NoError(t, j.Apply(journal.Answered{Round: r}))
			}
			require.Equal(t, c.want, j.Next(limits))
		})
	}

	t.Run("three silent rounds end a turn that has rounds left", func(t *testing.T) {
		t.Parallel()
		var j journal.Journal
		for i := range 3 {
			require.NoError(t, j.Apply(journal.Answered{Round: journal.Round{Number: i + 1, Stop: journal.StopEnd}}))
		}
		require.Equal(t, journal.KindNotSubmitted, j.Next(journal.Limits{MaxRounds: 9, IdenticalCalls: 3}).Kind)
	})
}

func TestLoopGuard(t *testing.T) {
	t.Parallel()
	limits := journal.Limits{MaxRounds: 20, IdenticalCalls: 3}
	var j journal.Journal
	made := func(tool, args string) journal.Step {
		t.Helper()
		require.NoError(t, j.Apply(journal.Answered{Round: journal.Round{
			Number: len(j.Rounds) + 1, Stop: journal.StopCalls, Calls: []journal.Call{{Tool: tool, Args: args}},
		}}))
		step := j.Next(limits)
		require.NoError(t, j.Apply(journal.Settled{State: journal.Failed, Result: journal.Result{Text: "x"}}))
		return step
	}
	dispatch := journal.Step{Act: journal.Dispatch}
	require.Equal(t, dispatch, made("a", `{"x":1,"y":2}`))
	require.Equal(t, dispatch, made("a", `{"y":2, "x":1}`))
	require.Equal(t, dispatch, made("b", `{"x":1,"y":2}`), "a different call resets")
	for range 3 {
		require.Equal(t, dispatch, made("a", `{"x":1,"y":2}`))
	}
	require.Equal(t, journal.Step{Act: journal.Dispatch, Looped: 3}, made("a", `{"x":1,"y":2}`))
	require.Equal(t, journal.Step{Act: journal.End, Kind: journal.KindToolLoop}, made("a", `{"x":1,"y":2}`))
	require.Equal(t, dispatch, made("a", `{"x":1.0,"y":2}`), "numbers are told apart as they are written")
}

func TestOperationID(t *testing.T) {
	t.Parallel()
	var earlier []journal.Call
	make := func(tool, args string) string {
		id := journal.OperationID("work", tool, args, earlier)
		earlier = append(earlier, journal.Call{Tool: tool, Args: args})
		return id
	}
	a, again := make("t", `{"x":1}`), make("t", `{ "x": 1 }`)
	require.Equal(t, a, again, "the same call again is the same write")
	b := make("t", `{"x":2}`)
	back := make("t", `{"x":1}`)
	require.NotEqual(t, a, b)
	require.NotEqual(t, a, back, "A, B, A are three writes")
	require.Equal(t, back, make("t", `{"x":1}`))
	require.NotEqual(t, a, journal.OperationID("other work", "t", `{"x":1}`, nil))
	require.Equal(t, a, journal.OperationID("work", "t", `{"x":1}`, []journal.Call{{Tool: "u", Args: `{}`}}), "other tools do not count")
	require.Regexp(t, `^t-[0-9a-f]{64}$`, a)
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		`{"b": 1.50, "a": {"d":[1, 2],"c":null}}`: `{"a":{"c":null,"d":[1,2]},"b":1.50}`,
		`{"n":9007199254740993}`:                  `{"n":9007199254740993}`,
		`{"h":"<&>"}`:                             `{"h":"<&>"}`,
		`{"broken`:                                `{"broken`,
		`{} {}`:                                   `{} {}`,
		``:                                        ``,
	} {
		require.Equal(t, want, journal.Canonical(written))
	}
}
