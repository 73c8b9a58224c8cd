package person

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/wake"
)

// Mark says what somebody has seen or wants to see later.
type Mark struct {
	Read, Unread, Unsnooze []int64
	Snooze                 []Snooze
	// ReadThrough is a place in the order of writes, or 0.
	ReadThrough int64
	// Primary, unless nil, are the reasons that come first from now on. UsualPrimary goes back to the usual ones.
	Primary      []string
	UsualPrimary bool
}

// Records answers every notice that the mark names, or refuses one that is named twice.
func (m Mark) Records() ([]int64, error) {
	var records []int64
	for argument, list := range m.lists() {
		for n, record := range list {
			if slices.Contains(records, record) {
				return nil, fault.New(fault.Invalid, "%s[%d] names a notice that this call names already: say one thing of each", argument, n).
					WithField(fmt.Sprintf("%s[%d]", argument, n))
			}
			records = append(records, record)
		}
	}
	return records, nil
}

// lists goes over the lists of notices in the order of the call's arguments.
func (m Mark) lists() func(yield func(string, []int64) bool) {
	snoozed := make([]int64, 0, len(m.Snooze))
	for _, s := range m.Snooze {
		snoozed = append(snoozed, s.Record)
	}
	return func(yield func(string, []int64) bool) {
		_ = yield("read", m.Read) && yield("unread", m.Unread) && yield("unsnooze", m.Unsnooze) && yield("snooze", snoozed)
	}
}

// Check refuses what no record could take, whatever it holds.
func (m Mark) Check(now time.Time) error {
	for n, s := range m.Snooze {
		argument := fmt.Sprintf("snooze[%d].until", n)
		switch {
		case !s.Until.After(now):
			return fault.New(fault.Invalid, "%s must be in the future, not %s", argument, s.Until.UTC().Format(time.RFC3339)).WithField(argument)
		case s.Until.After(now.AddDate(0, 0, MaxSnoozeDays)):
			return fault.New(fault.Invalid, "%s is more than %d days ahead, which is as far as a notice may be put off", argument, MaxSnoozeDays).WithField(argument)
		}
	}
	if m.UsualPrimary && m.Primary != nil {
		return fault.New(fault.Invalid, "give primary_reasons or name it in clear, not both").WithField("clear")
	}
	return CheckReasons("primary_reasons", m.Primary)
}

// CheckReasons refuses a text that is no reason to be told.
func CheckReasons(argument string, reasons []string) error {
	for n, reason := range reasons {
		if !slices.Contains(wake.Reasons(), reason) {
			return fault.New(fault.Invalid, "%s[%d] is no reason that anybody is told of a change: %q; there are %s", argument, n, reason,
				strings.Join(wake.Reasons(), ", ")).WithField(fmt.Sprintf("%s[%d]", argument, n))
		}
	}
	return nil
}

// Mark changes the record, or refuses when a list is full and leaves it as it is. It answers false when everything was so already.
func (r *Record) Mark(m Mark) (bool, error) {
	d := *r
	d.Read, d.Unread, d.Snoozed = slices.Clone(r.Read), slices.Clone(r.Unread), slices.Clone(r.Snoozed)
	if m.ReadThrough > d.SeenThrough {
		d.SeenThrough = m.ReadThrough
		d.Unread = nil
		d.Read = slices.DeleteFunc(d.Read, func(record int64) bool { return record <= d.SeenThrough })
	}
	for _, record := range m.Read {
		d.Unread = without(d.Unread, record)
		d.unsnooze(record)
		if record > d.SeenThrough {
			d.Read = with(d.Read, record)
		}
	}
	for _, record := range m.Unread {
		d.Read = without(d.Read, record)
		if record <= d.SeenThrough {
			d.Unread = with(d.Unread, record)
		}
	}
	for _, record := range m.Unsnooze {
		d.unsnooze(record)
	}
	for _, s := range m.Snooze {
		d.unsnooze(s.Record)
		d.Snoozed = append(d.Snoozed, s)
	}
	slices.SortFunc(d.Snoozed, func(a, b Snooze) int { return cmp.Compare(a.Record, b.Record) })
	switch {
	case m.UsualPrimary:
		d.Primary = nil
	case m.Primary != nil:
		d.Primary = m.Primary
	}
	if err := d.room(); err != nil {
		return false, err
	}
	if d.same(r) {
		return false, nil
	}
	d.Version++
	*r = d
	return true, nil
}

func (r *Record) unsnooze(record int64) {
	r.Snoozed = slices.DeleteFunc(r.Snoozed, func(s Snooze) bool { return s.Record == record })
}

// room refuses a list that is longer than lists may be.
func (r *Record) room() error {
	full := func(argument, instead string) error {
		return fault.New(fault.InboxFull, "%s would hold more than %d notices: %s", argument, MaxMarks, instead).WithField(argument)
	}
	switch {
	case len(r.Read) > MaxMarks:
		return full("read", "read on to a place with read_through instead")
	case len(r.Unread) > MaxMarks:
		return full("unread", "read some of them first")
	case len(r.Snoozed) > MaxMarks:
		return full("snooze", "bring some back with unsnooze first")
	default:
		return nil
	}
}

func (r *Record) same(other *Record) bool {
	return r.SeenThrough == other.SeenThrough && slices.Equal(r.Read, other.Read) && slices.Equal(r.Unread, other.Unread) &&
		slices.EqualFunc(r.Snoozed, other.Snoozed, func(a, b Snooze) bool { return a.Record == b.Record && a.Until.Equal(b.Until) }) &&
		(r.Primary == nil) == (other.Primary == nil) && slices.Equal(r.Primary, other.Primary)
}

// with adds a notice to a sorted list.
func with(list []int64, record int64) []int64 {
	at, there := slices.BinarySearch(list, record)
	if there {
		return list
	}
	return slices.Insert(list, at, record)
}

func without(list []int64, record int64) []int64 {
	at, there := slices.BinarySearch(list, record)
	if !there {
		return list
	}
	return slices.Delete(list, at, at+1)
}

// Argument answers where in the call a notice is named.
func (m Mark) Argument(record int64) string {
	for argument, list := range m.lists() {
		if at := slices.Index(list, record); at >= 0 {
			return fmt.Sprintf("%s[%d]", argument, at)
		}
	}
	return "read"
}
