package hygiene

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrNotJSON refuses a document that is not one JSON value.
var ErrNotJSON = errors.New("not JSON")

// JSON cleans the strings of a JSON document, names of members included, and leaves every other byte. A member named
// `password` is redacted like `password=…` in text. Errors are [ErrBinary] and [ErrNotJSON].
func (c *Cleaner) JSON(document string) (string, error) {
	if !utf8.ValidString(document) {
		return "", ErrBinary
	}
	if !json.Valid([]byte(document)) {
		return "", ErrNotJSON
	}
	if !c.suspicious(document) {
		return document, nil
	}
	return c.cleanStrings(document)
}

// suspicious reports whether a document can need cleaning at all: most need none, and this costs a tenth of a walk.
func (c *Cleaner) suspicious(document string) bool {
	if strings.Contains(document, `\u`) || strings.IndexByte(document, 0x7f) >= 0 || strings.Contains(document, `\b`) || strings.Contains(document, `\f`) {
		return true
	}
	if strings.Contains(document, `"password"`) {
		return true
	}
	for i := range c.shapes {
		if !strings.Contains(document, c.shapes[i].needs) {
			continue
		}
		for _, anchor := range c.shapes[i].anchors {
			if strings.Contains(document, anchor) {
				return true
			}
		}
	}
	// A slash may be written `\/`, which hides the anchor of a URL.
	return strings.Contains(document, `\/`)
}

// cleanStrings copies a valid document, literal by literal.
func (c *Cleaner) cleanStrings(document string) (string, error) {
	var b strings.Builder
	secret := false // the literal to come is the value of a member named password
	for i := 0; i < len(document); {
		if document[i] != '"' {
			switch document[i] {
			case ',', '{', '[':
				secret = false
			}
			b.WriteByte(document[i])
			i++
			continue
		}
		end := closingQuote(document, i)
		literal := document[i:end]
		cleaned, text, err := c.cleanLiteral(literal)
		if err != nil {
			return "", err
		}
		isName := followedByColon(document, end)
		if secret && !isName && text != "" {
			cleaned = `"[REDACTED:password]"`
		}
		secret = isName && text == "password"
		b.WriteString(cleaned)
		i = end
	}
	return b.String(), nil
}

// cleanLiteral answers a literal cleaned, and the text it stands for. A clean one keeps its spelling.
func (c *Cleaner) cleanLiteral(literal string) (cleaned, text string, err error) {
	if err := json.Unmarshal([]byte(literal), &text); err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrNotJSON, err)
	}
	clean, err := c.Text(text)
	if err != nil {
		return "", "", err
	}
	if clean == text {
		return literal, text, nil
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(clean); err != nil {
		return "", "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), clean, nil
}

// closingQuote answers the index behind the quote that ends the literal at begin.
func closingQuote(document string, begin int) int {
	for i := begin + 1; i < len(document); i++ {
		switch document[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(document)
}

func followedByColon(document string, i int) bool {
	for ; i < len(document); i++ {
		switch document[i] {
		case ' ', '\t', '\n', '\r':
		default:
			return document[i] == ':'
		}
	}
	return false
}
