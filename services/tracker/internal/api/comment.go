package api

import (
	"context"
	"strings"

	"github.com/google/uuid"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// CommentOnWorkItem implements the contract.
func (h *Handler) CommentOnWorkItem(ctx context.Context, req *trackerv1.CommentOnWorkItemRequest) (*trackerv1.CommentOnWorkItemResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(req.GetBody()) == "" {
		return nil, fault.New(fault.Invalid, "body must say something").WithField("body")
	}
	handles := item.Mentions(req.GetBody())
	if len(handles) > item.MaxMentions {
		return nil, fault.New(fault.Invalid, "body mentions %d colleagues; a comment may mention %d", len(handles), item.MaxMentions).WithField("body")
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	c := &store.Comment{ID: id, Author: by, Body: req.GetBody(), CreatedAt: h.now()}
	if req.GetReplyTo() != "" {
		to, err := uuid.Parse(req.GetReplyTo())
		if err != nil {
			return nil, fault.New(fault.Invalid, "reply_to must be a comment's id, as get_work_item shows it").WithField("reply_to")
		}
		c.ReplyTo = &to
	}
	var warnings []string
	c.Mentions, warnings = mentioned(o, handles)
	res := &trackerv1.CommentOnWorkItemResponse{}
	err = h.Store.InsertComment(ctx, operation(ctx, "comment_on_work_item", req), res, h.act(o, by), req.GetItem(), c, func(i *item.Item, at ops.Position) {
		res.Outcome, res.Position, res.Version = h.landed(at), at.String(), i.Version
		res.CommentId, res.Item, res.Mentioned, res.Warnings = c.ID.String(), i.Key(), c.Mentions, warnings
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}
