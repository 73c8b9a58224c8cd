package notification_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/doubles/githubdouble"
	"github.com/bullpenhq/bullpen/doubles/mishap"
	"github.com/bullpenhq/bullpen/doubles/slackdouble"
	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/notification"
)

const (
	issueKey  = "github:acme/shop#1"
	threadKey = "slack:T0ACME/C1/1700000000.000100"
)

// asked is a world in which quill was asked on both surfaces.
func asked(t *testing.T, options ...option) *world {
	t.Helper()
	w := setup(t, options...)
	w.sendGithub(t, githubdouble.Happening{Body: "@quill hi"})
	w.sendSlack(t, "quill", slackdouble.Happening{Text: "<@U0QUILL> hi", TS: "1700000000.000100", Channel: "C1"})
	require.Len(t, w.deliveries(t), 2)
	return w
}

func (w *world) reply(ctx context.Context, conversation, operation, body string) (*notificationv1.ReplyResponse, error) {
	return w.rpc.Reply(seat(ctx, "quill", conversation, operation), &notificationv1.ReplyRequest{Body: body})
}

// queue begins a reply and waits until it is durable; nobody waits for its answer.
func (w *world) queue(t *testing.T, conversation, operation, body string) {
	t.Helper()
	count := func() (n int) {
		require.NoError(t, w.pool.QueryRow(t.Context(), `select count(*) from outbound`).Scan(&n))
		return n
	}
	before := count()
	go func() { _, _ = w.reply(t.Context(), conversation, operation, body) }()
	for count() == before {
		runtime.Gosched()
	}
}

// settled waits until every message is posted or failed.
func (w *world) settled(t testing.TB) []*notificationv1.OutboundMessage {
	t.Helper()
	require.Eventually(t, func() bool {
		var open int
		err := w.pool.QueryRow(t.Context(), `select count(*) from outbound where state not in ('posted', 'failed')`).Scan(&open)
		return err == nil && open == 0
	}, 20*time.Second, 10*time.Millisecond, "all messages are settled")
	res, err := w.rpc.ListOutbound(operator(t.Context()), &notificationv1.ListOutboundRequest{})
	require.NoError(t, err)
	return res.GetMessages()
}

// standing answers what seats have said at a vendor.
func (w *world) standing(surface string) []string {
	var texts []string
	if surface == "github" {
		for _, c := range w.github.Comments() {
			text, _, _ := strings.Cut(c.Body, "\n\n<!--")
			texts = append(texts, text)
		}
		return texts
	}
	for _, m := range w.slack.Posted() {
		texts = append(texts, m.Text)
	}
	return texts
}

func TestAReplyToAReviewStaysInItsThread(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.sendGithub(t, githubdouble.Happening{Kind: "review_comment", Body: "@quill why?", ID: 77, InReplyTo: 55, Number: 4})
	require.Len(t, w.deliveries(t), 1)
	w.github.Mishaps.Add("create", mishap.Cut(true)) // found again among the pull request's comments
	res, err := w.reply(t.Context(), "github:acme/shop#4/review-55", "op-1", "because")
	require.NoError(t, err)
	require.Equal(t, "applied", res.GetOutcome())
	require.Contains(t, res.GetUrl(), "pull/4#discussion_r")
	all := w.github.Comments()
	require.Len(t, all, 1)
	require.Equal(t, int64(55), all[0].InReplyTo)
}

// TestEveryFaultEndsWithOneMessage makes each fault happen to a post, and
// again to the search that follows where there is one.
func TestEveryFaultEndsWithOneMessage(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	shared := map[string][]mishap.Mishap{
		"a bad gateway, landed":         {mishap.Status(http.StatusBadGateway, true)},
		"a bad gateway, not landed":     {mishap.Status(http.StatusBadGateway, false)},
		"two failures in a row":         {mishap.Status(http.StatusInternalServerError, false), mishap.Status(http.StatusServiceUnavailable, true)},
		"a cut after landing":           {mishap.Cut(true)},
		"a cut before landing":          {mishap.Cut(false)},
		"a hang after landing":          {mishap.Hang(never, true)},
		"a hang before landing":         {mishap.Hang(never, false)},
		"a slow answer":                 {mishap.Slow(time.Millisecond)},
		"an answer too slow to be read": {mishap.Slow(300 * time.Millisecond)},
	}
	for surface, s := range map[string]struct {
		key, post, list string
		own             map[string][]mishap.Mishap
		queue           func(w *world) *mishap.Queue
	}{
		"github": {
			key: issueKey, post: "create", list: "list", queue: func(w *world) *mishap.Queue { return &w.github.Mishaps },
			own: map[string][]mishap.Mishap{
				"a secondary limit":   {githubdouble.SecondaryLimit(time.Second)},
				"a primary limit":     {githubdouble.PrimaryLimit(time.Now().Add(time.Second))},
				"a rate limit by 429": {githubdouble.RateLimited(time.Second)},
			},
		},
		"slack": {
			key: threadKey, post: "chat.postMessage", list: "conversations.replies", queue: func(w *world) *mishap.Queue { return &w.slack.Mishaps },
			own: map[string][]mishap.Mishap{
				"a rate limit":      {slackdouble.RateLimited(time.Second)},
				"an internal error": {slackdouble.Refused("internal_error")},
			},
		},
	} {
		for _, faults := range []map[string][]mishap.Mishap{shared, s.own} {
			for name, mishaps := range faults {
				t.Run(surface+", "+name, func(t *testing.T) {
					t.Parallel()
					w := asked(t)
					s.queue(w).Add(s.post, mishaps...)
					s.queue(w).Add(s.list, mishap.Status(http.StatusBadGateway, false), mishap.Cut(false))
					res, err := w.reply(t.Context(), s.key, "op-1", "the answer")
					require.NoError(t, err)
					require.Contains(t, []string{"applied", "pending"}, res.GetOutcome())
					all := w.settled(t)
					require.Len(t, all, 1)
					require.Equal(t, "posted", all[0].GetState())
					require.NotEmpty(t, all[0].GetUrl())
					require.Equal(t, []string{"the answer"}, w.standing(surface))

					// The seat repeats itself, as it is told to when in doubt.
					again, err := w.reply(t.Context(), s.key, "op-1", "the answer")
					require.NoError(t, err)
					require.Equal(t, "applied", again.GetOutcome())
					require.Equal(t, res.GetMessageId(), again.GetMessageId())
					require.Equal(t, []string{"the answer"}, w.standing(surface))
				})
			}
		}
	}
}

func TestALimitIsHonouredForTheWholeAccount(t *testing.T) {
	t.Parallel()
	w := asked(t)
	w.sendGithub(t, githubdouble.Happening{Body: "@quill and here", Number: 2, ID: 2})
	require.Len(t, w.deliveries(t), 3)
	begin := time.Now()
	w.github.Mishaps.Add("create", githubdouble.SecondaryLimit(2*time.Second))
	var replying sync.WaitGroup
	for number := range 2 {
		replying.Go(func() {
			_, err := w.reply(t.Context(), fmt.Sprintf("github:acme/shop#%d", number+1), fmt.Sprint("op-", number), "x")
			require.NoError(t, err)
		})
	}
	replying.Wait()
	require.GreaterOrEqual(t, time.Since(begin), 2*time.Second)
	require.Len(t, w.github.Comments(), 2)
	require.Equal(t, 3, w.github.Mishaps.Calls("create"), "nothing was tried before the time")
}

func TestAnswersOfAConversationKeepTheirOrder(t *testing.T) {
	t.Parallel()
	w := asked(t)
	w.slack.Mishaps.Add("chat.postMessage", mishap.Cut(false), mishap.Status(502, true))
	var want []string
	for i := range 8 {
		want = append(want, fmt.Sprint("answer ", i))
		w.queue(t, threadKey, fmt.Sprint("op-", i), want[i])
	}
	require.Len(t, w.settled(t), 8)
	require.Equal(t, want, w.standing("slack"))
}

func TestRefusalsOfTheVendorAreTheSeats(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arrange func(w *world)
		key     string
		class   fault.Class
		says    string
	}{
		"not in the channel":  {func(w *world) { w.slack.Expel("U0QUILL", "C1") }, threadKey, fault.Forbidden, "not_in_channel"},
		"a repository hidden": {func(w *world) { w.github.Hide("quill", "acme/shop") }, issueKey, fault.Forbidden, "may not see it"},
		"a token revoked": {func(w *world) {
			w.office.mu.Lock()
			defer w.office.mu.Unlock()
			w.office.values["${GH_quill}"] = "ghp_revoked"
		}, issueKey, fault.Unavailable, "operator has to renew"},
		"a Slack token revoked": {func(w *world) {
			w.slack.Mishaps.Add("chat.postMessage", slackdouble.Refused("token_revoked"))
		}, threadKey, fault.Unavailable, "token_revoked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := asked(t)
			c.arrange(w)
			_, err := w.reply(t.Context(), c.key, "op-1", "x")
			f := rpc.FromError(err)
			require.Equal(t, c.class, f.Class)
			require.Contains(t, f.Message, c.says)
			require.NotContains(t, f.Message, "ghp_")
			_, again := w.reply(t.Context(), c.key, "op-1", "x")
			require.Equal(t, c.class, rpc.FromError(again).Class)
			all := w.settled(t)
			require.Len(t, all, 1)
			require.Equal(t, "failed", all[0].GetState())
			require.Contains(t, all[0].GetDetail(), c.says)
		})
	}
}

func TestReplyRefusesWhatCannotBePosted(t *testing.T) {
	t.Parallel()
	w := asked(t)
	ampersands := strings.Repeat("&", 8_001) // five characters each in Slack's form
	for name, c := range map[string]struct {
		ctx   context.Context
		req   *notificationv1.ReplyRequest
		class fault.Class
		says  string
	}{
		"a stranger's conversation": {seat(t.Context(), "sage", issueKey, ""), &notificationv1.ReplyRequest{Body: "x"}, fault.Forbidden, "never addressed"},
		"a conversation by name":    {seat(t.Context(), "quill", issueKey, ""), &notificationv1.ReplyRequest{Body: "x", Conversation: "github:acme/other#1"}, fault.Forbidden, "never addressed"},
		"no conversation":           {seat(t.Context(), "quill", "", ""), &notificationv1.ReplyRequest{Body: "x"}, fault.Invalid, "nowhere to answer"},
		"a schedule's turn":         {seat(t.Context(), "quill", "event:1", ""), &notificationv1.ReplyRequest{Body: "x"}, fault.Invalid, "no conversation that can be answered"},
		"a discussion":              {seat(t.Context(), "quill", "github:acme/shop#9/discussion", ""), &notificationv1.ReplyRequest{Body: "x"}, fault.Invalid, "Discussions"},
		"too long for Slack":        {seat(t.Context(), "quill", threadKey, ""), &notificationv1.ReplyRequest{Body: ampersands}, fault.Invalid, "40000"},
		"too long for the tool":     {seat(t.Context(), "quill", issueKey, ""), &notificationv1.ReplyRequest{Body: strings.Repeat("x", 32_769)}, fault.Invalid, "32768"},
		"nothing to read":           {seat(t.Context(), "quill", issueKey, ""), &notificationv1.ReplyRequest{Body: " \n"}, fault.Invalid, "nothing in it"},
		"not a seat":                {operator(t.Context()), &notificationv1.ReplyRequest{Body: "x"}, fault.Forbidden, "seat"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := w.rpc.Reply(c.ctx, c.req)
			f := rpc.FromError(err)
			require.Equal(t, c.class, f.Class, f.Message)
			require.Contains(t, f.Message, c.says)
		})
	}
	t.Cleanup(func() {
		require.Empty(t, w.github.Comments())
		require.Empty(t, w.slack.Posted())
	})
}

func TestASeatThatDoesNotComeThroughTheDoorIsRefused(t *testing.T) {
	t.Parallel()
	w := asked(t)
	_, err := w.client("mcphost").Reply(seat(t.Context(), "quill", issueKey, ""), &notificationv1.ReplyRequest{Body: "x"})
	f := rpc.FromError(err)
	require.Equal(t, fault.Forbidden, f.Class)
	require.Contains(t, f.Message, "tool registry")
}

func TestTheSameOperationWithAnotherTextIsRefused(t *testing.T) {
	t.Parallel()
	w := asked(t)
	_, err := w.reply(t.Context(), issueKey, "op-1", "one")
	require.NoError(t, err)
	_, err = w.reply(t.Context(), issueKey, "op-1", "two")
	f := rpc.FromError(err)
	require.Equal(t, fault.Conflict, f.Class)
	require.Equal(t, "OPERATION_REUSED", f.Reason)
	require.Equal(t, []string{"one"}, w.standing("github"))
}

func TestAVendorThatIsSlowLeavesTheAnswerPending(t *testing.T) {
	t.Parallel()
	patient := quick()
	patient.Timeout, patient.Lease = 20*time.Second, 30*time.Second
	w := asked(t, withPosting(patient))
	release := make(chan struct{})
	w.slack.Mishaps.Add("chat.postMessage", mishap.Hang(release, false))
	res, err := w.reply(t.Context(), threadKey, "op-1", "x")
	require.NoError(t, err)
	require.Equal(t, "pending", res.GetOutcome())
	require.Equal(t, "slack", res.GetSurface())
	require.Regexp(t, `^notification@1:[0-9]+$`, res.GetPosition())
	close(release)
	require.Equal(t, "posted", w.settled(t)[0].GetState())
	require.Equal(t, []string{"x"}, w.standing("slack"))
}

// TestAWorkerThatDiedWhileSendingLeavesADoubt leaves rows as kill -9 does at
// either side of the call.
func TestAWorkerThatDiedWhileSendingLeavesADoubt(t *testing.T) {
	t.Parallel()
	for name, landed := range map[string]bool{"after it had landed": true, "before it was sent": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := asked(t)
			w.stop()
			id := uuid.Must(uuid.NewV7())
			_, err := w.pool.Exec(t.Context(), `
				insert into outbound_lanes (surface, seat, owner, fence, lease_until)
				values ('github', 'quill', 'dead', 7, now() + interval '300 milliseconds')`)
			require.NoError(t, err)
			_, err = w.pool.Exec(t.Context(), `
				insert into outbound (message_id, seat, surface, conversation_key, body, state, attempts, sent_at)
				values ($1, 'quill', 'github', $2, 'the answer', 'sending', 1, now())`, id, issueKey)
			require.NoError(t, err)
			if landed {
				w.github.Say("acme/shop", 1, "quill", "the answer\n\n<!-- bullpen:message:"+id.String()+" -->")
			}
			w.deps.Node = "node-2"
			w.start(t)
			require.Equal(t, "posted", w.settled(t)[0].GetState())
			require.Equal(t, []string{"the answer"}, w.standing("github"))
		})
	}
}

func TestSeveralProcessesPostEachAnswerOnce(t *testing.T) {
	t.Parallel()
	w := asked(t, withPosting(func() notification.Posting {
		p := quick()
		p.Lease, p.Timeout = 400*time.Millisecond, 200*time.Millisecond
		return p
	}()))
	for i := range 3 {
		w.deps.Node = fmt.Sprint("node-", i+2)
		w.start(t)
	}
	var want []string
	for i := range 30 {
		want = append(want, fmt.Sprint("answer ", i))
		if i%5 == 0 {
			w.github.Mishaps.Add("create", mishap.Cut(i%2 == 0))
		}
		w.queue(t, issueKey, fmt.Sprint("op-", i), want[i])
	}
	require.Len(t, w.settled(t), 30)
	require.Equal(t, want, w.standing("github"))
}

func TestDeadLettersAreListedAndRedriven(t *testing.T) {
	t.Parallel()
	w := setup(t)
	status, _ := w.send(t, githubPath, comment("broken", []byte(`{`)))
	require.Equal(t, http.StatusOK, status)
	w.routed(t)
	ctx := operator(t.Context())
	list, err := w.rpc.ListDeadLetters(ctx, &notificationv1.ListDeadLettersRequest{})
	require.NoError(t, err)
	require.Len(t, list.GetDeadLetters(), 1)
	letter := list.GetDeadLetters()[0]
	require.Equal(t, "webhooks/github", letter.GetTopic())
	require.Equal(t, "hook-1/broken", letter.GetKey())
	require.NotEmpty(t, letter.GetReason())

	res, err := w.rpc.RedriveDeadLetters(ctx, &notificationv1.RedriveDeadLettersRequest{})
	require.NoError(t, err)
	require.Equal(t, []int32{0, 1}, []int32{res.GetRedriven(), res.GetFailed()}, "it is as broken as before")

	_, err = w.pool.Exec(ctx, `update webhooks set body = $1`, payload("@quill mended"))
	require.NoError(t, err)
	res, err = w.rpc.RedriveDeadLetters(ctx, &notificationv1.RedriveDeadLettersRequest{DeadLetterIds: []string{letter.GetDeadLetterId()}})
	require.NoError(t, err)
	require.Equal(t, []int32{1, 0}, []int32{res.GetRedriven(), res.GetFailed()})
	require.Equal(t, []string{"quill mention tool"}, told(w.deliveries(t)))

	_, err = w.rpc.RedriveDeadLetters(ctx, &notificationv1.RedriveDeadLettersRequest{DeadLetterIds: []string{"999"}})
	require.Equal(t, fault.NotFound, rpc.FromError(err).Class)
	_, err = w.rpc.ListDeadLetters(seat(t.Context(), "quill", "", ""), &notificationv1.ListDeadLettersRequest{})
	require.Equal(t, fault.Forbidden, rpc.FromError(err).Class)
	person := rpc.As(t.Context(), &rpc.Principal{Kind: rpc.KindPerson, Id: "ines", Seat: "ines"})
	_, err = w.rpc.RedriveDeadLetters(person, &notificationv1.RedriveDeadLettersRequest{})
	require.Equal(t, fault.Forbidden, rpc.FromError(err).Class)
}
