package api

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/page"
	"github.com/bullpenhq/bullpen/services/tracker/internal/convert"
	"github.com/bullpenhq/bullpen/services/tracker/internal/person"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// maxInboxPage is how many notices a page has when nobody says so, and at most.
const maxInboxPage = 50

// inboxCursor is the oldest notice that was shown.
type inboxCursor struct {
	Before int64 `json:"before"`
}

// WorkInbox implements the contract.
func (h *Handler) WorkInbox(ctx context.Context, req *trackerv1.WorkInboxRequest) (*trackerv1.WorkInboxResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	handle, err := h.whose(ctx, o, by, req.GetHandle())
	if err != nil {
		return nil, err
	}
	if err := h.notBefore(ctx, req.GetMinPosition()); err != nil {
		return nil, err
	}
	f := store.InboxFilter{
		Handle: handle, Unread: req.GetUnread(), PrimaryOnly: req.GetPrimaryOnly(), Snoozed: req.GetSnoozed(), Reasons: req.GetReasons(),
		Limit: req.GetLimit(), Now: h.Now(),
	}
	if f.Limit == 0 {
		f.Limit = maxInboxPage
	}
	if err := person.CheckReasons("reasons", f.Reasons); err != nil {
		return nil, err
	}
	if f.Since, err = h.place(ctx, "since", req.GetSince()); err != nil {
		return nil, err
	}
	bind, err := inboxBind(req, handle)
	if err != nil {
		return nil, err
	}
	var cursor inboxCursor
	if err := page.Decode(req.GetCursor(), bind, &cursor); err != nil {
		return nil, err
	}
	f.Before = cursor.Before
	in, err := h.Store.Inbox(ctx, f)
	if err != nil {
		return nil, err
	}
	res := &trackerv1.WorkInboxResponse{Handle: handle, Count: int32(len(in.Notices)), Unread: in.Unread, Through: store.Place(in.Through), Incomplete: incomplete(in)}
	primary := in.Record.PrimaryReasons()
	for _, n := range in.Notices {
		res.Notices = append(res.Notices, convert.Notice(n, &in.Record, slices.Contains(primary, n.Reason)))
	}
	if in.More {
		if res.NextCursor, err = page.Encode(bind, inboxCursor{in.Notices[len(in.Notices)-1].Position}); err != nil {
			return nil, err
		}
	}
	return res, fits(res, "give a smaller limit")
}

// inboxBind names the list that a cursor belongs to.
func inboxBind(req *trackerv1.WorkInboxRequest, handle string) (string, error) {
	list := proto.CloneOf(req)
	list.Cursor, list.Limit, list.MinPosition, list.Handle = "", 0, "", handle
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(list)
	return fmt.Sprintf("work_inbox %x", raw), err
}

// incomplete says in words that notices may still come for changes that were made already.
func incomplete(in *store.Inbox) string {
	if in.Untold == 0 {
		return ""
	}
	changes := fmt.Sprintf("%d changes", in.Untold)
	switch {
	case in.Untold == 1:
		changes = "1 change"
	case in.Untold >= store.MaxUntold:
		changes += " or more"
	}
	if in.Through > 0 {
		changes += " after " + store.Place(in.Through)
	}
	return "it is not settled yet who is told of " + changes + ", so notices of that may still come: ask again before you conclude that there are none"
}

// MarkInbox implements the contract.
func (h *Handler) MarkInbox(ctx context.Context, req *trackerv1.MarkInboxRequest) (*trackerv1.MarkInboxResponse, error) {
	_, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	handle, err := own(by)
	if err != nil {
		return nil, err
	}
	m, err := h.mark(ctx, req)
	if err != nil {
		return nil, err
	}
	res := &trackerv1.MarkInboxResponse{}
	err = h.Store.MarkInbox(ctx, operation(ctx, "mark_inbox", req), res, handle, h.now(), m, func(r *person.Record, at ops.Position) {
		res.Outcome, res.Position = kept(at)
		res.Version = r.Version
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// mark reads what is to be marked.
func (h *Handler) mark(ctx context.Context, req *trackerv1.MarkInboxRequest) (person.Mark, error) {
	m := person.Mark{UsualPrimary: len(req.GetClear()) > 0}
	if len(req.GetPrimaryReasons()) > 0 {
		m.Primary = req.GetPrimaryReasons()
	}
	for _, part := range []struct {
		argument string
		texts    []string
		records  *[]int64
	}{{"read", req.GetRead(), &m.Read}, {"unread", req.GetUnread(), &m.Unread}, {"unsnooze", req.GetUnsnooze(), &m.Unsnooze}} {
		for n, text := range part.texts {
			record, err := h.record(ctx, fmt.Sprintf("%s[%d]", part.argument, n), text)
			if err != nil {
				return m, err
			}
			*part.records = append(*part.records, record)
		}
	}
	for n, s := range req.GetSnooze() {
		record, err := h.record(ctx, fmt.Sprintf("snooze[%d].record_id", n), s.GetRecordId())
		if err != nil {
			return m, err
		}
		m.Snooze = append(m.Snooze, person.Snooze{Record: record, Until: s.GetUntil().AsTime()})
	}
	var err error
	if m.ReadThrough, err = h.written(ctx, "read_through", req.GetReadThrough()); err != nil {
		return m, err
	}
	return m, m.Check(h.now())
}

// record reads the id of a notice.
func (h *Handler) record(ctx context.Context, argument, text string) (int64, error) {
	if text == "" {
		return 0, fault.New(fault.Invalid, "%s must be a notice's record_id, as work_inbox shows it", argument).WithField(argument)
	}
	return h.place(ctx, argument, text)
}

// written is place for one that the tracker has given.
func (h *Handler) written(ctx context.Context, argument, text string) (int64, error) {
	at, err := h.place(ctx, argument, text)
	if err != nil || at == 0 {
		return 0, err
	}
	newest, err := h.Store.Newest(ctx, at)
	if err != nil {
		return 0, err
	}
	if at > newest.Sequence {
		return 0, fault.New(fault.Invalid, "%s %s is not written yet; the tracker's newest is %s", argument, text, newest).WithField(argument)
	}
	return at, nil
}

// place reads a place in the tracker's order of writes; 0 for an empty text.
func (h *Handler) place(ctx context.Context, argument, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	at, err := ops.ParsePosition(text)
	if err != nil {
		return 0, fieldOf(argument, err)
	}
	ours, err := h.Store.Newest(ctx, 0)
	if err != nil {
		return 0, err
	}
	if at.Service != ours.Service || at.Epoch != ours.Epoch {
		return 0, fault.New(fault.Invalid, "%s %s is a place in another order of writes than the tracker's", argument, text).WithField(argument).WithReason("WRONG_STREAM")
	}
	return at.Sequence, nil
}
