package api

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/notification/internal/github"
	"github.com/bullpenhq/bullpen/services/notification/internal/slack"
	"github.com/bullpenhq/bullpen/services/notification/internal/store"
	"github.com/bullpenhq/bullpen/services/notification/internal/work"
)

const (
	toolReply = "reply"

	// door is the service through which seats reach tools.
	door = "toolregistry"

	outcomeApplied = "applied"
	outcomePending = "pending"

	// look is how often a waiting reply asks the store, for messages that
	// another process posts.
	look = 250 * time.Millisecond
)

// Reply queues an answer, once an operation, and waits a little for it to be
// posted.
func (h *Handler) Reply(ctx context.Context, req *notificationv1.ReplyRequest) (*notificationv1.ReplyResponse, error) {
	caller, err := rpc.RequireKind(ctx, rpc.KindSeat)
	if err != nil {
		return nil, err
	}
	if caller.GetIssuer() != door {
		return nil, fault.New(fault.Forbidden, "A seat replies through the tool registry, not through %s.", caller.GetIssuer())
	}
	conversation := req.GetConversation()
	if conversation == "" {
		conversation = caller.GetTurn().GetConversationKey()
	}
	if conversation == "" {
		return nil, fault.New(fault.Invalid, "This turn was not asked in a conversation, so there is nowhere to answer. Name one in `conversation`.").
			WithField("conversation")
	}
	surface, err := fits(conversation, req.GetBody())
	if err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	op := ops.Operation{ID: rpc.OperationID(ctx), Caller: rpc.Caller(ctx), Tool: toolReply, Digest: digest(caller.GetSeat(), conversation, req)}
	m := store.Outbound{
		ID: id, Seat: caller.GetSeat(), Surface: surface, ConversationKey: conversation, Body: req.GetBody(),
		TurnID: caller.GetTurn().GetTurnId(),
	}
	var res notificationv1.ReplyResponse
	if err := h.o.Store.Enqueue(ctx, op, &res, m, func(sequence int64) {
		res = notificationv1.ReplyResponse{
			Outcome: outcomePending, Version: 1, MessageId: id.String(), Surface: surface, Conversation: conversation,
			Position: ops.Position{Service: "notification", Epoch: 1, Sequence: sequence}.String(),
		}
	}); err != nil {
		return nil, err
	}
	h.o.Queued()
	return &res, h.settle(ctx, &res)
}

// settle waits for the message and completes the answer. Running out of time is
// not an error: the message is durable, and the answer says pending.
func (h *Handler) settle(ctx context.Context, res *notificationv1.ReplyResponse) error {
	id, err := uuid.Parse(res.GetMessageId())
	if err != nil {
		return err
	}
	patience := time.NewTimer(h.o.Wait)
	defer patience.Stop()
	again := time.NewTicker(look)
	defer again.Stop()
	for {
		settled := h.o.Settled()
		m, err := h.o.Store.OutboundByID(ctx, id)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case m.State == store.Posted:
			res.Outcome, res.Url = outcomeApplied, m.URL
			return nil
		case m.State == store.Failed:
			return fault.New(m.Failure, "The answer was not posted. %s", m.Detail)
		}
		select {
		case <-settled:
		case <-again.C:
		case <-patience.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// fits answers the surface of a conversation, if the body can be posted there
// whole.
func fits(conversation, body string) (surface string, err error) {
	invalid := func(field, format string, args ...any) error {
		return fault.New(fault.Invalid, format, args...).WithField(field)
	}
	if _, ok := slack.ParseKey(conversation); ok {
		text := slack.Mrkdwn(body)
		if n := utf8.RuneCountInString(text); n > slack.MaxTextCharacters {
			return "", invalid("body", "`body` has %d characters in Slack's form; Slack takes at most %d. Shorten it, or put the long part on a page and link to it.",
				n, slack.MaxTextCharacters)
		}
		if strings.TrimSpace(text) == "" {
			return "", invalid("body", "`body` has nothing in it that can be read.")
		}
		return slack.Source, nil
	}
	if strings.HasPrefix(conversation, work.Source+":") {
		return "", invalid("conversation", "An answer to a work item stands on the item: use `comment_on_work_item`.")
	}
	target, ok := github.ParseKey(conversation)
	switch n := utf8.RuneCountInString(github.Marked(body, uuid.Nil)); {
	case !ok:
		return "", invalid("conversation", "`conversation` %.200q is no conversation that can be answered. Leave it out to answer where you were asked.", conversation)
	case target.On == github.OnDiscussion:
		return "", invalid("conversation", "Discussions on GitHub can be read but not answered from here; say so where somebody can see it, such as on the work item.")
	case n > github.MaxCommentCharacters:
		return "", invalid("body", "`body` has %d characters; GitHub takes at most %d. Shorten it, or put the long part on a page and link to it.", n, github.MaxCommentCharacters)
	case strings.TrimSpace(body) == "":
		return "", invalid("body", "`body` has nothing in it that can be read.")
	default:
		return github.Source, nil
	}
}

// digest covers what the request leaves to the turn: whose answer it is and
// where it goes.
func digest(seat, conversation string, req *notificationv1.ReplyRequest) []byte {
	return ops.Digest(&notificationv1.OutboundMessage{Seat: seat, ConversationKey: conversation, Detail: req.GetBody()})
}
