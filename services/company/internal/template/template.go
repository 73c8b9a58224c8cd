// Package template reads texts in which `${NAME}` stands for a secret.
//
// A name is letters, digits and underscores, no digit first. Everything else in the text is itself: a dollar sign means
// something only before an opening brace, and there is no way to write a literal `${`. The package knows the form and
// nothing of where values come from.
package template

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxName is the longest name, the same as a sealed secret's.
const maxName = 128

// Template is a text that was read. The zero value is the empty text.
type Template struct{ parts []part }

// part is a literal, or a name when it is one.
type part struct {
	text string
	name bool
}

// Parse reads a text. Its errors are half sentences fit for whoever wrote the text; they never repeat it, because a broken
// template may hold what it should have pointed at.
func Parse(text string) (Template, error) {
	var t Template
	for {
		before, rest, found := strings.Cut(text, "${")
		if before != "" {
			t.parts = append(t.parts, part{text: before})
		}
		if !found {
			return t, nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return Template{}, errors.New("has a `${` that no `}` closes; write `${NAME}`")
		}
		if err := checkName(name); err != nil {
			return Template{}, err
		}
		t.parts = append(t.parts, part{text: name, name: true})
		text = after
	}
}

func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("has `${}` without a name in it; write `${NAME}`")
	case len(name) > maxName:
		return fmt.Errorf("has a `${…}` of %d bytes; a name has at most %d", len(name), maxName)
	case !ValidName(name):
		return errors.New("has a `${…}` that holds no name: a name is letters, digits and underscores and does not begin with a digit")
	}
	return nil
}

// ValidName reports whether name may stand between the braces.
func ValidName(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for i, r := range []byte(name) {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return true
}

// Names answers the names in the text, each once, in the order they first appear.
func (t Template) Names() []string {
	var names []string
	for _, p := range t.parts {
		if p.name && !slices.Contains(names, p.text) {
			names = append(names, p.text)
		}
	}
	return names
}

// Whole reports whether the text is one `${NAME}` and nothing else.
func (t Template) Whole() bool { return len(t.parts) == 1 && t.parts[0].name }

// Fill puts values in. values must hold every one of Names; a value is put in as it is and never read as a template again.
func (t Template) Fill(values map[string]string) string {
	var b strings.Builder
	for _, p := range t.parts {
		if p.name {
			b.WriteString(values[p.text])
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}
