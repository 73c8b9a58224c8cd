// Package segment is the immutable piece that an index is made of: an inverted file of some documents, in one run of bytes that is
// read where it lies, in memory or mapped from a file.
//
//	magic │ ids │ lengths │ marks │ projects │ postings │ terms │ dictionary │ trailer with the counts and a checksum
//
// Documents are numbered in the order of their ids, so that finding one is a binary search and no table of ids is kept. A posting is
// the gap to the document before and how much of the word the document has. Nothing in a segment changes: what is removed from it is
// marked by whoever holds it, and goes when segments are merged.
package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sort"
	"unsafe"

	"github.com/google/uuid"
)

// magic names the format; its last figure changes with it.
const magic = "BLPNSRC1"

const (
	idBytes      = 16
	entryBytes   = 16 // a term's offset and frequency, and its postings' offset
	trailerBytes = 8*sections + 8 + 4
	sections     = 8
)

// ErrDamaged is answered for bytes that are no whole segment.
var ErrDamaged = errors.New("the segment is damaged")

// castagnoli is made once, however often it is asked for.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// Segment reads a segment. It is safe for concurrent use, for as long as its bytes stay.
type Segment struct {
	data       []byte
	ids        []byte
	lengths    []byte
	marks      []byte
	projects   []string
	postings   []byte
	terms      []byte
	dictionary []byte
	docs       int
	length     uint64
	partial    int
}

// Parse reads the bytes of a segment, which must not change as long as it is used.
func Parse(data []byte) (*Segment, error) {
	if len(data) < len(magic)+trailerBytes || string(data[:len(magic)]) != magic {
		return nil, ErrDamaged
	}
	body, sum := data[:len(data)-4], binary.LittleEndian.Uint32(data[len(data)-4:])
	if crc32.Checksum(body, castagnoli()) != sum {
		return nil, fmt.Errorf("%w: its checksum is another", ErrDamaged)
	}
	trailer := data[len(data)-trailerBytes:]
	var at [sections]int
	for i := range at {
		at[i] = int(binary.LittleEndian.Uint64(trailer[8*i:]))
	}
	s := &Segment{data: data, length: binary.LittleEndian.Uint64(trailer[8*sections:])}
	end := len(data) - trailerBytes
	cut := func(i int) []byte {
		to := end
		if i+1 < sections-1 {
			to = at[i+1]
		}
		return data[at[i]:to:to]
	}
	s.ids, s.lengths, s.marks = cut(0), cut(1), cut(2)
	for _, name := range bytes.Split(cut(3), []byte{0}) {
		s.projects = append(s.projects, string(name))
	}
	s.postings, s.terms, s.dictionary = cut(4), cut(5), cut(6)
	s.docs, s.partial = len(s.ids)/idBytes, at[7]
	return s, nil
}

// Bytes are what the segment was read from.
func (s *Segment) Bytes() []byte { return s.data }

// Docs is how many documents it holds, removed ones among them.
func (s *Segment) Docs() int { return s.docs }

// Length is how many words they have together, weighted.
func (s *Segment) Length() uint64 { return s.length }

// Partial is how many of them were too long to be held whole.
func (s *Segment) Partial() int { return s.partial }

// ID answers the id of a document.
func (s *Segment) ID(doc int) uuid.UUID { return uuid.UUID(s.ids[doc*idBytes:]) }

// Find answers the number of a document.
func (s *Segment) Find(id uuid.UUID) (int, bool) {
	doc := sort.Search(s.docs, func(i int) bool { return bytes.Compare(s.ids[i*idBytes:(i+1)*idBytes], id[:]) >= 0 })
	return doc, doc < s.docs && s.ID(doc) == id
}

// A document's mark is its project's number above two bits.
const (
	openBit    = 1
	partialBit = 2
	markBits   = 2
)

func (s *Segment) mark(doc int) uint32 { return binary.LittleEndian.Uint32(s.marks[4*doc:]) }

// Filter answers which documents pass: those of a project unless it is empty, and only open ones where that is asked.
func (s *Segment) Filter(project string, openOnly bool) func(doc int) bool {
	if project == "" {
		return func(doc int) bool { return !openOnly || s.mark(doc)&openBit != 0 }
	}
	number := uint32(len(s.projects)) // nobody's
	for i, name := range s.projects {
		if name == project {
			number = uint32(i)
		}
	}
	return func(doc int) bool {
		mark := s.mark(doc)
		return mark>>markBits == number && (!openOnly || mark&openBit != 0)
	}
}

// Terms is how many different words there are.
func (s *Segment) Terms() int { return len(s.dictionary) / entryBytes }

// Term answers a word. The bytes are the segment's.
func (s *Segment) Term(term int) []byte {
	entry := s.dictionary[term*entryBytes:]
	from, to := binary.LittleEndian.Uint32(entry), uint32(len(s.terms))
	if (term+1)*entryBytes < len(s.dictionary) {
		to = binary.LittleEndian.Uint32(entry[entryBytes:])
	}
	return s.terms[from:to]
}

// Frequency answers how many documents have a word, removed ones among them.
func (s *Segment) Frequency(term int) int {
	return int(binary.LittleEndian.Uint32(s.dictionary[term*entryBytes+4:]))
}

// seek answers the first word that is not before text.
func (s *Segment) seek(text []byte) int {
	return sort.Search(s.Terms(), func(i int) bool { return bytes.Compare(s.Term(i), text) >= 0 })
}

// Lookup finds a word.
func (s *Segment) Lookup(text string) (int, bool) {
	raw := unsafe.Slice(unsafe.StringData(text), len(text)) // read alone
	term := s.seek(raw)
	return term, term < s.Terms() && string(s.Term(term)) == text
}

// Saturation and length normalisation of BM25.
const (
	K1 = 1.2
	B  = 0.75
)

// Score adds to every document's place in scores what a word is worth in it: BM25 with weight in place of the word's rarity. mean is
// the mean length of all documents of the index.
func (s *Segment) Score(term int, weight, mean float32, scores []float32) {
	s.each(term, func(doc, amount int) { scores[doc] += weight * s.worth(doc, amount, mean) })
}

// ScoreBest is Score for one of several words of which only the one that is worth most counts; best is what counted so far.
func (s *Segment) ScoreBest(term int, weight, mean float32, scores, best []float32) {
	s.each(term, func(doc, amount int) {
		if score := weight * s.worth(doc, amount, mean); score > best[doc] {
			scores[doc] += score - best[doc]
			best[doc] = score
		}
	})
}

func (s *Segment) worth(doc, amount int, mean float32) float32 {
	length := float32(binary.LittleEndian.Uint32(s.lengths[4*doc:]))
	return Worth(float32(amount), length, mean)
}

// Worth is how much of a word's rarity counts in a document of a length that has amount of it.
func Worth(amount, length, mean float32) float32 {
	return amount * (K1 + 1) / (amount + K1*(1-B+B*length/mean))
}

// each reads a word's postings.
func (s *Segment) each(term int, yield func(doc, amount int)) {
	data := s.postings[binary.LittleEndian.Uint64(s.dictionary[term*entryBytes+8:]):]
	doc := -1
	for range s.Frequency(term) {
		gap, size := uvarint(data)
		data = data[size:]
		doc += int(gap>>1) + 1
		amount := uint64(1)
		if gap&1 == 1 {
			amount, size = uvarint(data)
			data = data[size:]
		}
		yield(doc, int(amount))
	}
}

// uvarint is binary.Uvarint with its commonest case in front.
func uvarint(data []byte) (uint64, int) {
	if data[0] < 0x80 {
		return uint64(data[0]), 1
	}
	return binary.Uvarint(data)
}
