package search

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Sizes of what is done at a time.
const (
	buildPage  = 1000   // items read in one query
	buildKeep  = 20_000 // items built between two manifests
	followPage = 1000   // rows of history read in one query
	memoryDocs = 20_000 // documents in memory that make it time to keep them
)

// follower is an index at work: what Run alone touches.
type follower struct {
	*Index
	folder *folder
	have   *collection
	source string // the identity
	cursor Cursor
	built  bool
	after  uuid.UUID
	// ahead are rows above the cursor that are in the index already: what committed while an older transaction still runs.
	ahead map[int64]bool
	kept  time.Time
	dirty bool
}

// Run keeps the index until ctx ends, and leaves it in its folder. It fails only when there is no folder to be had.
func (x *Index) Run(ctx context.Context) error {
	f := &follower{Index: x, ahead: map[int64]bool{}}
	var err error
	if f.folder, err = openFolder(x.options.Dir); errors.Is(err, errTaken) {
		x.options.Log.Warn("another process keeps its search index in the folder; a temporary one is used", "folder", x.options.Dir)
		f.folder, err = openFolder("")
	}
	if err != nil {
		return fmt.Errorf("open the folder of the search index: %w", err)
	}
	x.running.Store(x.options.Now().UnixNano()) // building counts as being behind
	if f.until(ctx, f.load) && f.until(ctx, f.build) {
		f.running.Store(0)
		f.follow(ctx)
	}
	return f.end()
}

// until repeats what the database does not let through, and reports whether it was done before ctx ended.
func (f *follower) until(ctx context.Context, do func(context.Context) error) bool {
	failing := false
	for {
		err := do(ctx)
		if err == nil || ctx.Err() != nil {
			return ctx.Err() == nil
		}
		if !failing {
			f.options.Log.Warn("the search index waits", "error", err)
		}
		failing = true
		f.pause(ctx)
	}
}

// pause waits for the next poll or a wake-up.
func (f *follower) pause(ctx context.Context) {
	timer := time.NewTimer(f.options.Poll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-f.wake:
	}
}

// load takes up what the folder has, or begins anew.
func (f *follower) load(ctx context.Context) error {
	var err error
	if f.source, err = f.options.Source.Identity(ctx); err != nil {
		return err
	}
	m, parts, err := f.folder.load(f.source)
	if err == nil {
		var known bool
		if known, err = f.options.Source.Knows(ctx, m.Cursor); err != nil {
			return err
		}
		if known {
			f.adopt(m, parts)
			return nil
		}
		err = fmt.Errorf("%w: it has followed a history that this database does not have", errUnusable)
	}
	if !errors.Is(err, errUnusable) {
		return err
	}
	f.options.Log.Info("the search index is built anew", "reason", err.Error())
	if err := f.folder.clear(); err != nil {
		return err
	}
	at, err := f.options.Source.Now(ctx)
	if err != nil {
		return err
	}
	f.adopt(manifest{Cursor: at}, nil)
	return nil
}

func (f *follower) adopt(m manifest, parts []*part) {
	f.cursor, f.built, f.after = m.Cursor, m.Built, m.After
	f.have = newCollection(parts)
	f.kept = f.options.Now()
	at := f.cursor
	f.Index.cursor.Store(&at)
	f.collection.Store(f.have)
	f.progress.Store(&Progress{Built: f.built})
}

// build reads the items that were not read yet, by id. What changes meanwhile is followed afterwards.
func (f *follower) build(ctx context.Context) error {
	if f.built {
		return nil
	}
	items, err := f.options.Source.Count(ctx)
	if err != nil {
		return err
	}
	sinceKept := 0
	for {
		documents, last, read, err := f.options.Source.DocumentsAfter(ctx, f.after, buildPage)
		if err != nil {
			return err
		}
		if err := f.apply(documents, nil); err != nil {
			return err
		}
		if read > 0 {
			f.after = last
		}
		progress := Progress{Built: read < buildPage, Read: f.progress.Load().Read + read, Items: items}
		f.built = progress.Built
		if sinceKept += read; sinceKept >= buildKeep || f.built && sinceKept >= buildPage {
			sinceKept = 0
			f.keep()
		}
		f.progress.Store(&progress)
		if f.built {
			return nil
		}
	}
}

// apply changes the collection and merges what is due.
func (f *follower) apply(documents []Document, gone []uuid.UUID) error {
	if len(documents)+len(gone) == 0 {
		return nil
	}
	f.dirty = true
	if err := f.have.apply(documents, gone); err != nil {
		return err
	}
	return f.have.compact(f.folder, func(err error) { f.options.Log.Error("segments of the search index were not merged", "error", err) })
}

// follow makes a pass whenever it is woken, and at each poll.
func (f *follower) follow(ctx context.Context) {
	failing := false
	for ctx.Err() == nil {
		err := f.pass(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			f.options.Log.Warn("the search index does not follow", "error", err)
		}
		failing = err != nil
		if f.dirty && (f.options.Now().Sub(f.kept) >= f.options.Keep || f.inMemory() >= memoryDocs) {
			f.keep()
		}
		f.pause(ctx)
	}
}

func (f *follower) inMemory() (docs int) {
	for _, p := range f.have.current.Load().parts {
		if p.file == "" {
			docs += p.segment.Docs()
		}
	}
	return docs
}

// pass brings the index to everything that is committed, for those who wait for it.
func (f *follower) pass(ctx context.Context) error {
	f.turn.Lock()
	p := f.next
	f.next = newPass()
	f.turn.Unlock()
	if since := f.pending.Swap(0); since != 0 {
		f.running.CompareAndSwap(0, since)
	}
	p.err = f.catchUp(ctx)
	if p.err == nil {
		f.running.Store(0)
	}
	close(p.done)
	return p.err
}

// catchUp reads the history after the cursor to its end. The cursor goes up to the first row that an older transaction may still put
// rows before; those after it are read again by the next pass, and indexed once.
func (f *follower) catchUp(ctx context.Context) error {
	settled := true
	for at := f.cursor; ; {
		changes, err := f.options.Source.Changes(ctx, at, followPage)
		if err != nil {
			return err
		}
		if err := f.index(ctx, changes); err != nil {
			return err
		}
		for _, c := range changes {
			at = c.Cursor
			if settled = settled && c.Settled; settled {
				f.cursor = at
				delete(f.ahead, at.Position)
			} else {
				f.ahead[at.Position] = true
			}
		}
		cursor := f.cursor
		f.Index.cursor.Store(&cursor)
		if len(changes) < followPage {
			return nil
		}
	}
}

// index reads again the items that changed, as they are now.
func (f *follower) index(ctx context.Context, changes []Change) error {
	changed := map[uuid.UUID]bool{}
	var ids []uuid.UUID
	for _, c := range changes {
		if c.Item != uuid.Nil && !f.ahead[c.Cursor.Position] && !changed[c.Item] {
			changed[c.Item] = true
			ids = append(ids, c.Item)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	documents, err := f.options.Source.Documents(ctx, ids)
	if err != nil {
		return err
	}
	for _, d := range documents {
		delete(changed, d.ID)
	}
	var gone []uuid.UUID
	for _, id := range ids {
		if changed[id] {
			gone = append(gone, id)
		}
	}
	return f.apply(documents, gone)
}

// keep puts the index into the folder. What fails is tried again after the next change; the index goes on in memory.
func (f *follower) keep() {
	f.kept = f.options.Now()
	v, err := f.have.keep(f.folder)
	if err == nil {
		m := manifest{Format: format, Source: f.source, Cursor: f.cursor, Built: f.built, After: f.after}
		for _, p := range v.parts {
			m.Segments = append(m.Segments, segmentFile{File: p.file, Removed: p.bits()})
		}
		err = f.folder.commit(m)
	}
	if err != nil {
		f.options.Log.Error("the search index was not kept", "error", err)
		return
	}
	f.dirty = false
}

// end leaves the index behind.
func (f *follower) end() error {
	if f.have != nil {
		f.have.merges.Wait()
		if f.dirty && !f.folder.temporary {
			f.keep()
		}
	}
	return f.folder.close()
}
