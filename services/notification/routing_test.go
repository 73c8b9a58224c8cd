package notification_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/doubles/githubdouble"
	"github.com/bullpenhq/bullpen/doubles/signed"
	"github.com/bullpenhq/bullpen/doubles/slackdouble"
	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
)

func TestGitHubWakesWhoIsMeant(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happen []githubdouble.Happening
		want   []string
		key    string
	}{
		"a comment that calls two": {
			happen: []githubdouble.Happening{{Body: "@quill and @SAGE, look", Number: 3}},
			want:   []string{"quill mention tool", "sage mention tool"}, key: "github:acme/shop#3",
		},
		"a team is its unit's lead": {
			happen: []githubdouble.Happening{{Body: "@acme/writing look"}}, want: []string{"sage mention tool"}, key: "github:acme/shop#1",
		},
		"an assignee listens": {
			happen: []githubdouble.Happening{{Body: "any news?", Assignees: []string{"Quill"}}},
			want:   []string{"quill thread none"}, key: "github:acme/shop#1",
		},
		"an assignee who is called owes an answer": {
			happen: []githubdouble.Happening{{Body: "any news @quill?", Assignees: []string{"quill"}}},
			want:   []string{"quill mention tool"}, key: "github:acme/shop#1",
		},
		"who was called before listens on": {
			happen: []githubdouble.Happening{{Body: "@quill look", ID: 1}, {Body: "and hurry", ID: 2}},
			want:   []string{"quill mention tool", "quill thread none"}, key: "github:acme/shop#1",
		},
		"an issue that calls":  {happen: []githubdouble.Happening{{Kind: "issue_opened", Body: "@quill"}}, want: []string{"quill mention tool"}, key: "github:acme/shop#1"},
		"an assignment":        {happen: []githubdouble.Happening{{Kind: "issue_assigned", Target: "quill"}}, want: []string{"quill assigned tool"}, key: "github:acme/shop#1"},
		"a review requested":   {happen: []githubdouble.Happening{{Kind: "review_requested", Target: "quill"}}, want: []string{"quill review_requested tool"}, key: "github:acme/shop#1"},
		"a pull request opens": {happen: []githubdouble.Happening{{Kind: "pull_request_opened", Body: "@quill"}}, want: []string{"quill mention tool"}, key: "github:acme/shop#1"},
		"changes are asked for": {
			happen: []githubdouble.Happening{{Kind: "review", Author: "quill", State: "changes_requested"}},
			want:   []string{"quill review tool"}, key: "github:acme/shop#1",
		},
		"an approval asks for nothing": {
			happen: []githubdouble.Happening{{Kind: "review", Author: "quill", State: "approved"}},
			want:   []string{"quill review none"}, key: "github:acme/shop#1",
		},
		"a review comment has its own thread": {
			happen: []githubdouble.Happening{{Kind: "review_comment", Body: "@quill why?", ID: 77, InReplyTo: 55, Number: 4}},
			want:   []string{"quill mention tool"}, key: "github:acme/shop#4/review-55",
		},
		"a failed check is told to who started it": {
			happen: []githubdouble.Happening{{Kind: "workflow_failed", Sender: "quill", Number: 4}},
			want:   []string{"quill check_failed none"}, key: "github:acme/shop#4",
		},
		"a seat may call another": {
			happen: []githubdouble.Happening{{Body: "@sage your turn", Sender: "quill"}}, want: []string{"sage mention tool"}, key: "github:acme/shop#1",
		},
		"nobody calls themselves": {happen: []githubdouble.Happening{{Body: "I, @quill, did it", Sender: "quill"}}, want: []string{}},
		"a stranger is nobody":    {happen: []githubdouble.Happening{{Body: "@omar look"}}, want: []string{}},
		"a person gets no mail":   {happen: []githubdouble.Happening{{Body: "@ines-h look"}}, want: []string{}},
		"an edit that calls anew": {
			happen: []githubdouble.Happening{{Body: "@quill look"}, {PreviousBody: "@quill look", Body: "@quill @sage look"}},
			want:   []string{"quill mention tool", "sage mention tool"}, key: "github:acme/shop#1",
		},
		"an edit that calls nobody new": {
			happen: []githubdouble.Happening{{Body: "@quill look"}, {PreviousBody: "@quill look", Body: "@quill look!"}},
			want:   []string{"quill mention tool"}, key: "github:acme/shop#1",
		},
		"an edit that takes a name out and in again": {
			happen: []githubdouble.Happening{{Body: "@quill look"}, {PreviousBody: "look", Body: "@quill look"}},
			want:   []string{"quill mention tool"}, key: "github:acme/shop#1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			for i, h := range c.happen {
				hook := githubdouble.Webhook(githubdouble.Envelope{Secret: githubSecret, DeliveryID: fmt.Sprint("d", i)}, h)
				status, body := w.send(t, "/webhooks/github", hook)
				require.Equal(t, http.StatusOK, status, body)
			}
			got := w.deliveries(t)
			require.Equal(t, c.want, told(got))
			if c.key != "" {
				require.Equal(t, c.key, got[0].GetConversationKey())
			}
		})
	}
}

func TestSlackWakesWhoIsMeant(t *testing.T) {
	t.Parallel()
	const (
		root  = "1700000000.000100"
		later = "1700000060.000200"
		last  = "1700000120.000300"
	)
	for name, c := range map[string]struct {
		happen []slackdouble.Happening
		want   []string
		key    string
	}{
		"a mention":        {happen: []slackdouble.Happening{{Text: "<@U0QUILL> hi", TS: root}}, want: []string{"quill mention tool"}, key: root},
		"a direct message": {happen: []slackdouble.Happening{{Type: "im", Text: "hi", TS: root}}, want: []string{"quill direct_message tool"}, key: root},
		"a mention and its twin are one": {
			happen: []slackdouble.Happening{
				{Text: "<@U0QUILL> hi", TS: root, EventID: "Ev1"}, {Type: "message", Text: "<@U0QUILL> hi", TS: root, EventID: "Ev2"},
			},
			want: []string{"quill mention tool"}, key: root,
		},
		"a message that calls nobody": {happen: []slackdouble.Happening{{Type: "message", Text: "hi", TS: root}}, want: []string{}},
		"a thread that is not followed": {
			happen: []slackdouble.Happening{{Type: "message", Text: "hi", TS: later, ThreadTS: root}}, want: []string{},
		},
		"a thread that is followed": {
			happen: []slackdouble.Happening{
				{Text: "<@U0QUILL> hi", TS: later, ThreadTS: root}, {Type: "message", Text: "and?", TS: last, ThreadTS: root},
			},
			want: []string{"quill mention tool", "quill thread none"}, key: root,
		},
		"a mention in blocks only": {
			happen: []slackdouble.Happening{{
				Type: "message", Text: "hi", TS: root,
				Blocks: json.RawMessage(`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"user","user_id":"U0QUILL"}]}]}]`),
			}},
			want: []string{"quill mention tool"}, key: root,
		},
		"an edit that calls": {
			happen: []slackdouble.Happening{{Type: "message_changed", PreviousText: "hi", Text: "<@U0QUILL> hi", TS: root, EditedTS: later}},
			want:   []string{"quill mention tool"}, key: root,
		},
		"an edit of what has called before": {
			happen: []slackdouble.Happening{
				{Text: "<@U0QUILL> hi", TS: root},
				{Type: "message_changed", PreviousText: "<@U0QUILL> hi", Text: "<@U0QUILL> hi!", TS: root, EditedTS: later},
				{Text: "<@U0QUILL> hi!", TS: root, EditedTS: later, EventID: "EvMentionAgain"},
			},
			want: []string{"quill mention tool"}, key: root,
		},
		"a link that unfolds": {
			happen: []slackdouble.Happening{{Type: "message_changed", PreviousText: "hi", Text: "hi", TS: root}}, want: []string{},
		},
		"an own message": {
			happen: []slackdouble.Happening{
				{Type: "message", Text: "<@U0QUILL> me", TS: root, User: "U0QUILL", FromBot: "B0QUILL"},
				{Type: "message", Text: "<@U0QUILL> me", TS: later, FromBot: "B0OTHER", FromApp: "A0QUILL"},
				{Type: "im", Text: "me", TS: last, User: "U0QUILL"},
			},
			want: []string{},
		},
		"another seat's message": {
			happen: []slackdouble.Happening{{Type: "message", Text: "<@U0QUILL> your turn", TS: root, User: "U0SAGE", FromBot: "B0SAGE", FromApp: "A0SAGE"}},
			want:   []string{"quill mention tool"}, key: root,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			for _, h := range c.happen {
				w.sendSlack(t, "quill", h)
			}
			got := w.deliveries(t)
			require.Equal(t, c.want, told(got), w.states(t))
			if c.key != "" {
				require.Contains(t, got[0].GetConversationKey(), "/"+c.key)
			}
		})
	}
}

func TestARepetitionIsAcknowledgedAndDropped(t *testing.T) {
	t.Parallel()
	w := setup(t)
	event := slackdouble.Event(slackSecret, time.Now(), slackdouble.Happening{Text: "<@U0QUILL> hi", BotUserID: "U0QUILL", AppID: "A0QUILL"})
	for i, hook := range []signed.Webhook{event, slackdouble.Retry(event, 1, "http_timeout"), slackdouble.Retry(event, 2, "http_timeout")} {
		status, body := w.send(t, "/webhooks/slack/quill", hook)
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, body, map[bool]string{true: "accepted", false: "duplicate"}[i == 0])
	}
	require.Len(t, w.deliveries(t), 1)
}

func TestTwoHooksThatTellOfOneCommentWakeOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, id := range []string{"1", "2"} {
		hook := githubdouble.Webhook(githubdouble.Envelope{Secret: githubSecret, DeliveryID: "same", HookID: id}, githubdouble.Happening{Body: "@quill"})
		_, body := w.send(t, "/webhooks/github", hook)
		require.Contains(t, body, "accepted")
	}
	require.Len(t, w.deliveries(t), 1)
	require.ElementsMatch(t, []string{"routed: ", "ignored: it wakes nobody here"}, w.states(t))
}

func TestOurOwnPostIsKnownByItsMarker(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.sendGithub(t, githubdouble.Happening{Body: "@quill @sage look"})
	require.Len(t, w.deliveries(t), 2)
	res, err := w.rpc.Reply(seat(t.Context(), "quill", "github:acme/shop#1", "op-1"), &notificationv1.ReplyRequest{Body: "I, @quill, did. @sage?"})
	require.NoError(t, err)
	posted := w.github.Comments()[0]

	// The account that posts has another name than the company document says.
	w.sendGithub(t, githubdouble.Happening{Body: posted.Body, Sender: "acme-writer", ID: posted.ID})
	got := w.deliveries(t)
	require.Equal(t, []string{"quill mention tool", "sage mention tool", "sage mention tool"}, told(got))
	require.Equal(t, "quill", got[2].GetSender().GetSeat())
	require.Equal(t, "I, @quill, did. @sage?", got[2].GetBody(), "the marker is not a part of what was said")

	// Somebody copies it whole: that is a message of their own.
	w.sendGithub(t, githubdouble.Happening{Body: posted.Body, Sender: "omar", ID: 4711})
	got = w.deliveries(t)
	require.Equal(t, []string{"quill mention tool", "sage mention tool"}, told(got[3:]))
	require.Empty(t, got[3].GetSender().GetSeat())
	require.NotEmpty(t, res.GetMessageId())
}

func TestProgramsCannotWakeASeatWithoutEnd(t *testing.T) {
	t.Parallel()
	w := setup(t, withWakes(3))
	say := func(sender string, n int) {
		for i := range n {
			w.sendGithub(t, githubdouble.Happening{Body: "@quill again", Sender: sender, ID: int64(i) + 1 + int64(len(sender))*1000})
		}
	}
	say("builder[bot]", 5)
	require.Len(t, w.deliveries(t), 3)
	say("sage", 2)
	require.Len(t, w.deliveries(t), 3, "an agent is a program too")
	say("ines-h", 2)
	require.Len(t, w.deliveries(t), 5, "people are always heard")

	var decisions string
	require.NoError(t, w.pool.QueryRow(t.Context(), `select decisions::text from webhooks where id = (select max(id) from webhooks where state = 'ignored')`).Scan(&decisions))
	require.Contains(t, decisions, "programs have woken this seat too often")
}

func TestWhyNobodyWasWokenIsKept(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.sendGithub(t, githubdouble.Happening{Kind: "ping"})
	w.sendGithub(t, githubdouble.Happening{Body: "@ines-h and @omar", ID: 5})
	require.Equal(t, []string{"ignored: events of this kind wake nobody", "ignored: it wakes nobody here"}, w.states(t))
	var decisions string
	require.NoError(t, w.pool.QueryRow(t.Context(), `select decisions::text from webhooks order by id desc limit 1`).Scan(&decisions))
	require.JSONEq(t, `[
		{"seat": "ines", "outcome": "skipped", "reason": "a person's seat gets no deliveries"},
		{"name": "omar", "outcome": "skipped", "reason": "no seat has this account"}]`, decisions)
}

func TestAConversationKeepsItsOrder(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.deps.Node = "node-2"
	w.start(t) // a replica routes beside
	const n = 150
	for i := range n {
		w.sendGithub(t, githubdouble.Happening{Body: fmt.Sprintf("@quill %d", i), ID: int64(i + 1)})
	}
	got := w.deliveries(t)
	require.Len(t, got, n)
	for i, d := range got {
		require.Equal(t, fmt.Sprintf("@quill %d", i), d.GetBody())
	}
}

func TestWebhooksThatWaitedForACompanyAreRoutedWhenThereIsOne(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.stop()
	_, err := w.pool.Exec(t.Context(), `
		insert into webhooks (source, endpoint, delivery, event, form, body, lane)
		values ('github', 'hook-1', 'd', 'issue_comment', false, $1, 0)`,
		githubdouble.Webhook(githubdouble.Envelope{Secret: githubSecret}, githubdouble.Happening{Body: "@quill hi"}).Body)
	require.NoError(t, err)
	w.start(t)
	require.Equal(t, []string{"quill mention tool"}, told(w.deliveries(t)))
}
