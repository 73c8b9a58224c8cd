package segment

import (
	"bytes"
	"unicode/utf8"
)

// Prefixed calls yield for every word that begins with text and is longer.
func (s *Segment) Prefixed(text string, yield func(term int)) {
	for term := s.seek([]byte(text)); term < s.Terms() && bytes.HasPrefix(s.Term(term), []byte(text)); term++ {
		if len(s.Term(term)) > len(text) {
			yield(term)
		}
	}
}

// Near calls yield for every other word that is made of text by at most distance steps: a character left out, put in, taken for
// another, or changed for its neighbour. first says that the first character is right.
//
// Words are walked in order with one row of the table of distances for each character, kept for the beginning that the next word
// shares; where no word that goes on so can be near, the walk leaps over all that do.
func (s *Segment) Near(text string, distance int, first bool, yield func(term, steps int)) {
	want := []rune(text)
	w := walk{want: want, distance: distance, rows: [][]int{make([]int, len(want)+1)}}
	for i := range w.rows[0] {
		w.rows[0][i] = i
	}
	term, end := 0, s.Terms()
	if first && len(want) > 0 {
		head := []byte(string(want[:1]))
		term = s.seek(head)
		if next := after(head); next != nil {
			end = s.seek(next)
		}
	}
	for term < end {
		word := s.Term(term)
		dead := w.step(word)
		if dead > 0 {
			next := after(word[:dead])
			if next == nil {
				return
			}
			term = max(term+1, s.seek(next))
			continue
		}
		if steps := w.rows[len(w.have)][len(want)]; steps > 0 && steps <= distance {
			yield(term, steps)
		}
		term++
	}
}

// after answers the least text that is after everything that begins with prefix; nil when nothing is.
func after(prefix []byte) []byte {
	next := bytes.Clone(prefix)
	for i := len(next) - 1; i >= 0; i-- {
		if next[i]++; next[i] != 0 {
			return next[:i+1]
		}
	}
	return nil
}

// walk is the table of distances between what is wanted and the beginnings of the present word.
type walk struct {
	want     []rune
	have     []rune
	distance int
	rows     [][]int
}

// step brings the table to a word. It answers 0, or how many bytes of the word are enough to say that it is too far.
func (w *walk) step(word []byte) (dead int) {
	at, kept := 0, 0
	for at < len(word) && kept < len(w.have) {
		r, size := utf8.DecodeRune(word[at:])
		if r != w.have[kept] {
			break
		}
		at += size
		kept++
	}
	w.have = w.have[:kept]
	for at < len(word) {
		r, size := utf8.DecodeRune(word[at:])
		at += size
		w.have = append(w.have, r)
		if w.row(len(w.have)) > w.distance {
			w.have = w.have[:len(w.have)-1] // its row must not be taken up again
			return at
		}
	}
	return 0
}

// row fills the row of the first n characters and answers the least distance in it.
func (w *walk) row(n int) int {
	if n == len(w.rows) {
		w.rows = append(w.rows, make([]int, len(w.want)+1))
	}
	above, row := w.rows[n-1], w.rows[n]
	row[0] = n
	least := n
	for i, r := range w.want {
		cost := 1
		if r == w.have[n-1] {
			cost = 0
		}
		row[i+1] = min(above[i]+cost, above[i+1]+1, row[i]+1)
		if n > 1 && i > 0 && r == w.have[n-2] && w.want[i-1] == w.have[n-1] {
			row[i+1] = min(row[i+1], w.rows[n-2][i-1]+1)
		}
		least = min(least, row[i+1])
	}
	return least
}
