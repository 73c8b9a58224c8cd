package fleet

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// verdictLife is how long a program that cannot be started is not tried for anybody.
const verdictLife = 10 * time.Second

// verdicts are programs that cannot be started at all, whoever's instance tries: fifty seats of one template must not look for one
// missing program fifty times. When a verdict is old, one instance tries for all.
type verdicts struct {
	now func() time.Time

	mu       sync.Mutex
	programs map[[sha256.Size]byte]*verdict
}

type verdict struct {
	cause   string
	until   time.Time
	retried bool // somebody tries
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
	if known == nil {
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
	v.programs[program] = &verdict{cause: cause, until: v.now().Add(verdictLife)}
}

// acquit says that a program can be started, whatever it did then.
func (v *verdicts) acquit(program [sha256.Size]byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.programs, program)
}
