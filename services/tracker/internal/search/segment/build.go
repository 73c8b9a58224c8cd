package segment

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"hash"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Builder gathers documents for a segment. The zero value is ready. It is not safe for concurrent use.
type Builder struct {
	docs     []document
	postings map[string][]posting
	counts   map[string]int
}

type document struct {
	id      uuid.UUID
	project string
	open    bool
	partial bool
	length  int
}

// posting is a document and how much of a word it has.
type posting struct{ doc, amount uint32 }

// Add begins a document; an id may be added once. partial says that not all of its text will follow.
func (b *Builder) Add(id uuid.UUID, project string, open, partial bool) {
	if b.postings == nil {
		b.postings, b.counts = map[string][]posting{}, map[string]int{}
	}
	b.flush()
	b.docs = append(b.docs, document{id: id, project: project, open: open, partial: partial})
}

// Word adds a word to the document that was begun last, as if it stood there weight times.
func (b *Builder) Word(text string, weight int) {
	if text != "" {
		b.counts[text] += weight
		b.docs[len(b.docs)-1].length += weight
	}
}

// flush turns the last document's words into postings.
func (b *Builder) flush() {
	doc := uint32(len(b.docs) - 1)
	for text, amount := range b.counts {
		b.postings[text] = append(b.postings[text], posting{doc, uint32(amount)})
	}
	clear(b.counts)
}

// Docs is how many documents were begun.
func (b *Builder) Docs() int { return len(b.docs) }

// Encode writes the segment. The builder is spent afterwards.
func (b *Builder) Encode(out io.Writer) error {
	b.flush()
	order := make([]int, len(b.docs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int { return bytes.Compare(b.docs[x].id[:], b.docs[y].id[:]) })
	number := make([]uint32, len(order))
	docs := make([]document, len(order))
	for at, doc := range order {
		number[doc], docs[at] = uint32(at), b.docs[doc]
	}
	terms := make([]string, 0, len(b.postings))
	for text := range b.postings {
		terms = append(terms, text)
	}
	slices.Sort(terms)
	w := newWriter(out, docs)
	for _, text := range terms {
		list := b.postings[text]
		for i := range list {
			list[i].doc = number[list[i].doc]
		}
		w.term([]byte(text), list)
	}
	return w.finish()
}

// writer lays out a segment: documents first, then words in order. It keeps the first error, and the words, as they come last.
type writer struct {
	out        *bufio.Writer
	sum        hash.Hash32
	size       uint64
	err        error
	at         [sections]uint64
	length     uint64
	terms      []byte
	dictionary []byte
	buffer     []byte
}

func (w *writer) write(data []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(data)
		w.sum.Write(data)
		w.size += uint64(len(data))
	}
}

func (w *writer) number(n uint32) {
	w.buffer = binary.LittleEndian.AppendUint32(w.buffer[:0], n)
	w.write(w.buffer)
}

func newWriter(out io.Writer, docs []document) *writer {
	w := &writer{out: bufio.NewWriterSize(out, 1<<16), sum: crc32.New(castagnoli())}
	w.write([]byte(magic))
	w.at[0] = w.size
	for _, d := range docs {
		w.write(d.id[:])
		w.length += uint64(d.length)
		if d.partial {
			w.at[7]++
		}
	}
	w.at[1] = w.size
	for _, d := range docs {
		w.number(uint32(d.length))
	}
	w.at[2] = w.size
	numbers := map[string]uint32{}
	var names []string
	for _, d := range docs {
		number, known := numbers[d.project]
		if !known {
			number = uint32(len(names))
			numbers[d.project], names = number, append(names, d.project)
		}
		mark := number << markBits
		if d.open {
			mark |= openBit
		}
		if d.partial {
			mark |= partialBit
		}
		w.number(mark)
	}
	w.at[3] = w.size
	w.write([]byte(strings.Join(names, "\x00")))
	w.at[4] = w.size
	return w
}

// term adds a word, which must come after the one before.
func (w *writer) term(text []byte, list []posting) {
	if !slices.IsSortedFunc(list, byDoc) {
		slices.SortFunc(list, byDoc)
	}
	w.dictionary = binary.LittleEndian.AppendUint32(w.dictionary, uint32(len(w.terms)))
	w.dictionary = binary.LittleEndian.AppendUint32(w.dictionary, uint32(len(list)))
	w.dictionary = binary.LittleEndian.AppendUint64(w.dictionary, w.size-w.at[4])
	w.terms = append(w.terms, text...)
	next := uint32(0)
	encoded := w.buffer[:0]
	for _, p := range list {
		gap := uint64(p.doc-next) << 1
		if p.amount != 1 {
			encoded = binary.AppendUvarint(encoded, gap|1)
			encoded = binary.AppendUvarint(encoded, uint64(p.amount))
		} else {
			encoded = binary.AppendUvarint(encoded, gap)
		}
		next = p.doc + 1
	}
	w.write(encoded)
	w.buffer = encoded
}

func byDoc(x, y posting) int { return int(x.doc) - int(y.doc) }

func (w *writer) finish() error {
	w.at[5] = w.size
	w.write(w.terms)
	w.at[6] = w.size
	w.write(w.dictionary)
	trailer := w.buffer[:0]
	for _, at := range w.at {
		trailer = binary.LittleEndian.AppendUint64(trailer, at)
	}
	w.write(binary.LittleEndian.AppendUint64(trailer, w.length))
	w.number(w.sum.Sum32())
	if w.err != nil {
		return w.err
	}
	return w.out.Flush()
}
