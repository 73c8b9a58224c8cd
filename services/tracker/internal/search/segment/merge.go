package segment

import (
	"bytes"
	"encoding/binary"
	"io"
)

// Source is a segment to merge and which of its documents to keep.
type Source struct {
	Segment *Segment
	Keep    func(doc int) bool
}

// Merge writes one segment with what is kept of several. No two of them may keep the same document.
func Merge(out io.Writer, sources []Source) error {
	docs, numbers := mergeDocs(sources)
	w := newWriter(out, docs)
	cursors := make([]int, len(sources))
	var list []posting
	for {
		text := least(sources, cursors)
		if text == nil {
			return w.finish()
		}
		list = list[:0]
		for i, source := range sources {
			if cursors[i] == source.Segment.Terms() || !bytes.Equal(source.Segment.Term(cursors[i]), text) {
				continue
			}
			source.Segment.each(cursors[i], func(doc, amount int) {
				if number := numbers[i][doc]; number != gone {
					list = append(list, posting{number, uint32(amount)})
				}
			})
			cursors[i]++
		}
		if len(list) > 0 {
			w.term(text, list)
		}
	}
}

// gone is the number of a document that is not kept.
const gone = ^uint32(0)

// mergeDocs answers the documents that are kept in order, and each source's numbers for its own.
func mergeDocs(sources []Source) (docs []document, numbers [][]uint32) {
	at := make([]int, len(sources))
	for i, source := range sources {
		numbers = append(numbers, make([]uint32, source.Segment.docs))
		skip(source, &at[i], numbers[i])
	}
	for {
		next := -1
		for i, source := range sources {
			if at[i] < source.Segment.docs && (next < 0 || bytes.Compare(source.Segment.raw(at[i]), sources[next].Segment.raw(at[next])) < 0) {
				next = i
			}
		}
		if next < 0 {
			return docs, numbers
		}
		numbers[next][at[next]] = uint32(len(docs))
		docs = append(docs, sources[next].Segment.document(at[next]))
		at[next]++
		skip(sources[next], &at[next], numbers[next])
	}
}

// skip moves past what is not kept.
func skip(source Source, at *int, numbers []uint32) {
	for *at < source.Segment.docs && !source.Keep(*at) {
		numbers[*at] = gone
		*at++
	}
}

func (s *Segment) raw(doc int) []byte { return s.ids[doc*idBytes : (doc+1)*idBytes] }

func (s *Segment) document(doc int) document {
	mark := s.mark(doc)
	return document{
		id: s.ID(doc), project: s.projects[mark>>markBits], open: mark&openBit != 0, partial: mark&partialBit != 0,
		length: int(binary.LittleEndian.Uint32(s.lengths[4*doc:])),
	}
}

// least answers the first word that is left in any of the sources, or nil.
func least(sources []Source, cursors []int) []byte {
	var first []byte
	for i, source := range sources {
		if cursors[i] < source.Segment.Terms() {
			if text := source.Segment.Term(cursors[i]); first == nil || bytes.Compare(text, first) < 0 {
				first = text
			}
		}
	}
	return first
}
