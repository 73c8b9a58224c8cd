package mailbox_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/turn/internal/mailbox"
)

// legal is the picture of the package comment, as a table.
var legal = map[mailbox.State]map[string][]mailbox.State{
	mailbox.Ready:   {"claim": {mailbox.Running}, "hold": {mailbox.Held}},
	mailbox.Held:    {"claim": {mailbox.Running}, "hold": {mailbox.Held}, "release": {mailbox.Ready}},
	mailbox.Running: {"finish": {mailbox.Done}, "retry": {mailbox.Ready, mailbox.Dead}, "wait": {mailbox.Ready}},
	mailbox.Dead:    {"redrive": {mailbox.Ready}},
	mailbox.Done:    {},
}

func move(m *mailbox.Mail, verb string, now time.Time) error {
	switch verb {
	case "claim":
		return m.Claim("turn")
	case "finish":
		return m.Finish()
	case "retry":
		return m.Retry("broken", now)
	case "wait":
		return m.Wait("later", now.Add(time.Second))
	case "hold":
		return m.Hold("no model")
	case "release":
		return m.Release()
	default:
		return m.Redrive(now)
	}
}

func TestNoIllegalStateIsReachable(t *testing.T) {
	t.Parallel()
	verbs := []string{"claim", "finish", "retry", "wait", "hold", "release", "redrive"}
	rapid.Check(t, func(t *rapid.T) {
		m := mailbox.Mail{State: mailbox.Ready}
		var done []string
		for _, verb := range rapid.SliceOfN(rapid.SampledFrom(verbs), 0, 80).Draw(t, "verbs") {
			before := m
			err := move(&m, verb, time.Unix(1000, 0))
			allowed, ok := legal[before.State][verb]
			if !ok {
				require.Equal(t, fault.Conflict, fault.ClassOf(err))
				require.Equal(t, before, m, "a refused move changes nothing")
				continue
			}
			require.NoError(t, err)
			require.Contains(t, allowed, m.State)
			require.LessOrEqual(t, m.Attempts, int32(mailbox.MaxAttempts))
			require.Equal(t, m.State == mailbox.Dead, m.Attempts >= mailbox.MaxAttempts)
			done = append(done, verb)
		}
		replayed := mailbox.Mail{State: mailbox.Ready}
		for _, verb := range done {
			require.NoError(t, move(&replayed, verb, time.Unix(1000, 0)))
		}
		require.Equal(t, m, replayed, "replaying what happened gives what is")
	})
}

func TestBackoffGrowsFromOneToThirtySeconds(t *testing.T) {
	t.Parallel()
	var waits []string
	for attempts := range int32(7) {
		waits = append(waits, mailbox.Backoff(attempts+1).String())
	}
	require.Equal(t, []string{"1s", "2s", "4s", "8s", "16s", "30s", "30s"}, waits)
	require.Equal(t, 30*time.Second, mailbox.Backoff(mailbox.MaxAttempts))
}

func at(n int, conversation string) mailbox.Mail {
	when := time.Unix(int64(1000+n), 0)
	return mailbox.Mail{
		DeliveryID: fmt.Sprint(n), ConversationKey: conversation, ReceiveAt: when, OccurAt: when, Body: fmt.Sprintf("body %d", n),
		Obligation: "none", Sender: mailbox.Sender{ID: "U1", Name: "Ines"}, Source: "slack",
	}
}

func ids(mail []mailbox.Mail) (all []string) {
	for _, m := range mail {
		all = append(all, m.DeliveryID)
	}
	return all
}

func TestPick(t *testing.T) {
	t.Parallel()
	now := time.Unix(2000, 0)

	t.Run("takes the conversation that has waited longest, and only its mail", func(t *testing.T) {
		t.Parallel()
		picked, wait := mailbox.Pick([]mailbox.Mail{at(1, "a"), at(2, "b"), at(3, "a")}, mailbox.Batch{}, now)
		require.Equal(t, []string{"1", "3"}, ids(picked))
		require.Zero(t, wait)
	})

	t.Run("takes no more than the batch", func(t *testing.T) {
		t.Parallel()
		picked, _ := mailbox.Pick([]mailbox.Mail{at(1, "a"), at(2, "a"), at(3, "a")}, mailbox.Batch{Max: 2}, now)
		require.Equal(t, []string{"1", "2"}, ids(picked))
	})

	t.Run("passes over what may still grow, and says for how long", func(t *testing.T) {
		t.Parallel()
		growing, still := at(1, "a"), at(2, "b")
		growing.ReceiveAt = now.Add(-time.Second)
		still.ReceiveAt = now.Add(-time.Minute)
		picked, _ := mailbox.Pick([]mailbox.Mail{growing, still}, mailbox.Batch{Window: 3 * time.Second}, now)
		require.Equal(t, []string{"2"}, ids(picked))
		picked, wait := mailbox.Pick([]mailbox.Mail{growing}, mailbox.Batch{Window: 3 * time.Second}, now)
		require.Empty(t, picked)
		require.Equal(t, 2*time.Second, wait)
	})

	t.Run("tries what failed together again, without what came later", func(t *testing.T) {
		t.Parallel()
		one, two := at(1, "a"), at(2, "a")
		one.TurnID, two.TurnID = "t", "t"
		picked, _ := mailbox.Pick([]mailbox.Mail{one, two, at(3, "a")}, mailbox.Batch{Window: time.Hour}, now)
		require.Equal(t, []string{"1", "2"}, ids(picked))
	})
}

func TestMerge(t *testing.T) {
	t.Parallel()

	t.Run("keeps the newest in full after a digest of the others", func(t *testing.T) {
		t.Parallel()
		m := mailbox.Merge([]mailbox.Mail{at(1, "a"), at(2, "a"), at(3, "a")})
		require.Less(t, strings.Index(m.Text, "body 1"), strings.Index(m.Text, "body 2"))
		require.Less(t, strings.Index(m.Text, "The newest message"), strings.Index(m.Text, "body 3"))
		require.Equal(t, time.Unix(1001, 0), m.ReceiveAt)
	})

	t.Run("owes what the strongest owes, where that one asked", func(t *testing.T) {
		t.Parallel()
		asked := at(1, "a")
		asked.Obligation, asked.Surface, asked.Depth = "tool", "slack", 2
		m := mailbox.Merge([]mailbox.Mail{asked, at(2, "a")})
		require.Equal(t, []any{"tool", "slack", int32(2)}, []any{m.Obligation, m.Surface, m.Depth})
	})

	t.Run("owes an answer at the place that is named, when another may be answered anywhere", func(t *testing.T) {
		t.Parallel()
		given, asked := at(1, "a"), at(2, "a")
		given.Obligation, given.Surface = "tool", ""
		asked.Obligation, asked.Surface = "tool", "work"
		require.Equal(t, "work", mailbox.Merge([]mailbox.Mail{given, asked}).Surface)
		require.Equal(t, "work", mailbox.Merge([]mailbox.Mail{asked, given}).Surface)
	})

	t.Run("marks what the same sender repeats, and lets two people agree", func(t *testing.T) {
		t.Parallel()
		one, two, three := at(1, "a"), at(2, "a"), at(3, "a")
		one.Body, two.Body, three.Body = "+1", "+1", "+1"
		two.Sender = mailbox.Sender{ID: "U2", Name: "Bo"}
		m := mailbox.Merge([]mailbox.Mail{one, two, three})
		require.Equal(t, 2, strings.Count(m.Text, "+1"))
		require.Equal(t, 1, strings.Count(m.Text, "repeated word for word"))
	})
}

func TestWorkKeyIsOfTheSetAlone(t *testing.T) {
	t.Parallel()
	one, two := at(1, "a"), at(2, "a")
	require.Equal(t, mailbox.WorkKey([]mailbox.Mail{one, two}), mailbox.WorkKey([]mailbox.Mail{two, one}))
	require.NotEqual(t, mailbox.WorkKey([]mailbox.Mail{one}), mailbox.WorkKey([]mailbox.Mail{one, two}))
}
