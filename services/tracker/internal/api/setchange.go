package api

import (
	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// setChange reads how a set is to change; nil when nothing is said of it. argument is the one that it came in.
func setChange(argument string, c *trackerv1.SetChange) (*item.SetChange, error) {
	if c == nil {
		return nil, nil
	}
	out := item.SetChange{Add: c.GetAdd(), Remove: c.GetRemove(), Set: c.GetSet(), Clear: c.GetClear()}
	return &out, out.Check(argument)
}
