package query

import "time"

// Span is a stretch of time, from its beginning up to, and without, its end; nil is open to that side.
type Span struct {
	// From and To are points in time.
	From, To *time.Time
	// FromDay and ToDay are the same stretch for dates that are whole days and float: midnight UTC of the date, as they are stored.
	FromDay, ToDay *time.Time
	// Absent asks for items without the date, Present for those with one.
	Absent, Present bool
	// Open narrows to items that are not finished.
	Open bool
}

// resolution is the finest step that the database keeps.
const resolution = time.Microsecond

// Span cuts the condition on the company's clock: now must be in its zone. A day is from its first moment, which is midnight but where
// the clocks skip it, up to the first moment of the next; weeks begin on Monday. A time counts for its whole day when it is compared
// with a date that is a day.
func (w When) Span(now time.Time) Span {
	switch w.Word {
	case "":
	case "none":
		return Span{Absent: true}
	case "any":
		return Span{Present: true}
	case "overdue":
		today := floating(now)
		return Span{To: &now, ToDay: &today, Open: true}
	default:
		w = stretch(w.Word)
	}
	a := w.From.cut(now)
	switch w.Op {
	case "lt":
		return Span{To: &a.from, ToDay: &a.fromDay}
	case "lte":
		return Span{To: &a.to, ToDay: &a.toDay}
	case "gt":
		return Span{From: &a.to, FromDay: &a.toDay}
	case "gte":
		return Span{From: &a.from, FromDay: &a.fromDay}
	case "range":
		b := w.To.cut(now)
		return Span{From: &a.from, To: &b.to, FromDay: &a.fromDay, ToDay: &b.toDay}
	default:
		return Span{From: &a.from, To: &a.to, FromDay: &a.fromDay, ToDay: &a.toDay}
	}
}

// cut is an anchor on a clock.
type cut struct{ from, to, fromDay, toDay time.Time }

func (a Anchor) cut(now time.Time) cut {
	if at, ok := a.instant(now); ok {
		day := floating(at.In(now.Location()))
		return cut{from: at, to: at.Add(resolution), fromDay: day, toDay: day.AddDate(0, 0, 1)}
	}
	day := a.day(now)
	next := day.AddDate(0, 0, 1)
	return cut{from: StartOfDay(day, now.Location()), to: StartOfDay(next, now.Location()), fromDay: day, toDay: next}
}

// instant answers the point in time that an anchor is, false for a day.
func (a Anchor) instant(now time.Time) (time.Time, bool) {
	if a.Base == "now" {
		switch a.Unit {
		case 'h':
			return now.Add(time.Duration(a.Offset) * time.Hour), true
		case 0:
			return now, true
		}
		day := shift(floating(now), a.Offset, a.Unit)
		return time.Date(day.Year(), day.Month(), day.Day(), now.Hour(), now.Minute(), now.Second(), now.Nanosecond(), now.Location()), true
	}
	at, err := time.Parse(time.RFC3339Nano, a.Base)
	return at, err == nil
}

// day answers the date that an anchor is, as midnight UTC.
func (a Anchor) day(now time.Time) time.Time {
	today := floating(now)
	sinceMonday := (int(today.Weekday()) + 6) % 7
	month := time.Date(today.Year(), today.Month(), 1, 0, 0, 0, 0, time.UTC)
	switch a.Base {
	case "today":
		return shift(today, a.Offset, a.Unit)
	case "tomorrow":
		return shift(today.AddDate(0, 0, 1), a.Offset, a.Unit)
	case "yesterday":
		return shift(today.AddDate(0, 0, -1), a.Offset, a.Unit)
	case "sow":
		return shift(today.AddDate(0, 0, -sinceMonday), a.Offset, a.Unit)
	case "eow":
		return shift(today.AddDate(0, 0, 6-sinceMonday), a.Offset, a.Unit)
	case "som":
		return shift(month, a.Offset, a.Unit)
	case "eom": // the end of a month that is so many months away is that month's own
		if a.Unit == 'm' || a.Unit == 'y' {
			return shift(month, a.Offset, a.Unit).AddDate(0, 1, -1)
		}
		return shift(month.AddDate(0, 1, -1), a.Offset, a.Unit)
	case "soy":
		return shift(time.Date(today.Year(), 1, 1, 0, 0, 0, 0, time.UTC), a.Offset, a.Unit)
	case "eoy":
		return shift(time.Date(today.Year(), 12, 31, 0, 0, 0, 0, time.UTC), a.Offset, a.Unit)
	default:
		day, _ := time.Parse(time.DateOnly, a.Base) // was parsed before
		return shift(day, a.Offset, a.Unit)
	}
}

// shift moves a date. A month that is too short takes its last day.
func shift(day time.Time, n int, unit byte) time.Time {
	switch unit {
	case 'd':
		return day.AddDate(0, 0, n)
	case 'w':
		return day.AddDate(0, 0, 7*n)
	case 'm', 'y':
		if unit == 'y' {
			n *= 12
		}
		first := time.Date(day.Year(), day.Month(), 1, 0, 0, 0, 0, time.UTC).AddDate(0, n, 0)
		last := first.AddDate(0, 1, -1).Day()
		return first.AddDate(0, 0, min(day.Day(), last)-1)
	default:
		return day
	}
}

// floating answers the date that a clock shows, as midnight UTC.
func floating(now time.Time) time.Time {
	return time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
}

// StartOfDay answers the first moment of a date in a zone: midnight, or what the clocks show next where they skip it. The date is a
// floating one.
func StartOfDay(day time.Time, zone *time.Location) time.Time {
	at := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, zone)
	switch shown := floating(at); {
	case shown.Before(day): // midnight was skipped, and the answer is before the gap
		_, at = at.ZoneBounds()
	case at.Hour() != 0 || at.Minute() != 0 || at.Second() != 0: // … or after it
		at, _ = at.ZoneBounds()
	default:
		// Where the clocks are set back over midnight, the date begins twice; its first beginning counts.
		if begun, _ := at.ZoneBounds(); !begun.IsZero() {
			_, offset := at.Zone()
			_, before := begun.Add(-1).Zone()
			if earlier := at.Add(time.Duration(offset-before) * time.Second); earlier.Before(begun) && floating(earlier.In(zone)).Equal(day) {
				at = earlier
			}
		}
	}
	return at.In(zone)
}
