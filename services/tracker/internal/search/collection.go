package search

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/services/tracker/internal/search/segment"
	"github.com/bullpenhq/bullpen/services/tracker/internal/search/words"
)

// Document is what is searched of an item.
type Document struct {
	ID      uuid.UUID
	Project string
	Open    bool
	Title   string
	Body    string
	// Comments are those that are searched, newest first.
	Comments []string
	// Partial says that older ones were left out.
	Partial bool
}

// titleWeight is how often a word of the title counts.
const titleWeight = 3

// fanOut is how many segments of about one size are merged into one.
const fanOut = 4

// inlineDocs is what a merge may hold up writing for; larger ones are made beside it.
const inlineDocs = 4096

// part is a segment and which of its documents still count. It never changes.
type part struct {
	segment *segment.Segment
	// removed has a bit for each document that was written again or removed; nil when there is none.
	removed []uint64
	dead    int
	// file is where it is kept; empty for one in memory alone.
	file string
	// origin is the same for all that became of one part: with more removed, or kept in a file.
	origin *origin
}

// origin is told from others by its address, so it must not be empty.
type origin struct{ _ byte }

func newPart(s *segment.Segment, file string) *part {
	return &part{segment: s, file: file, origin: new(origin)}
}

func (p *part) alive(doc int) bool { return p.removed == nil || p.removed[doc>>6]&(1<<(doc&63)) == 0 }

// without answers the part with documents removed.
func (p *part) without(docs []int) *part {
	removed := make([]uint64, (p.segment.Docs()+63)/64)
	copy(removed, p.removed)
	dead := p.dead
	for _, doc := range docs {
		if removed[doc>>6]&(1<<(doc&63)) == 0 {
			removed[doc>>6] |= 1 << (doc & 63)
			dead++
		}
	}
	return &part{segment: p.segment, removed: removed, dead: dead, file: p.file, origin: p.origin}
}

// view is the parts at one moment.
type view struct {
	parts []*part
	// docs and length are of all documents, removed ones among them until they are merged away: as the frequencies of words are.
	docs   int
	length uint64
}

func newView(parts []*part) *view {
	v := &view{parts: parts}
	for _, p := range parts {
		v.docs += p.segment.Docs()
		v.length += p.segment.Length()
	}
	return v
}

// mean is the mean length of a document.
func (v *view) mean() float32 { return float32(max(1, v.length)) / float32(max(1, v.docs)) }

// alive is how many documents count.
func (v *view) alive() (n int) {
	for _, p := range v.parts {
		n += p.segment.Docs() - p.dead
	}
	return n
}

// partial is about how many of them are not held whole.
func (v *view) partial() (n int) {
	for _, p := range v.parts {
		n += p.segment.Partial()
	}
	return n
}

// collection is the segments of an index. Reading never waits; one caller at a time may write.
type collection struct {
	current atomic.Pointer[view]
	writing sync.Mutex // guards what current is set to
	merging atomic.Bool
	scratch scratch
	merges  sync.WaitGroup
}

func newCollection(parts []*part) *collection {
	c := &collection{}
	c.current.Store(newView(parts))
	return c
}

// apply puts documents in place of what the index has of them, and removes others.
func (c *collection) apply(documents []Document, gone []uuid.UUID) error {
	var builder segment.Builder
	ids := gone
	for _, d := range documents {
		add(&builder, d)
		ids = append(ids, d.ID)
	}
	var fresh *part
	if len(documents) > 0 {
		var encoded bytes.Buffer
		if err := builder.Encode(&encoded); err != nil {
			return err
		}
		s, err := segment.Parse(encoded.Bytes())
		if err != nil {
			return err
		}
		fresh = newPart(s, "")
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	var parts []*part
	for _, p := range c.current.Load().parts {
		var docs []int
		for _, id := range ids {
			if doc, ok := p.segment.Find(id); ok && p.alive(doc) {
				docs = append(docs, doc)
			}
		}
		if len(docs) > 0 {
			p = p.without(docs)
		}
		if p.dead < p.segment.Docs() {
			parts = append(parts, p)
		}
	}
	if fresh != nil {
		parts = append(parts, fresh)
	}
	c.current.Store(newView(parts))
	return nil
}

func add(b *segment.Builder, d Document) {
	b.Add(d.ID, d.Project, d.Open, d.Partial)
	words.Each(d.Title, func(w words.Word) { b.Word(w.Text, titleWeight) })
	words.Each(d.Body, func(w words.Word) { b.Word(w.Text, 1) })
	for _, comment := range d.Comments {
		words.Each(comment, func(w words.Word) { b.Word(w.Text, 1) })
	}
}

// level groups parts of about one size.
func level(p *part) int { return bits.Len(uint(p.segment.Docs()-p.dead)) / 2 }

// due answers parts that are to be merged, small ones first: several of one size, or one of which more is removed than not. Nil when
// there are none.
func (v *view) due() (parts []*part, docs int) {
	levels := map[int][]*part{}
	for _, p := range v.parts {
		levels[level(p)] = append(levels[level(p)], p)
	}
	for l := range bits.UintSize {
		if len(levels[l]) >= fanOut {
			for _, p := range levels[l] {
				docs += p.segment.Docs()
			}
			return levels[l], docs
		}
	}
	for _, p := range v.parts {
		if p.dead > p.segment.Docs()/2 {
			return []*part{p}, p.segment.Docs()
		}
	}
	return nil, 0
}

// merged makes one part of several.
func merged(parts []*part, f *folder) (*part, error) {
	sources := make([]segment.Source, len(parts))
	for i, p := range parts {
		sources[i] = segment.Source{Segment: p.segment, Keep: p.alive}
	}
	defer runtime.KeepAlive(parts) // their bytes may be mapped
	if f != nil {
		return f.write(func(out writer) error { return segment.Merge(out, sources) })
	}
	var encoded bytes.Buffer
	if err := segment.Merge(&encoded, sources); err != nil {
		return nil, err
	}
	s, err := segment.Parse(encoded.Bytes())
	return newPart(s, ""), err
}

// replace puts a part in place of those that it was made of. What was removed from them meanwhile is removed from it.
func (c *collection) replace(old []*part, made *part) {
	c.writing.Lock()
	defer c.writing.Unlock()
	now := map[*origin]*part{}
	var parts []*part
	for _, p := range c.current.Load().parts {
		now[p.origin] = p
		if !slices.ContainsFunc(old, func(o *part) bool { return o.origin == p.origin }) {
			parts = append(parts, p)
		}
	}
	var docs []int
	for _, then := range old {
		// A part of which nothing is left is no longer there.
		p, left := now[then.origin]
		if left && p.dead == then.dead {
			continue
		}
		for doc := range then.segment.Docs() {
			if then.alive(doc) && (!left || !p.alive(doc)) {
				if at, ok := made.segment.Find(then.segment.ID(doc)); ok {
					docs = append(docs, at)
				}
			}
		}
	}
	if len(docs) > 0 {
		made = made.without(docs)
	}
	if made.dead < made.segment.Docs() {
		parts = append([]*part{made}, parts...)
	}
	c.current.Store(newView(parts))
	runtime.KeepAlive(old)
}

// keep writes the parts that are in memory alone into the folder, and answers the view when all are there.
func (c *collection) keep(f *folder) (*view, error) {
	for _, p := range c.current.Load().parts {
		if p.file != "" {
			continue
		}
		kept, err := f.write(func(out writer) error {
			_, err := out.Write(p.segment.Bytes())
			return err
		})
		if err != nil {
			return nil, err
		}
		c.writing.Lock()
		var parts []*part
		for _, now := range c.current.Load().parts {
			if now.origin == p.origin {
				now = &part{segment: kept.segment, removed: now.removed, dead: now.dead, file: kept.file, origin: now.origin}
			}
			parts = append(parts, now)
		}
		c.current.Store(newView(parts))
		c.writing.Unlock()
	}
	return c.current.Load(), nil
}

// compact merges what is due: small parts at once, large ones beside whatever else happens, into the folder. failed is told what went
// wrong there; the parts then stay as they are.
func (c *collection) compact(f *folder, failed func(error)) error {
	for {
		parts, docs := c.current.Load().due()
		if parts == nil {
			return nil
		}
		if docs <= inlineDocs {
			made, err := merged(parts, nil)
			if err != nil {
				return err
			}
			c.replace(parts, made)
			continue
		}
		if !c.merging.CompareAndSwap(false, true) {
			return nil
		}
		c.merges.Go(func() {
			defer c.merging.Store(false)
			made, err := merged(parts, f)
			if err != nil {
				failed(err)
				return
			}
			c.replace(parts, made)
		})
		return nil
	}
}

// bits are what was removed, as the folder keeps it.
func (p *part) bits() []byte {
	if p.dead == 0 {
		return nil
	}
	raw := make([]byte, 0, 8*len(p.removed))
	for _, word := range p.removed {
		raw = binary.LittleEndian.AppendUint64(raw, word)
	}
	return raw
}
