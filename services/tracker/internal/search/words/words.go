// Package words parts text into the words that are searched, and cuts the snippets that show them.
//
// Letters and digits make words; case, accents and widths are folded away. Scripts that put no space between words (Chinese,
// Japanese, Korean, Thai and their neighbours) are parted into overlapping pairs of characters, so that any run of two or more
// of them is found wherever it stands. It is pure: what is a word is the same for what is written and for what is asked.
package words

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxWord is what a word is compared by, in bytes: longer ones (keys, encoded bytes) are the same when they begin alike.
const maxWord = 64

// Word is a word of a text and the bytes that it stands at.
type Word struct {
	Text    string
	At, End int
	// Dense says that the word is a pair of characters of a script without spaces, which has no beginnings or typos of its own.
	Dense bool
}

// dense reports whether a character is of a script that puts no space between words.
func dense(r rune) bool {
	if r < 0x0e00 {
		return false
	}
	return r == 'ー' || r == 'ｰ' || r == 'ﾞ' || r == 'ﾟ' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Bopomofo, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// part reports whether a character stands in words of spaced scripts.
func part(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Mn, r)) && !dense(r)
}

// Each calls yield for every word of s in order.
func Each(s string, yield func(Word)) {
	for at := 0; at < len(s); {
		r, size := utf8.DecodeRuneInString(s[at:])
		switch {
		case part(r):
			end, plain := spaced(s, at)
			yield(Word{Text: fold(s[at:end], plain), At: at, End: end})
			at = end
		case dense(r):
			at = pairs(s, at, yield)
		default:
			at += size
		}
	}
}

// spaced answers where the word that begins at at ends, and whether it is plain ASCII. An apostrophe between letters is inside.
func spaced(s string, at int) (end int, plain bool) {
	plain = true
	for end = at; end < len(s); {
		r, size := utf8.DecodeRuneInString(s[end:])
		if !part(r) {
			next, _ := utf8.DecodeRuneInString(s[end+size:])
			if r != '\'' && r != '’' || !unicode.IsLetter(next) || !part(next) {
				break
			}
		}
		plain = plain && r < utf8.RuneSelf
		end += size
	}
	return end, plain
}

// pairs yields the overlapping pairs of the unspaced run at at, or its one character, and answers where the run ends.
func pairs(s string, at int, yield func(Word)) int {
	first, end := at, at
	var before string
	for count := 0; ; count++ {
		next := character(s, end)
		if next == end {
			if count == 1 {
				yield(Word{Text: before, At: first, End: end, Dense: true})
			}
			return end
		}
		folded := fold(s[end:next], false)
		if count > 0 {
			yield(Word{Text: before + folded, At: first, End: next, Dense: true})
			first = end
		}
		before, end = folded, next
	}
}

// character answers where the unspaced character at at ends, with the marks upon it; at itself when there is none.
func character(s string, at int) int {
	r, size := utf8.DecodeRuneInString(s[at:])
	if size == 0 || !dense(r) {
		return at
	}
	end := at + size
	for {
		r, size = utf8.DecodeRuneInString(s[end:])
		if size == 0 || r != 'ﾞ' && r != 'ﾟ' && !unicode.Is(unicode.Mn, r) {
			return end
		}
		end += size
	}
}

// fold answers the form in which words are compared.
func fold(s string, plain bool) string {
	if plain {
		s = strings.ToLower(s)
		if strings.IndexByte(s, '\'') >= 0 {
			s = strings.ReplaceAll(s, "'", "")
		}
		return bounded(s)
	}
	var b strings.Builder
	for _, r := range norm.NFKC.String(s) {
		if r == '\'' || r == '’' {
			continue
		}
		r = unicode.ToLower(r)
		// Accents go, but not the marks that make another character of a kana or a syllable.
		if r >= utf8.RuneSelf && !dense(r) {
			decomposed := norm.NFKD.PropertiesString(string(r)).Decomposition()
			if base, _ := utf8.DecodeRune(decomposed); len(decomposed) > 0 {
				r = base
			}
			if unicode.Is(unicode.Mn, r) {
				continue
			}
		}
		b.WriteRune(r)
	}
	return bounded(b.String())
}

// bounded cuts what a word is compared by, at a whole character.
func bounded(s string) string {
	if len(s) <= maxWord {
		return s
	}
	end := maxWord
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// Of answers the different words of a text, in order.
func Of(s string) []Word {
	var all []Word
	seen := map[string]bool{}
	Each(s, func(w Word) {
		if !seen[w.Text] && w.Text != "" {
			seen[w.Text] = true
			all = append(all, w)
		}
	})
	return all
}
