package api

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

// eventPrefix tells a dead event of the tracker from a webhook.
const eventPrefix = "event:"

// ListDeadLetters lists webhooks and events that could not be processed.
func (h *Handler) ListDeadLetters(ctx context.Context, req *notificationv1.ListDeadLettersRequest) (*notificationv1.ListDeadLettersResponse, error) {
	if err := reader(ctx); err != nil {
		return nil, err
	}
	limit := limitOf(req.GetLimit())
	webhooks, err := h.o.Store.ListDead(ctx, limit)
	if err != nil {
		return nil, err
	}
	events, err := h.o.Store.ListDeadEvents(ctx, limit)
	if err != nil {
		return nil, err
	}
	letters := make([]*notificationv1.DeadLetter, 0, len(webhooks)+len(events))
	for _, d := range webhooks {
		letter := &notificationv1.DeadLetter{
			DeadLetterId: strconv.FormatInt(d.ID, 10), Topic: "webhooks/" + d.Source, Key: d.Key, Reason: d.Reason,
			CreateTime: timestamppb.New(d.ReceivedAt),
		}
		if d.RedrivenAt != nil {
			letter.RedriveTime = timestamppb.New(*d.RedrivenAt)
		}
		letters = append(letters, letter)
	}
	for _, d := range events {
		letter := &notificationv1.DeadLetter{
			DeadLetterId: eventPrefix + strconv.FormatInt(d.ID, 10), Topic: d.Topic, Key: d.Key, Reason: d.Reason,
			CreateTime: timestamppb.New(d.CreatedAt),
		}
		if d.RedrivenAt != nil {
			letter.RedriveTime = timestamppb.New(*d.RedrivenAt)
		}
		letters = append(letters, letter)
	}
	slices.SortStableFunc(letters, func(a, b *notificationv1.DeadLetter) int {
		return b.GetCreateTime().AsTime().Compare(a.GetCreateTime().AsTime())
	})
	return &notificationv1.ListDeadLettersResponse{DeadLetters: letters[:min(len(letters), limit)]}, nil
}

// RedriveDeadLetters processes dead letters again, now: webhooks are routed, events are told.
func (h *Handler) RedriveDeadLetters(ctx context.Context, req *notificationv1.RedriveDeadLettersRequest) (*notificationv1.RedriveDeadLettersResponse, error) {
	if err := mender(ctx); err != nil {
		return nil, err
	}
	webhooks, events, err := numbers(req.GetDeadLetterIds())
	if err != nil {
		return nil, err
	}
	all := len(req.GetDeadLetterIds()) == 0
	res := &notificationv1.RedriveDeadLettersResponse{}
	if all || len(webhooks) > 0 {
		if err := h.redriveWebhooks(ctx, webhooks, res); err != nil {
			return nil, err
		}
	}
	if all {
		if events, err = h.waiting(ctx); err != nil {
			return nil, err
		}
	}
	if len(events) > 0 {
		if err := h.redriveEvents(ctx, events, res); err != nil {
			return nil, err
		}
	}
	return res, nil
}

// numbers parts ids into those of webhooks and those of events.
func numbers(ids []string) (webhooks, events []int64, err error) {
	for i, text := range ids {
		number, event := strings.CutPrefix(text, eventPrefix)
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, nil, fault.New(fault.Invalid, "%.40q is not the number of a dead letter.", text).
				WithField("dead_letter_ids[" + strconv.Itoa(i) + "]")
		}
		if event {
			events = append(events, n)
		} else {
			webhooks = append(webhooks, n)
		}
	}
	return webhooks, events, nil
}

func (h *Handler) redriveWebhooks(ctx context.Context, ids []int64, res *notificationv1.RedriveDeadLettersResponse) error {
	revived, err := h.o.Store.Revive(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !slices.Contains(revived, id) {
			return fault.New(fault.NotFound, "There is no dead letter %d.", id).WithField("dead_letter_ids")
		}
	}
	if err := h.o.Drain(ctx); err != nil {
		return err
	}
	redriven, failed, err := h.o.Store.Redriven(ctx, revived)
	res.Redriven += int32(redriven)
	res.Failed += int32(failed)
	return err
}

// waiting answers the dead events that were not redriven.
func (h *Handler) waiting(ctx context.Context) ([]int64, error) {
	const most = 200
	dead, err := h.o.Store.ListDeadEvents(ctx, most)
	var ids []int64
	for _, d := range dead {
		if d.RedrivenAt == nil {
			ids = append(ids, d.ID)
		}
	}
	return ids, err
}

// redriveEvents answers an error only for what is nobody's letter, or when nothing could be done at all; a letter that fails again is
// counted.
func (h *Handler) redriveEvents(ctx context.Context, ids []int64, res *notificationv1.RedriveDeadLettersResponse) error {
	n, err := h.o.RedriveEvents(ctx, ids...)
	if class := fault.ClassOf(err); err != nil && n == 0 && (class == fault.NotFound || class == fault.Unavailable) {
		return err
	}
	res.Redriven += int32(n)
	res.Failed += int32(len(ids) - n)
	return nil
}
