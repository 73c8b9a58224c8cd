package imports

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// forms answers the forms of times that exports use, those first that are tried first. Those that begin with a day and those that begin
// with a month look alike: which is which is the user's to say.
func (o Options) forms() []string {
	forms := []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.000-0700", "2006-01-02T15:04:05-0700", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05", "2006-01-02 15:04",
		"2006-01-02T15:04:05", time.DateOnly, "02/Jan/06 3:04 PM", "02/Jan/06 15:04", "02/Jan/06", "02/Jan/2006 15:04", "02-Jan-06 15:04", "02.01.2006 15:04",
		"02.01.2006", "Jan 2, 2006 3:04 PM", "Jan 2, 2006, 3:04 PM", "Jan 2, 2006", "02 Jan 2006", "Mon Jan 02 2006 15:04:05 GMT-0700 (MST)",
	}
	months := []string{"1/2/2006 15:04:05", "1/2/2006 15:04", "1/2/2006 3:04:05 PM", "1/2/2006 3:04 PM", "1/2/2006", "1/2/06 15:04", "1/2/06 3:04 PM", "1/2/06"}
	days := []string{"2/1/2006 15:04:05", "2/1/2006 15:04", "2/1/2006 3:04:05 PM", "2/1/2006 3:04 PM", "2/1/2006", "2/1/06 15:04", "2/1/06 3:04 PM", "2/1/06"}
	if o.DayFirst {
		return slices.Concat(forms, days, months)
	}
	return slices.Concat(forms, months, days)
}

// when reads a time. Nothing is no time; what cannot be read is a warning.
func (o Options) when(r *Record, what, text string) *timestamppb.Timestamp {
	at, ok := o.parse(text)
	o.doubt(r, text)
	if !ok {
		if strings.TrimSpace(text) != "" {
			r.warn("%s is no time that is understood, and was left out", what)
		}
		return nil
	}
	return timestamppb.New(at)
}

// day reads a day of the calendar in the form that items hold.
func (o Options) day(r *Record, what, text string) string {
	at, ok := o.parse(text)
	o.doubt(r, text)
	if !ok {
		if strings.TrimSpace(text) != "" {
			r.warn("%s is no day that is understood, and was left out", what)
		}
		return ""
	}
	return at.Format(time.DateOnly)
}

func (o Options) parse(text string) (time.Time, bool) {
	text = strings.TrimSpace(text)
	if text == "" {
		return time.Time{}, false
	}
	for _, form := range o.forms() {
		if at, err := time.ParseInLocation(form, text, o.Zone); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// doubt warns of a time that is another one when the day comes first, unless the user has said which does.
func (o Options) doubt(r *Record, text string) {
	if o.DayFirst || !strings.Contains(text, "/") {
		return
	}
	const said = "a day such as 3/4/2025 was read as the fourth of March; --day-first reads it as the third of April"
	other := o
	other.DayFirst = true
	first, ok := o.parse(text)
	if second, also := other.parse(text); ok && also && !first.Equal(second) && !slices.Contains(r.Warnings, said) {
		r.warn(said)
	}
}
