package item

import (
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Moment is a day of the calendar or a point in time. A day is no point in time until somebody says whose day: At is then
// midnight UTC of its date.
type Moment struct {
	At     time.Time
	AllDay bool
}

// ParseMoment reads a day such as 2026-03-01 or an RFC 3339 time; an empty text is none. argument is the one it came in.
func ParseMoment(argument, text string) (*Moment, error) {
	if text == "" {
		return nil, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return &Moment{At: day, AllDay: true}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00"} {
		if at, err := time.Parse(layout, text); err == nil {
			return &Moment{At: at.UTC().Truncate(time.Microsecond)}, nil
		}
	}
	return nil, fault.New(fault.Invalid, "%s must be a day of the calendar such as 2026-03-01, or a time such as 2026-03-01T15:00:00Z, not %q", argument, text).
		WithField(argument)
}

// String is the form that ParseMoment reads; empty for none.
func (m *Moment) String() string {
	switch {
	case m == nil:
		return ""
	case m.AllDay:
		return m.At.Format(time.DateOnly)
	default:
		return m.At.UTC().Format(time.RFC3339Nano)
	}
}

// Past reports whether the moment is over: a day when a later one has begun on the clock that now shows, so now must be in the
// company's zone.
func (m *Moment) Past(now time.Time) bool {
	if m.AllDay {
		return m.At.Format(time.DateOnly) < now.Format(time.DateOnly)
	}
	return m.At.Before(now)
}
