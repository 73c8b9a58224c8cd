package api

import (
	"slices"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// schedule reads when an item is to be done and how big it is.
func schedule(req *trackerv1.UpdateWorkItemRequest, u *item.Update) (err error) {
	if u.Due, err = momentOf("due", req.Due); err != nil {
		return err
	}
	if u.Start, err = momentOf("start", req.Start); err != nil {
		return err
	}
	if u.EstimateMinutes, err = clearable(req, "estimate_minutes", req.EstimateMinutes); err != nil {
		return err
	}
	u.Points, err = clearable(req, "points", req.Points)
	return err
}

// momentOf reads a moment that stays when it is absent and goes when it is empty.
func momentOf(argument string, text *string) (**item.Moment, error) {
	if text == nil {
		return nil, nil
	}
	m, err := item.ParseMoment(argument, *text)
	return &m, err
}

// clearable reads a value that stays when it is absent and goes when clear names it.
func clearable[T any](req *trackerv1.UpdateWorkItemRequest, argument string, value *T) (**T, error) {
	cleared := slices.Contains(req.GetClear(), argument)
	switch {
	case cleared && value != nil:
		return nil, fault.New(fault.Invalid, "give %s or name it in clear, not both", argument).WithField("clear")
	case !cleared && value == nil:
		return nil, nil
	}
	return &value, nil
}
