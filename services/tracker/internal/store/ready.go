package store

import (
	"fmt"
)

// Whoever asks what is ready, as the four arguments of readyFor that begin at a place: who has items, who holds claims and of which kind, and
// the moment by the tracker's clock.
func readyArgs(a Act) []any { return []any{a.By.Seat, a.By.Name, a.By.Kind, a.At} }

// readyFor answers the condition that an item i may be taken up by somebody: it is open, waits for nothing, is theirs or nobody's, and nobody
// else works on it. first is the place of the first of [readyArgs] among a statement's arguments.
func readyFor(first int) string {
	return fmt.Sprintf(`(i.status_group < 2 and i.removed_at is null and (i.assignee = '' or i.assignee = $%[1]d)
		and (i.claim_until is null or i.claim_until <= $%[4]d or i.claim_holder = $%[2]d and i.claim_kind = $%[3]d)
		and not exists (select from relations r where r.from_id = i.id and r.kind = 'waiting_on' and r.cleared_at is null and r.to_open))`, first, first+1, first+2, first+3)
}

// readyOrder is which of the items that are ready comes first; items_ready_idx has them in it.
const readyOrder = `i.priority desc, i.due_at, i.created_at, i.id`
