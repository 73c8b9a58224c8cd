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

// JSON answers a document without the values, whichever way its strings spell them. A document that holds none comes back byte for
// byte; numbers keep every digit either way.
func (r *Redactor) JSON(document []byte) []byte {
	if r == nil || len(r.values) == 0 || !r.suspect(document) {
		return document
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return []byte(r.Text(string(document)))
	}
	value, changed := r.clean(value)
	if !changed {
		return document
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return []byte(r.Text(string(document)))
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// suspect reports whether a document may hold a value: it stands there as it is, or there are escapes that could spell it.
func (r *Redactor) suspect(document []byte) bool {
	if bytes.IndexByte(document, '\\') >= 0 {
		return true
	}
	for _, v := range r.values {
		if bytes.Contains(document, []byte(v)) {
			return true
		}
	}
	return false
}

func (r *Redactor) clean(value any) (cleaned any, changed bool) {
	switch v := value.(type) {
	case string:
		text := r.Text(v)
		return text, text != v
	case json.Number:
		if text := r.Text(v.String()); text != v.String() {
			return text, true
		}
		return v, false
	case []any:
		for i := range v {
			var c bool
			v[i], c = r.clean(v[i])
			changed = changed || c
		}
		return v, changed
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			cleanName := r.Text(name)
			cleanMember, c := r.clean(member)
			out[cleanName] = cleanMember
			changed = changed || c || cleanName != name
		}
		return out, changed
	default:
		return value, false
	}
}
