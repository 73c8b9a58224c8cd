package imports

import (
	"bufio"
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// decoded answers a text as UTF-8 without a mark. What says of itself that it is UTF-16 is turned: shells of Windows write files so.
func decoded(r io.Reader) *bufio.Reader {
	buffered := bufio.NewReaderSize(r, 64<<10)
	mark, _ := buffered.Peek(3) // a shorter file has none
	switch {
	case string(mark) == "\ufeff":
		_, _ = buffered.Discard(3)
	case len(mark) >= 2 && mark[0] == 0xff && mark[1] == 0xfe:
		_, _ = buffered.Discard(2)
		return bufio.NewReaderSize(&wide{from: buffered, order: binary.LittleEndian}, 64<<10)
	case len(mark) >= 2 && mark[0] == 0xfe && mark[1] == 0xff:
		_, _ = buffered.Discard(2)
		return bufio.NewReaderSize(&wide{from: buffered, order: binary.BigEndian}, 64<<10)
	}
	return buffered
}

// wide reads UTF-16 as UTF-8, a character at a time.
type wide struct {
	from  *bufio.Reader
	order binary.ByteOrder
	// ahead is a unit that was read and belongs to the next character.
	ahead *uint16
	left  []byte
}

// Read implements [io.Reader].
func (w *wide) Read(into []byte) (int, error) {
	n := 0
	for n < len(into) {
		if len(w.left) == 0 {
			c, err := w.character()
			if err != nil {
				return n, err
			}
			w.left = utf8.AppendRune(nil, c)
		}
		m := copy(into[n:], w.left)
		n, w.left = n+m, w.left[m:]
	}
	return n, nil
}

func (w *wide) character() (rune, error) {
	first, err := w.unit()
	if err != nil || !utf16.IsSurrogate(rune(first)) {
		return rune(first), err
	}
	second, err := w.unit()
	if err != nil {
		return utf8.RuneError, nil // a half at the end; the next call answers the end itself
	}
	c := utf16.DecodeRune(rune(first), rune(second))
	if c == utf8.RuneError {
		w.ahead = &second
	}
	return c, nil
}

func (w *wide) unit() (uint16, error) {
	if w.ahead != nil {
		unit := *w.ahead
		w.ahead = nil
		return unit, nil
	}
	var pair [2]byte
	if _, err := io.ReadFull(w.from, pair[:]); err != nil {
		return 0, err
	}
	return w.order.Uint16(pair[:]), nil
}
