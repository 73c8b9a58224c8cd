package session

import "time"

// strayTime is how long a call that was given up counts as open where all calls share one stream: its server may not have heard
// yet, and what it asks meanwhile must not reach another call, which would be the only one left.
const strayTime = time.Minute

// strays are the calls that were given up and that the server has not answered, with the moments until which they count. It is used
// under the session's lock.
type strays map[int64]time.Time

func (s strays) add(id int64, now time.Time) {
	s.any(now)
	s[id] = now.Add(strayTime)
}

// any reports whether one counts, and forgets those that do not any more.
func (s strays) any(now time.Time) bool {
	for id, until := range s {
		if !now.Before(until) {
			delete(s, id)
		}
	}
	return len(s) > 0
}
