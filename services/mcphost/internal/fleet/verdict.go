package fleet

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

const (
	// verdictLife is how long a program that cannot be started is not tried for anybody.
	verdictLife = 10 * time.Second
	// suspicion is how many starts of one program must fail in a row for those who failed with it to let one of them go first.
	suspicion = 3
	// scoutLife is how long they wait for that one, which is longer than it waits between two tries.
	scoutLife = 10 * time.Minute
)

// verdicts are what the instances of one program know of it together: fifty seats of one template must not look for one missing
// program fifty times, nor wear the machine down with one that fails at once.
//
//	cannot be started      nobody tries for a while, and then one for all
//	fails again and again  who has not tried yet does; of those who have, one goes on trying, and the others wait until it fares better
type verdicts struct {
	now func() time.Time

	mu       sync.Mutex
	programs map[[sha256.Size]byte]*verdict
}

type verdict struct {
	// cause is why the program cannot be started; empty when it can.
	cause   string
	until   time.Time
	retried bool // somebody tries

	failures int // of starts, in a row
	// scout is who goes on trying, until scouted.
	scout   *instance
	scouted time.Time
}

func newVerdicts(now func() time.Time) *verdicts {
	return &verdicts{now: now, programs: map[[sha256.Size]byte]*verdict{}}
}

// program names what an instance launches, without what is its seat's own.
func (p spec) program() [sha256.Size]byte {
	data, err := json.Marshal([]string{p.transport, p.command, p.url, p.variables["PATH"]})
	if err != nil {
		panic(fmt.Errorf("texts do not marshal: %w", err))
	}
	return sha256.Sum256(data)
}

// against answers why a program is not to be tried now; empty when the caller may, and then says how it went.
func (v *verdicts) against(program [sha256.Size]byte) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	known := v.programs[program]
	if known == nil || known.cause == "" {
		return ""
	}
	if !known.retried && !v.now().Before(known.until) {
		known.retried = true
		return ""
	}
	return known.cause
}

// condemn says that a program cannot be started.
func (v *verdicts) condemn(program [sha256.Size]byte, cause string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.programs[program] = &verdict{cause: cause, until: v.now().Add(verdictLife)} // whatever it did once it was started
}

// failed says that a program was started and did not become ready.
func (v *verdicts) failed(program [sha256.Size]byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	known := v.programs[program]
	if known == nil {
		known = &verdict{}
		v.programs[program] = known
	}
	known.cause = ""
	known.failures++
}

// acquit says that a program became ready.
func (v *verdicts) acquit(program [sha256.Size]byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.programs, program)
}

// holdsBack reports whether an instance that failed should let another one try first.
func (v *verdicts) holdsBack(program [sha256.Size]byte, i *instance) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	known := v.programs[program]
	if known == nil || known.failures < suspicion {
		return false
	}
	if now := v.now(); known.scout == nil || known.scout == i || !now.Before(known.scouted) {
		known.scout, known.scouted = i, now.Add(scoutLife)
		return false
	}
	return true
}

// leave lets another instance go first in the place of one that ends.
func (v *verdicts) leave(program [sha256.Size]byte, i *instance) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known := v.programs[program]; known != nil && known.scout == i {
		known.scout = nil
	}
}
