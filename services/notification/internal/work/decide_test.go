package work_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/services/notification/internal/work"
)

var (
	now   = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	renew = work.Item{ID: uuid.UUID{1}, Key: "OPS-1", Title: "Renew"}
	ship  = work.Item{ID: uuid.UUID{2}, Key: "OPS-2", Title: "Ship"}
)

// office is a company of the agents ops and dev and lea, and the persons ines and wim.
func office(handle string) (work.Seat, bool) {
	seats := map[string]work.Seat{
		"ops": {Name: "Operations", Agent: true}, "dev": {Name: "Developer", Agent: true}, "lea": {Name: "Lead", Agent: true},
		"ines": {Name: "Ines Prado"}, "wim": {Name: "Wim"},
	}
	seat, ok := seats[handle]
	return seat, ok
}

func telling() work.Telling { return work.Telling{Seats: office, MaxWakes: 3, At: now} }

// change is one that an actor makes of the item.
func change(actorKind, actor string, concerns ...work.Concern) *work.Change {
	c := &work.Change{
		Position: "tracker@1:7", Epoch: 1, Sequence: 7, Kind: "comment", Item: renew, Actor: actor, ActorKind: actorKind, At: now, Concerns: concerns,
	}
	if actorKind == "operator" {
		c.Actor, c.Token = "", actor
	}
	return c
}

func concern(handle, reason string) work.Concern { return work.Concern{Handle: handle, Reason: reason} }

func owed(handle, reason string) work.Concern {
	return work.Concern{Handle: handle, Reason: reason, Addressed: true}
}

// told is an outcome as `handle reason outcome: detail`.
func told(o work.Outcome) []string {
	list := []string{}
	for _, d := range o.Decisions {
		line := d.Handle + " " + d.Reason + " " + d.Outcome
		if d.Detail != "" {
			line += ": " + d.Detail
		}
		list = append(list, line)
	}
	return list
}

func TestWhomAChangeIsToldTo(t *testing.T) {
	t.Parallel()
	aboutShip := func(c work.Concern) work.Concern {
		c.About = &ship
		return c
	}
	for name, c := range map[string]struct {
		change *work.Change
		muted  []string
		wakes  int
		state  string
		want   []string
	}{
		"a person gets a notice, an agent a delivery": {
			change: change("human", "wim", concern("ines", "watcher"), concern("ops", "watcher")), state: work.Told,
			want: []string{"ines watcher noticed", "ops watcher delivered"},
		},
		"everybody is told once, by the strongest reason": {
			change: change("human", "wim", concern("ines", "watcher"), concern("ines", "reporter"), owed("ines", "mention")), state: work.Told,
			want: []string{"ines mention noticed"},
		},
		"a change that concerns nobody is told to nobody": {
			change: change("human", "wim"), state: work.Nobody, want: []string{},
		},
		"the actor is not told of their own act": {
			change: change("human", "ines", owed("ines", "assignee"), concern("ines", "watcher")), state: work.Quiet,
			want: []string{"ines assignee skipped: it is their own doing"},
		},
		"the actor is not told under the name of their token either": {
			change: change("operator", "ines", concern("ines", "reporter")), state: work.Quiet,
			want: []string{"ines reporter skipped: it is their own doing"},
		},
		"the actor is told of another item of theirs that the change freed": {
			change: change("agent", "ops", aboutShip(concern("ops", "unblocked")), owed("ops", "assignee")), state: work.Told,
			want: []string{"ops unblocked delivered"},
		},
		"who muted the item hears nothing": {
			change: change("human", "wim", concern("ines", "watcher")), muted: []string{"ines"}, state: work.Quiet,
			want: []string{"ines watcher skipped: they want to hear nothing of the item, and nothing is owed"},
		},
		"who muted the item hears what they owe": {
			change: change("human", "wim", owed("ines", "asked")), muted: []string{"ines"}, state: work.Told,
			want: []string{"ines asked noticed"},
		},
		"a seat that is gone by then is skipped": {
			change: change("human", "wim", owed("tom", "mention")), state: work.Quiet,
			want: []string{"tom mention skipped: they are not in the company any more"},
		},
		"the lead stands in when nobody else hears": {
			change: change("human", "wim", concern("wim", "assignee"), concern("ines", "lead_fallback"), concern("lea", "lead_fallback")), state: work.Told,
			want: []string{
				"wim assignee skipped: it is their own doing", "ines lead_fallback noticed", "lea lead_fallback skipped: somebody else hears of it",
			},
		},
		"the project's lead stands in when the routing unit's is gone": {
			change: change("human", "wim", concern("tom", "lead_fallback"), concern("ines", "lead_fallback")), state: work.Told,
			want: []string{"tom lead_fallback skipped: they are not in the company any more", "ines lead_fallback noticed"},
		},
		"the lead does not stand in when somebody else hears": {
			change: change("human", "wim", concern("ops", "watcher"), concern("ines", "lead_fallback")), state: work.Told,
			want: []string{"ops watcher delivered", "ines lead_fallback skipped: somebody else hears of it"},
		},
		"a lead who hears anyway does not stand in": {
			change: change("human", "wim", concern("ines", "watcher"), concern("ines", "lead_fallback")), state: work.Told,
			want: []string{"ines watcher noticed"},
		},
		"the lead does not stand in for their own act": {
			change: change("human", "ines", concern("ines", "lead_fallback")), state: work.Quiet,
			want: []string{"ines lead_fallback skipped: it is their own doing"},
		},
		"being unwatched is told to persons only": {
			change: change("human", "wim", concern("ines", "unwatched"), concern("ops", "unwatched")), state: work.Told,
			want: []string{"ines unwatched noticed", "ops unwatched skipped: only persons are told of this"},
		},
		"a colleague's remark wakes no agent that only listens": {
			change: change("agent", "dev", concern("ops", "watcher"), concern("ines", "watcher")), state: work.Told,
			want: []string{
				"ops watcher skipped: a program did it and nothing is owed: an agent reads of it when it next works on the item", "ines watcher noticed",
			},
		},
		"what a colleague owes an answer to wakes it": {
			change: change("agent", "dev", concern("ops", "watcher"), owed("ops", "mention")), state: work.Told,
			want: []string{"ops mention delivered"},
		},
		"a colleague's finish wakes who filed the item": {
			change: change("agent", "dev", concern("ops", "reporter"), concern("ops", "watcher")), state: work.Told,
			want: []string{"ops reporter delivered"},
		},
		"agents that wake each other too often are stopped": {
			change: change("agent", "dev", owed("ops", "mention")), wakes: 3, state: work.Quiet,
			want: []string{"ops mention skipped: programs have woken this seat too often in this conversation"},
		},
		"a person may wake an agent as often as they like": {
			change: change("human", "wim", owed("ops", "mention")), wakes: 3, state: work.Told, want: []string{"ops mention delivered"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.change.Muted = c.muted
			how := telling()
			how.Wakes = work.Wakes{{Seat: "ops", Conversation: work.Conversation(renew.ID)}: c.wakes}
			o := work.Decide(c.change, how)
			require.Equal(t, c.want, told(o))
			require.Equal(t, c.state, o.State)
			require.Equal(t, o.State == work.Told, o.Why == "", "who is told nothing is told why")
		})
	}
}

func TestADeliveryLeadsToTheItem(t *testing.T) {
	t.Parallel()
	c := change("human", "ines", owed("ops", "mention"))
	d := work.Decide(c, telling()).Deliveries[0]
	require.Equal(t, "tracker:01000000-0000-0000-0000-000000000000", d.ConversationKey)
	require.Equal(t, []string{"tracker", "work", "tool", "mention"}, []string{d.Source, d.Surface, d.Obligation, d.Reason})
	require.Equal(t, "OPS-1 Renew", d.Subject)
	require.Equal(t, []string{"tracker@1:7", "tracker@1:7"}, []string{d.MessageID, d.Position})
	require.Equal(t, "Ines Prado", d.Sender.Name)
	require.Equal(t, "ines", d.Sender.Seat)
	require.False(t, d.Sender.Machine())
	again := work.Decide(c, telling()).Deliveries[0]
	require.Equal(t, d.ID, again.ID, "the same change is the same delivery")
}

func TestWorkThatWasGivenMayBeDeliveredAnywhere(t *testing.T) {
	t.Parallel()
	c := change("human", "ines", owed("ops", "assignee"))
	require.Equal(t, "work", work.Decide(c, telling()).Deliveries[0].Surface, "a comment is answered on the item")
	c.Kind = "created"
	d := work.Decide(c, telling()).Deliveries[0]
	require.Equal(t, []string{"tool", ""}, []string{d.Obligation, d.Surface})
}

func TestWhatIsAboutAnotherItemIsToldThere(t *testing.T) {
	t.Parallel()
	freed := concern("ops", "unblocked")
	freed.About = &ship
	person := freed
	person.Handle = "ines"
	o := work.Decide(change("human", "wim", freed, person), telling())
	require.Equal(t, work.Conversation(ship.ID), o.Deliveries[0].ConversationKey)
	require.Equal(t, "OPS-2 Ship", o.Deliveries[0].Subject)
	require.Equal(t, "none", o.Deliveries[0].Obligation)
	require.Contains(t, o.Deliveries[0].Body, "It happened on OPS-1 Renew.")
	require.Equal(t, ship, o.Notices[0].Item)
}

func TestAnAnswerThatWasPromisedElsewhereIsOwedThereAndAlone(t *testing.T) {
	t.Parallel()
	c := concern("ops", "answered")
	c.OwesSurface, c.OwesChannel = "slack", "#shop"
	d := work.Decide(change("human", "ines", c), telling()).Deliveries[0]
	require.Equal(t, []string{"tool", "slack"}, []string{d.Obligation, d.Surface})
	require.Equal(t, work.Conversation(renew.ID)+"/tracker@1:7", d.ConversationKey, "no other wake is merged with it")
	require.Contains(t, d.Body, "You promised to say what was decided on slack, in #shop.")
}

func TestANoticeHasEveryReason(t *testing.T) {
	t.Parallel()
	o := work.Decide(change("human", "wim", concern("ines", "watcher"), concern("ines", "reporter"), owed("ines", "asked"), concern("ines", "watcher")), telling())
	require.Equal(t, []string{"asked", "reporter", "watcher"}, o.Notices[0].Reasons)
}

func TestTheOrderOfReasonsIsTotal(t *testing.T) {
	t.Parallel()
	order := work.Reasons()
	require.Len(t, order, 18)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(order))), 18, "each stands once")
	before := func(stronger, weaker string) {
		require.Less(t, slices.Index(order, stronger), slices.Index(order, weaker), "%s before %s", stronger, weaker)
	}
	for _, toYou := range []string{"mention", "asked", "answered", "blocking"} {
		before(toYou, "assignee")
	}
	before("assignee", "reporter")
	before("reporter", "collaborator")
	before("reporter", "watcher")
	before("collaborator", "lead_fallback")
	before("watcher", "lead_fallback")
}

// Whatever concerns whom: nobody is told twice, everybody whom it concerns has a decision, who is told is in the company and not the
// actor, and the lead stands in for nobody who hears.
func TestEverybodyIsToldAtMostOnce(t *testing.T) {
	t.Parallel()
	handles := rapid.SampledFrom([]string{"ops", "dev", "lea", "ines", "wim", "tom"})
	rapid.Check(t, func(t *rapid.T) {
		concerns := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) work.Concern {
			c := work.Concern{
				Handle: handles.Draw(t, "handle"), Reason: rapid.SampledFrom(work.Reasons()).Draw(t, "reason"), Addressed: rapid.Bool().Draw(t, "owed"),
			}
			if c.Reason == "unblocked" {
				c.About = &ship
			}
			return c
		}), 0, 8).Draw(t, "concerns")
		actor := handles.Draw(t, "actor")
		c := change(rapid.SampledFrom([]string{"agent", "human"}).Draw(t, "kind"), actor, concerns...)
		c.Muted = rapid.SliceOfN(handles, 0, 3).Draw(t, "muted")
		o := work.Decide(c, telling())
		decided := map[string]work.Decision{}
		for _, d := range o.Decisions {
			require.NotContains(t, decided, d.Handle)
			decided[d.Handle] = d
		}
		for _, one := range concerns {
			require.Contains(t, decided, one.Handle)
		}
		heard := 0
		for handle, d := range decided {
			if d.Outcome == work.Skipped {
				require.NotEmpty(t, d.Detail)
				continue
			}
			heard++
			seat, there := office(handle)
			require.True(t, there)
			require.Equal(t, seat.Agent, d.Outcome == work.Delivered)
			require.True(t, handle != actor || d.Reason == "unblocked", fmt.Sprint(handle, " hears of their own ", d.Reason))
		}
		require.Equal(t, heard, len(o.Notices)+len(o.Deliveries))
		require.Equal(t, heard > 0, o.State == work.Told)
		for handle, d := range decided {
			if d.Reason == "lead_fallback" && d.Outcome != work.Skipped {
				require.Equal(t, 1, heard, "%s stands in although others hear", handle)
			}
		}
	})
}
