package yamltree

import (
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

const (
	// MaxBytes is the largest document.
	MaxBytes = 4 << 20

	// maxLines, maxBlankLines and maxKeys keep the parser out of the places where its time grows with the square of the input.
	maxLines      = 50_000
	maxBlankLines = 500
	maxKeys       = 2_000
	// maxDepth is far from where a recursive parser runs out of stack.
	maxDepth = 64
	// maxNodes counts values after aliases are followed, so a few lines of aliases cannot become a million values.
	maxNodes = 100_000
	// maxTokens is what so many values can be written with.
	maxTokens = 4 * maxNodes
)

// checkText looks at bytes and lines, before anything is parsed.
func checkText(text string) *Flaw {
	if len(text) > MaxBytes {
		return flaw(0, 0, "the file has %d bytes; at most %d (4 MiB) are read", len(text), MaxBytes)
	}
	switch {
	case strings.HasPrefix(text, "\xef\xbb\xbf"):
		return flaw(1, 1, "the file begins with a byte order mark; save it as UTF-8 without one")
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"):
		return flaw(1, 1, "the file is UTF-16; save it as UTF-8")
	}
	number, blank := 0, 0
	for line := range strings.Lines(text) {
		number++
		if number > maxLines {
			return flaw(number, 1, "the file has more than %d lines", maxLines)
		}
		if column, ok := strangeByte(line); ok {
			return flaw(number, column, "the file is not UTF-8 text: this byte is part of no character, or a control character")
		}
		if strings.TrimSpace(line) != "" {
			blank = 0
		} else if blank++; blank > maxBlankLines {
			return flaw(number, 1, "there are more than %d empty lines in a row", maxBlankLines)
		}
	}
	return nil
}

// strangeByte finds the first byte that is no part of readable text, as a column counted in characters from 1.
func strangeByte(line string) (column int, found bool) {
	for _, r := range line {
		column++
		switch {
		case r == utf8.RuneError && !strings.ContainsRune(line, '\uFFFD'), r == utf8.RuneError && !utf8.ValidString(line):
			return column, true
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0x7f:
			return column, true
		}
	}
	return 0, false
}

// checkTokens bounds nesting and the keys of one mapping. A block is known by the columns at which its lists and keys begin,
// a flow collection by its brackets.
func checkTokens(tokens token.Tokens) *Flaw {
	if len(tokens) > maxTokens {
		at := tokens[maxTokens].Position
		return flaw(at.Line, at.Column, "the file holds more than %d values", maxNodes)
	}
	type level struct{ column, keys int }
	var blocks []level
	flow := 0
	open := func(t *token.Token, key bool) *Flaw {
		column := t.Position.Column
		for len(blocks) > 0 && blocks[len(blocks)-1].column > column {
			blocks = blocks[:len(blocks)-1]
		}
		if len(blocks) == 0 || blocks[len(blocks)-1].column < column {
			blocks = append(blocks, level{column: column})
		}
		top := &blocks[len(blocks)-1]
		if key {
			top.keys++
		}
		if top.keys > maxKeys {
			return flaw(t.Position.Line, column, "this mapping has more than %d keys", maxKeys)
		}
		return nil
	}
	for i, t := range tokens {
		var f *Flaw
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow = max(0, flow-1)
		case token.SequenceEntryType:
			f = open(t, false)
		case token.MappingValueType:
			if flow == 0 && i > 0 {
				f = open(tokens[i-1], true)
			}
		case token.InvalidType:
			return nil // the parser has the words for it
		default:
		}
		if f != nil {
			return f
		}
		if len(blocks)+flow > maxDepth {
			return flaw(t.Position.Line, t.Position.Column, "values are nested more than %d deep", maxDepth)
		}
	}
	return nil
}
