package file

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// Page is a part of a content as it is shown.
type Page struct {
	// Content is whole characters, unless the page is Binary, which has none.
	Content []byte
	// Next is where to go on; 0 at the end.
	Next int64
	// Binary: the content is no text.
	Binary bool
}

// Text makes a page of the bytes at offset of a content of size bytes. raw may reach up to three bytes past what is wanted, so that a
// character that begins within the limit can be shown whole; the page never holds more than limit bytes unless its first
// character alone does. A page that holds NUL or what is no UTF-8 is binary.
func Text(raw []byte, offset, size int64, limit int) Page {
	cut := min(limit, len(raw))
	for cut > 0 && cut < len(raw) && !utf8.RuneStart(raw[cut]) {
		cut--
	}
	if cut == 0 && len(raw) > 0 {
		_, cut = utf8.DecodeRune(raw)
	}
	content := raw[:cut]
	if offset+int64(cut) < size && cut == len(raw) {
		content = content[:len(content)-unfinished(content)]
	}
	if bytes.IndexByte(content, 0) >= 0 || !utf8.Valid(content) {
		return Page{Binary: true}
	}
	return Page{Content: content, Next: next(offset, len(content), size)}
}

// Bytes makes a page of bytes as they are.
func Bytes(raw []byte, offset, size int64, limit int) Page {
	content := raw[:min(limit, len(raw))]
	return Page{Content: content, Next: next(offset, len(content), size)}
}

func next(offset int64, shown int, size int64) int64 {
	if end := offset + int64(shown); end < size {
		return end
	}
	return 0
}

// unfinished answers how many bytes at the end begin a character that does not end there.
func unfinished(content []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(content)); n++ {
		if b := content[len(content)-n]; utf8.RuneStart(b) {
			if !utf8.FullRune(content[len(content)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }
