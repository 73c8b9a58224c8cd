// Package label is the words that a project lets its items carry.
//
// It is pure. A label has a slug that never changes, under which items keep it, and a text that people read, which may. Two labels of a
// project never read alike: neither slug nor text of one may be taken for those of another.
package label

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/nearest"
)

// Limits. Sizes are in bytes.
const (
	MaxPerItem          = 40
	MaxPerProject       = 512
	MaxBytes            = 64
	MaxDescriptionBytes = 500
)

// Label is a word that items of a project can carry.
type Label struct {
	// Slug is how arguments name it.
	Slug string `json:"slug"`
	// Label is what people read.
	Label       string `json:"label"`
	Color       string `json:"color"`
	Description string `json:"description"`
	// Archived: no item takes it any more. It stays so.
	Archived  bool      `json:"archived"`
	Author    string    `json:"author"`
	CreatedAt time.Time `json:"created_at"`
}

// Name is the label's text as a slug: labels with one name read alike.
func (l Label) Name() string { return Slug(l.Label) }

// Slug answers the slug of a text: letters and digits of any script in lower case, one hyphen for whatever stands between them. It is empty
// when the text has neither.
func Slug(text string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.TrimPrefix(text, "#") {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			gap = b.Len() > 0
			continue
		}
		if gap {
			b.WriteByte('-')
			gap = false
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

var color = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

// New answers the label that a text declares. argument is the one that it came in.
func New(argument, slug, text string) (Label, error) {
	l := Label{Slug: Slug(slug), Label: strings.TrimSpace(text)}
	if l.Label == "" {
		l.Label = strings.TrimSpace(slug)
	}
	if l.Slug == "" || l.Name() == "" {
		return Label{}, fault.New(fault.Invalid, "%q cannot be a label: it has neither letters nor digits", orText(slug, text)).WithField(argument)
	}
	if len(l.Slug) > MaxBytes || len(l.Label) > MaxBytes {
		return Label{}, fault.New(fault.Invalid, "a label has at most %d bytes, and %q has %d", MaxBytes, l.Label, max(len(l.Slug), len(l.Label))).WithField(argument)
	}
	return l, nil
}

func orText(slug, text string) string {
	if Slug(slug) == "" {
		return slug
	}
	return text
}

// Paint sets the label's colour, `#rrggbb` or empty for none.
func (l *Label) Paint(argument, to string) error {
	if to != "" && !color.MatchString(to) {
		return fault.New(fault.Invalid, "color must be such as #1f6feb, not %q", to).WithField(argument)
	}
	l.Color = to
	return nil
}

// find answers the label that a text names, by slug, or by what it reads as; -1 for none.
func find(declared []Label, text string) int {
	slug := Slug(text)
	if at := slices.IndexFunc(declared, func(l Label) bool { return slug != "" && l.Slug == slug }); at >= 0 {
		return at
	}
	return slices.IndexFunc(declared, func(l Label) bool { return slug != "" && l.Name() == slug })
}

// collides answers the label that a new or renamed one would be taken for; -1 for none.
func collides(declared []Label, l Label) int {
	return slices.IndexFunc(declared, func(other Label) bool {
		return other.Slug != l.Slug && (other.Slug == l.Name() || other.Name() == l.Name() || other.Name() == l.Slug)
	})
}

// typo warns of a slug that is one slip from another.
func typo(declared []Label, slug string) []string {
	for _, other := range declared {
		if !other.Archived && nearest.Typo(other.Slug, slug) {
			return []string{"label " + slug + " was declared although it is nearly " + other.Slug + ": if that was meant, archive it"}
		}
	}
	return nil
}
