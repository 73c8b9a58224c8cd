package store

import (
	"cmp"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// shards is over how many rows a project's counts are spread, so that writes in one project seldom wait for each other.
const shards = 64

// tally collects what a write changes in the counts of projects. It is queued once, after everything that locks an item: two writes
// that count the same rows then lock them in the same order.
type tally map[tallyRow]*[item.Closed + 1]int32

type tallyRow struct {
	project string
	shard   int16
}

// move counts an item where it stands after a write and no longer where it stood before. Nil on either side is nowhere, and so is
// the trash.
func (t tally) move(before, after *item.Item) {
	t.count(before, -1)
	t.count(after, 1)
}

func (t tally) count(i *item.Item, by int32) {
	if i == nil || i.Removal != nil {
		return
	}
	row := tallyRow{project: i.Project, shard: shardOf(i.ID)}
	if t[row] == nil {
		t[row] = &[item.Closed + 1]int32{}
	}
	t[row][item.GroupOf(i.Status)] += by
}

func shardOf(id uuid.UUID) int16 { return int16(id[len(id)-1] % shards) }

const addTally = `insert into tallies as t (project, shard, todo, active, done, closed) values ($1, $2, $3, $4, $5, $6)
	on conflict (project, shard) do update set todo = t.todo + excluded.todo, active = t.active + excluded.active,
		done = t.done + excluded.done, closed = t.closed + excluded.closed`

// queue writes the counts that changed.
func (t tally) queue(batch *pgx.Batch) {
	rows := slices.SortedFunc(maps.Keys(t), func(a, b tallyRow) int {
		return cmp.Or(cmp.Compare(a.project, b.project), cmp.Compare(a.shard, b.shard))
	})
	for _, row := range rows {
		if counts := t[row]; *counts != [item.Closed + 1]int32{} {
			batch.Queue(addTally, row.project, row.shard, counts[item.NotStarted], counts[item.Active], counts[item.Done], counts[item.Closed])
		}
	}
}

// queueTally is a tally of one item.
func queueTally(batch *pgx.Batch, before, after *item.Item) {
	t := tally{}
	t.move(before, after)
	t.queue(batch)
}
