package api

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/convert"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// CommentOnWorkItem implements the contract. It is never conditioned on a version: what is said stands beside what changed.
func (h *Handler) CommentOnWorkItem(ctx context.Context, req *trackerv1.CommentOnWorkItemRequest) (*trackerv1.CommentOnWorkItemResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	a := h.act(o, by)
	c, warnings, err := h.comment(ctx, a, req)
	if err != nil {
		return nil, err
	}
	res := &trackerv1.CommentOnWorkItemResponse{}
	post := store.Post{Name: req.GetItem(), Comment: c, Act: a}
	err = h.Store.InsertComment(ctx, operation(ctx, "comment_on_work_item", req), res, post, func(i *item.Item, at ops.Position) {
		res.Outcome, res.Position, res.Version = h.landed(at), at.String(), i.Version
		res.CommentId, res.Item, res.Mentioned, res.Choice = c.ID.String(), i.Key(), c.Mentions, c.Choice
		res.Warnings = append(warnings, woken(i, c)...)
		if c.Ask != nil {
			res.Asked, res.Decision = c.Ask.Asked, convert.Decision(c.Ask.Decision)
		}
		if c.Answers != nil {
			res.Answered = c.Answers.String()
		}
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// comment reads a comment and what is to be known about it.
func (h *Handler) comment(ctx context.Context, a store.Act, req *trackerv1.CommentOnWorkItemRequest) (*store.Comment, []string, error) {
	body := req.GetBody()
	if err := item.Says("body", body); err != nil {
		if req.GetChoice() == "" {
			return nil, nil, err
		}
		body = ""
	}
	handles := item.Mentions(body)
	if len(handles) > item.MaxMentions {
		return nil, nil, fault.New(fault.Invalid, "body mentions %d colleagues; a comment may mention %d", len(handles), item.MaxMentions).WithField("body")
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, nil, err
	}
	c := &store.Comment{ID: id, Author: a.By, Body: body, CreatedAt: a.At, Choice: req.GetChoice()}
	if c.ReplyTo, err = commentID("reply_to", req.GetReplyTo()); err != nil {
		return nil, nil, err
	}
	if c.Answers, err = commentID("answers", req.GetAnswers()); err != nil {
		return nil, nil, err
	}
	var warnings []string
	c.Mentions, warnings = mentioned(a.Org, handles)
	if req.GetAsk() == "" && req.GetDecision() == nil {
		return c, warnings, nil
	}
	c.Ask, err = h.ask(ctx, a.Org, a.By, req.GetAsk(), req.GetDecision())
	return c, warnings, err
}

// commentID reads the id of a comment; nil for none.
func commentID(argument, text string) (*uuid.UUID, error) {
	if text == "" {
		return nil, nil
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s must be a comment's id, as get_work_item shows it, not %q", argument, text).WithField(argument)
	}
	return &id, nil
}

// ask reads a question: whom it is for, and the choice to make if there is one. Evidence that is an item still stands by the name it
// was given; the store settles it.
func (h *Handler) ask(ctx context.Context, o *org.Org, by item.Actor, handle string, decision *trackerv1.Decision) (*item.Ask, error) {
	if strings.TrimSpace(handle) == "" {
		return nil, fault.New(fault.Invalid, "ask must name who owes the answer").WithField("ask")
	}
	asked, err := h.colleague(ctx, o, "ask", handle)
	if err != nil {
		return nil, err
	}
	if asked == by.Seat {
		return nil, fault.New(fault.Invalid, "ask names yourself: ask a colleague, or write down what you decided").WithField("ask")
	}
	a := &item.Ask{Asked: asked, Decision: convert.DecisionOf(decision)}
	if a.Decision == nil {
		return a, nil
	}
	return a, a.Decision.Check(by)
}

// woken warns an agent whose comment wakes the assignee without asking them: they hear of it and owe nothing.
func woken(i *item.Item, c *store.Comment) []string {
	if c.Author.Kind != "agent" || c.Ask != nil || c.Answers != nil || i.Assignee == "" || i.Assignee == c.Author.Seat {
		return nil
	}
	return []string{fmt.Sprintf("@%s has %s and hears of this, but is not asked and owes no answer: use ask when you need one", i.Assignee, i.Key())}
}
