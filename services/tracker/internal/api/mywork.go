package api

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/services/tracker/internal/convert"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

// questionShown is how much of a free question is shown, in bytes.
const questionShown = 1 << 10

// MyWork implements the contract.
func (h *Handler) MyWork(ctx context.Context, req *trackerv1.MyWorkRequest) (*trackerv1.MyWorkResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	handle, err := own(by)
	if err != nil {
		return nil, err
	}
	if err := h.notBefore(ctx, req.GetMinPosition()); err != nil {
		return nil, err
	}
	m, err := h.Store.Mine(ctx, handle)
	if err != nil {
		return nil, err
	}
	now := o.Clock(h.Now())
	res := &trackerv1.MyWorkResponse{
		Handle: handle, Priorities: briefs(m.Priorities, m, now), Assigned: briefs(m.Assigned, m, now), Collaborating: briefs(m.Collaborating, m, now),
		WatchingRecent: briefs(m.Watching, m, now), UnblockedRecent: briefs(m.Unblocked, m, now),
	}
	for _, q := range m.Asked {
		res.AskedOfMe = append(res.AskedOfMe, &trackerv1.AskedOfMe{
			Item: q.Key, Title: q.Title, CommentId: q.ID.String(), Asker: q.Author.Name, Question: item.Shorten(q.Question(), questionShown), Open: q.Ask.Open(),
			Decision: convert.Decision(q.Ask.Decision), AnswerWith: answerWith(q), CreateTime: timestamppb.New(q.CreatedAt),
		})
	}
	for _, s := range m.Steps {
		res.ChecklistItems = append(res.ChecklistItems, &trackerv1.MyChecklistItem{Item: s.Key, Title: s.Title, List: s.List, Id: s.ID, Name: s.Name})
	}
	return res, fits(res, "read the lists one by one with list_work_items, and each question with get_work_item")
}

// briefs answers items as a list shows them: what only one item's reader asks for is left out.
func briefs(items []*item.Item, m *store.Mine, now time.Time) []*trackerv1.WorkItem {
	out := make([]*trackerv1.WorkItem, 0, len(items))
	for _, i := range items {
		row := convert.Item(i, now)
		row.Body, row.Watchers, row.Muted, row.Checklists = nil, nil, nil, nil
		convert.Standing(row, m.Standings[i.ID])
		out = append(out, row)
	}
	return out
}

// answerWith is the call that answers a question, with what its asker recommends filled in. What is to be filled in stands in angle
// brackets.
func answerWith(q store.Question) string {
	call := struct {
		Item    string `json:"item"`
		Answers string `json:"answers"`
		Choice  string `json:"choice,omitempty"`
		Body    string `json:"body,omitempty"`
	}{Item: q.Key, Answers: q.ID.String()}
	switch d := q.Ask.Decision; {
	case d == nil:
		call.Body = "<your answer>"
	case d.Recommended != "":
		call.Choice = d.Recommended
	default:
		call.Choice = "<" + strings.Join(d.OptionIDs(), " or ") + ">"
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(call); err != nil {
		return "" // texts alone always encode
	}
	return "comment_on_work_item " + strings.TrimSpace(text.String())
}
