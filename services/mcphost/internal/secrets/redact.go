package secrets

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

const (
	// minSecret is the shortest value that is taken out: a shorter one is found in half of all words.
	minSecret = 4
	// minLine is the shortest line of a value of several lines that is taken out by itself.
	minLine = 12
	// mask has the form of all marks that stand for a secret: [REDACTED:<kind>].
	mask = "[REDACTED:secret]"
)

// Redactor takes values out of texts. The zero value and nil take out nothing. Safe for concurrent use.
type Redactor struct {
	values   []string // longest first, so that a value within another does not spoil it
	replacer *strings.Replacer
}

// NewRedactor makes a redactor of secret values.
func NewRedactor(secrets []string) *Redactor {
	r := &Redactor{}
	for _, secret := range secrets {
		if len(secret) >= minSecret {
			r.values = append(r.values, secret)
		}
		if !strings.Contains(secret, "\n") {
			continue
		}
		// A key of several lines is printed line by line.
		for line := range strings.Lines(secret) {
			if line = strings.TrimSpace(line); len(line) >= minLine {
				r.values = append(r.values, line)
			}
		}
	}
	slices.SortFunc(r.values, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2+2*len(r.values))
	pairs = append(pairs, mask, mask) // first of all: a mark stays whole, whatever the values are
	for _, v := range r.values {
		pairs = append(pairs, v, mask)
	}
	r.replacer = strings.NewReplacer(pairs...)
	return r
}

// With answers a redactor that takes out more values.
func (r *Redactor) With(secrets ...string) *Redactor {
	if r != nil {
		secrets = append(slices.Clone(r.values), secrets...)
	}
	return NewRedactor(secrets)
}

// Text answers a text without the values.
func (r *Redactor) Text(text string) string {
	if r == nil || len(r.values) == 0 {
		return text
	}
	return r.replacer.Replace(text)
}

// JSON answers a document without the values, whichever way its strings spell them. All else of it stays byte for byte: the other
// values, their order, the digits of numbers. It takes little more memory than the document, whatever stands in it.
func (r *Redactor) JSON(document []byte) []byte {
	if r == nil || len(r.values) == 0 || !r.suspect(document) {
		return document
	}
	if !json.Valid(document) {
		return []byte(r.Text(string(document)))
	}
	var out []byte // what was copied up to done; nil while nothing changed
	done := 0
	for i := 0; i < len(document); {
		end := atomEnd(document, i)
		if cleaned, changed := r.atom(document[i:end]); changed {
			out = append(append(out, document[done:i]...), cleaned...)
			done = end
		}
		i = end
	}
	if out == nil {
		return document
	}
	return append(out, document[done:]...)
}

// suspect reports whether a document may hold a value: it stands there as it is, or there are escapes that could spell it.
func (r *Redactor) suspect(document []byte) bool {
	return bytes.IndexByte(document, '\\') >= 0 || r.holds(document)
}

func (r *Redactor) holds(text []byte) bool {
	return slices.ContainsFunc(r.values, func(v string) bool { return bytes.Contains(text, []byte(v)) })
}

// atomEnd answers the end of what begins at i in a valid document: a string, a number, a word, or one character between them.
func atomEnd(d []byte, i int) int {
	if d[i] == '"' {
		for i++; d[i] != '"'; i++ {
			if d[i] == '\\' {
				i++
			}
		}
		return i + 1
	}
	end := i
	for end < len(d) && strings.IndexByte("\"{}[]:, \t\r\n", d[end]) < 0 {
		end++
	}
	return max(end, i+1)
}

// atom answers a string or a number without the values, as a string.
func (r *Redactor) atom(raw []byte) (cleaned []byte, changed bool) {
	switch c := raw[0]; {
	case c == '"' && (bytes.IndexByte(raw, '\\') >= 0 || r.holds(raw)):
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return nil, false
		}
		return r.respell(text)
	case (c == '-' || c >= '0' && c <= '9') && r.holds(raw):
		return r.respell(string(raw))
	default:
		return nil, false
	}
}

// respell answers a text without the values as JSON.
func (r *Redactor) respell(text string) (cleaned []byte, changed bool) {
	clean := r.Text(text)
	if clean == text {
		return nil, false
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(clean) // a text always is
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), true
}
