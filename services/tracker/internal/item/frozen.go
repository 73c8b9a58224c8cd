package item

import "github.com/bullpenhq/bullpen/libs/fault"

// ReasonRemoved is why an item in the trash takes no change.
const ReasonRemoved = "ITEM_REMOVED"

// Frozen refuses what may not be done to an item in the trash; nil for one that is not there.
func (i *Item) Frozen() error {
	if i.Removal == nil {
		return nil
	}
	return fault.New(fault.Invalid, "%s is in the trash, where nothing of it changes: a person brings it back with restore_work_item", i.Key()).
		WithField("item").WithReason(ReasonRemoved)
}
