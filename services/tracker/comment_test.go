package tracker_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// member is somebody who acts through a token that is bound to their seat.
func member(ctx context.Context, handle string) context.Context {
	return rpc.As(ctx, &rpc.Principal{Kind: rpc.KindPerson, Id: handle, Seat: handle, TokenId: "t-" + handle})
}

func say(ctx context.Context, t *testing.T, b bundle, req *trackerv1.CommentOnWorkItemRequest) *trackerv1.CommentOnWorkItemResponse {
	t.Helper()
	res, err := b.client.CommentOnWorkItem(ctx, req)
	require.NoError(t, err)
	return res
}

func whole(t *testing.T, b bundle, key string) *trackerv1.GetWorkItemResponse {
	t.Helper()
	res, err := b.client.GetWorkItem(operator(t.Context()), &trackerv1.GetWorkItemRequest{Item: key})
	require.NoError(t, err)
	return res
}

func choice() *trackerv1.Decision {
	return &trackerv1.Decision{
		Question: "Which one?", Role: "approver", Recommended: "a",
		Options: []*trackerv1.DecisionOption{{Id: "a", Label: "The first"}, {Id: "b", Label: "The second"}},
	}
}

func TestAnAskIsCountedWakesForAnAnswerAndMakesItsAskedAWatcher(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Ask about it").GetKey()
	asked := say(seat(t.Context(), "ops-lead"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "May I?", Ask: "The Designer"})
	require.Equal(t, "designer", asked.GetAsked())
	require.Equal(t, int32(1), asked.GetVersion(), "a comment does not move the version")
	got := whole(t, b, key)
	require.Equal(t, int32(1), got.GetItem().GetOpenAsks())
	require.Contains(t, got.GetItem().GetWatchers(), "designer")
	require.True(t, got.GetComments()[0].GetAsk().GetOpen())
	require.True(t, got.GetHistory()[0].GetNotified())
	_, err := b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{Item: key, Status: proto.String("done")})
	require.NoError(t, err, "an open question does not keep an item from being finished")
	require.Empty(t, whole(t, b, key).GetItem().GetAssignee(), "and hands nothing over")
}

func TestACommentAnswersTheOneQuestionThatWaitsForItsAuthor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Answer it").GetKey()
	question := say(seat(t.Context(), "ops-lead"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "May I?", Ask: "designer"})
	remark := say(member(t.Context(), "ines"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "Not my question"})
	require.Empty(t, remark.GetAnswered())
	back := say(seat(t.Context(), "designer"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "Why?", Ask: "ops-lead"})
	require.Empty(t, back.GetAnswered(), "who asks back has not answered")
	answer := say(seat(t.Context(), "designer"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "Yes"})
	require.Equal(t, question.GetCommentId(), answer.GetAnswered())
	got := whole(t, b, key)
	require.Equal(t, int32(1), got.GetItem().GetOpenAsks(), "the question asked back is still open")
	ask := got.GetComments()[0].GetAsk()
	require.False(t, ask.GetOpen())
	require.Equal(t, answer.GetCommentId(), ask.GetAnswer())
	require.Equal(t, "designer", ask.GetAnsweredBy())
	require.NotNil(t, ask.GetAnswerTime())
}

func TestSeveralOpenQuestionsAreRefusedListingThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Many questions").GetKey()
	first := say(seat(t.Context(), "ops-lead"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "First?", Ask: "designer"})
	second := say(member(t.Context(), "ines"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "Second?", Ask: "designer"})
	_, err := b.client.CommentOnWorkItem(seat(t.Context(), "designer"), &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "Yes"})
	message := refusal(t, err, fault.Invalid, "answers").Message
	require.Contains(t, message, first.GetCommentId())
	require.Contains(t, message, second.GetCommentId())
	require.Contains(t, message, "ines asks: Second?")
	reply := say(seat(t.Context(), "designer"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "Yes", ReplyTo: second.GetCommentId()})
	require.Equal(t, second.GetCommentId(), reply.GetAnswered(), "a reply to one of them answers it")
	answer := say(seat(t.Context(), "designer"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "No", Answers: first.GetCommentId()})
	require.Equal(t, first.GetCommentId(), answer.GetAnswered())
	require.Zero(t, whole(t, b, key).GetItem().GetOpenAsks())
}

func TestOf64AnswersExactlyOneWinsAndTheOthersHearWhoAnsweredAndWhen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Contested answer").GetKey()
	question := say(seat(t.Context(), "ops-lead"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "Who?", Ask: "ines", Decision: choice()})
	const callers = 64
	errs := make([]error, callers)
	var group sync.WaitGroup
	for n := range callers {
		group.Go(func() {
			_, errs[n] = b.client.CommentOnWorkItem(operator(t.Context()), &trackerv1.CommentOnWorkItemRequest{
				Item: key, Answers: question.GetCommentId(), Choice: []string{"a", "b"}[n%2],
			})
		})
	}
	group.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		require.Contains(t, refusal(t, err, fault.AlreadyAnswered, "answers").Message, "answered by ci at 20")
	}
	require.Equal(t, 1, won)
	got := whole(t, b, key)
	require.Len(t, got.GetComments(), 2)
	require.Zero(t, got.GetItem().GetOpenAsks())
	require.Equal(t, got.GetComments()[1].GetChoice(), got.GetComments()[0].GetAsk().GetChoice())
}

func TestAChoiceIsOfTheQuestionsOptionsAndNeedsAnOpenQuestion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Choose").GetKey()
	choose := func(ctx context.Context, option string) error {
		_, err := b.client.CommentOnWorkItem(ctx, &trackerv1.CommentOnWorkItemRequest{Item: key, Choice: option})
		return err
	}
	refusal(t, choose(member(t.Context(), "ines"), "a"), fault.Invalid, "choice")
	asked := say(seat(t.Context(), "ops-lead"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "Choose.", Ask: "ines", Decision: choice()})
	require.Equal(t, "a", asked.GetDecision().GetRecommended())
	require.Contains(t, refusal(t, choose(member(t.Context(), "ines"), "c"), fault.Invalid, "choice").Message, "a, b")
	refusal(t, choose(seat(t.Context(), "designer"), "a"), fault.Invalid, "choice")
	_, err := b.client.CommentOnWorkItem(seat(t.Context(), "designer"), &trackerv1.CommentOnWorkItemRequest{Item: key, Choice: "a", Answers: asked.GetCommentId()})
	refusal(t, err, fault.Forbidden, "answers")
	require.NoError(t, choose(member(t.Context(), "ines"), "b"))
	got := whole(t, b, key)
	require.Equal(t, "b", got.GetComments()[0].GetAsk().GetChoice())
	require.Equal(t, "b", got.GetComments()[1].GetChoice())
	refusal(t, choose(member(t.Context(), "ines"), "a"), fault.Invalid, "choice")
	free := say(seat(t.Context(), "ops-lead"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "Free?", Ask: "ines"})
	_, err = b.client.CommentOnWorkItem(member(t.Context(), "ines"), &trackerv1.CommentOnWorkItemRequest{Item: key, Choice: "a", Answers: free.GetCommentId()})
	refusal(t, err, fault.Invalid, "choice")
}

func TestEvidenceThatIsAnItemMustExistAndIsStoredByItsID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key, other := file(t, b, "Decide").GetKey(), file(t, b, "Evidence")
	ask := func(evidence ...*trackerv1.Evidence) (*trackerv1.CommentOnWorkItemResponse, error) {
		d := choice()
		d.Evidence = evidence
		return b.client.CommentOnWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "?", Ask: "ines", Decision: d})
	}
	page := uuid.NewString()
	res, err := ask(&trackerv1.Evidence{Kind: "page", Ref: page}, &trackerv1.Evidence{Kind: "task", Ref: strings.ToLower(other.GetKey()), Label: "Seen"})
	require.NoError(t, err)
	require.Equal(t, other.GetId(), res.GetDecision().GetEvidence()[1].GetRef())
	require.Equal(t, page, res.GetDecision().GetEvidence()[0].GetRef())
	require.Equal(t, other.GetId(), whole(t, b, key).GetComments()[0].GetAsk().GetDecision().GetEvidence()[1].GetRef())
	_, err = ask(&trackerv1.Evidence{Kind: "task", Ref: "OPS-99"})
	require.Contains(t, refusal(t, err, fault.Invalid, "decision.evidence").Message, `decision.evidence[0].ref names no work item: there is no "OPS-99"`)
	_, err = ask(&trackerv1.Evidence{Kind: "task", Ref: uuid.NewString()})
	refusal(t, err, fault.Invalid, "decision.evidence")
	_, err = ask(&trackerv1.Evidence{Kind: "url", Ref: "http://example.com"})
	refusal(t, err, fault.Invalid, "decision.evidence[0].ref")
}

func TestWhatACommentMayNotSayIsRefusedByName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key, other := file(t, b, "Talk").GetKey(), file(t, b, "Elsewhere").GetKey()
	elsewhere := say(operator(t.Context()), t, b, &trackerv1.CommentOnWorkItemRequest{Item: other, Body: "x"})
	try := func(ctx context.Context, req *trackerv1.CommentOnWorkItemRequest) error {
		req.Item = orKey(req.GetItem(), key)
		_, err := b.client.CommentOnWorkItem(ctx, req)
		return err
	}
	lead := seat(t.Context(), "ops-lead")
	refusal(t, try(lead, &trackerv1.CommentOnWorkItemRequest{Body: " \n"}), fault.Invalid, "body")
	refusal(t, try(lead, &trackerv1.CommentOnWorkItemRequest{}), fault.Invalid, "")
	refusal(t, try(lead, &trackerv1.CommentOnWorkItemRequest{Body: strings.Repeat("x", 32769)}), fault.Invalid, "body")
	require.NoError(t, try(lead, &trackerv1.CommentOnWorkItemRequest{Body: strings.Repeat("x", 32768)}))
	require.NoError(t, try(lead, &trackerv1.CommentOnWorkItemRequest{Body: "\u202e\u202e 😀 مرحبا \U00010348"}))
	refusal(t, try(lead, &trackerv1.CommentOnWorkItemRequest{Body: "a\x00b"}), fault.Invalid, "body")
	refusal(t, try(lead, &trackerv1.CommentOnWorkItemRequest{Item: "OPS-99", Body: "x"}), fault.NotFound, "item")
	refusal(t, try(lead, &trackerv1.CommentOnWorkItemRequest{Body: "x", Ask: "bob"}), fault.Invalid, "ask")
	refusal(t, try(lead, &trackerv1.CommentOnWorkItemRequest{Body: "x", Ask: "lead"}), fault.Invalid, "ask")
	refusal(t, try(lead, &trackerv1.CommentOnWorkItemRequest{Body: "x", Ask: "ops-lead"}), fault.Invalid, "ask")
	refusal(t, try(lead, &trackerv1.CommentOnWorkItemRequest{Body: "x", Decision: choice()}), fault.Invalid, "")
	refusal(t, try(lead, &trackerv1.CommentOnWorkItemRequest{Body: "x", Ask: "ines", Decision: choice(), Choice: "a"}), fault.Invalid, "")
	refusal(t, try(lead, &trackerv1.CommentOnWorkItemRequest{Body: "x", Answers: "1"}), fault.Invalid, "answers")
	refusal(t, try(lead, &trackerv1.CommentOnWorkItemRequest{Body: "x", Answers: elsewhere.GetCommentId()}), fault.Invalid, "answers")
	refusal(t, try(lead, &trackerv1.CommentOnWorkItemRequest{Body: "x", ReplyTo: elsewhere.GetCommentId()}), fault.Invalid, "reply_to")
	refusal(t, try(lead, &trackerv1.CommentOnWorkItemRequest{Body: "x", ReplyTo: "one"}), fault.Invalid, "reply_to")
	promised := choice()
	promised.Inform = &trackerv1.Inform{Surface: "slack", Channel: "C012"}
	refusal(t, try(operator(t.Context()), &trackerv1.CommentOnWorkItemRequest{Body: "x", Ask: "ines", Decision: promised}), fault.Forbidden, "decision.inform")
	require.NoError(t, try(lead, &trackerv1.CommentOnWorkItemRequest{Body: "x", Ask: "ines", Decision: promised}))
}

func orKey(item, otherwise string) string {
	if item == "" {
		return otherwise
	}
	return item
}

func TestACommentMentionsAtMost32AndAUnitIsItsLead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Mention").GetKey()
	var names []string
	for n := range 33 {
		names = append(names, fmt.Sprintf("@seat-%d", n))
	}
	_, err := b.client.CommentOnWorkItem(operator(t.Context()), &trackerv1.CommentOnWorkItemRequest{Item: key, Body: strings.Join(names, " ")})
	require.Contains(t, refusal(t, err, fault.Invalid, "body").Message, "33 colleagues; a comment may mention 32")
	res := say(operator(t.Context()), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "@operations, @ops-lead and @design look"})
	require.Equal(t, []string{"ops-lead"}, res.GetMentioned())
	require.Len(t, res.GetWarnings(), 1)
	require.Contains(t, res.GetWarnings()[0], "@design is nobody's handle")
	require.Equal(t, []string{"ops-lead"}, whole(t, b, key).GetComments()[0].GetMentions())
}

func TestCommentingAutoWatchesTheCommenterButNotWhomTheyMention(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Watch").GetKey()
	say(seat(t.Context(), "designer"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "Look, @ines"})
	require.Equal(t, []string{"ops-lead", "designer"}, whole(t, b, key).GetItem().GetWatchers())
}

func TestAnAgentIsWarnedThatTheAssigneeIsWokenButNotAsked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	res, err := b.client.CreateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.CreateWorkItemRequest{Title: "Held", Assignee: "designer"})
	require.NoError(t, err)
	remark := say(seat(t.Context(), "ops-lead"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: res.GetKey(), Body: "How is it?"})
	require.Contains(t, strings.Join(remark.GetWarnings(), " "), "@designer has OPS-1 and hears of this, but is not asked")
	for ctx, req := range map[context.Context]*trackerv1.CommentOnWorkItemRequest{
		seat(t.Context(), "ops-lead"): {Item: res.GetKey(), Body: "How is it?", Ask: "designer"},
		seat(t.Context(), "designer"): {Item: res.GetKey(), Body: "Fine."},
		member(t.Context(), "ines"):   {Item: res.GetKey(), Body: "Hello."},
	} {
		require.Empty(t, say(ctx, t, b, req).GetWarnings())
	}
}

func TestAChoiceBesideAQuestionOfItsOwnMustSayWhatItAnswers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Two questions").GetKey()
	asked := say(seat(t.Context(), "ops-lead"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "Choose.", Ask: "ines", Decision: choice()})
	_, err := b.client.CommentOnWorkItem(member(t.Context(), "ines"), &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "And who?", Ask: "designer", Choice: "a"})
	refusal(t, err, fault.Invalid, "choice")
	require.Len(t, mine(member(t.Context(), "ines"), t, b).GetAskedOfMe(), 1)
	res := say(member(t.Context(), "ines"), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "And who?", Ask: "designer", Choice: "a", Answers: asked.GetCommentId()})
	require.Equal(t, asked.GetCommentId(), res.GetAnswered())
	require.Equal(t, "designer", res.GetAsked())
}
