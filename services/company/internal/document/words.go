package document

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// maxQuoted is how much of a value a sentence repeats.
	maxQuoted = 60
	// maxListed is how many names a sentence lists.
	maxListed = 30
	// maxCandidates is how many names a reference is compared with for a suggestion.
	maxCandidates = 200
	// maxSuggestions bounds the work spent on a file that is wrong everywhere.
	maxSuggestions = 500
)

func contains(set []string, s string) bool { return slices.Contains(set, s) }

// quote answers a value for a sentence, or what it is instead when it is long or looks like a credential.
func quote(s string) string {
	switch {
	case s == "":
		return "an empty text"
	case looksSecret(s):
		return "a value that looks like a credential"
	case utf8.RuneCountInString(s) > maxQuoted:
		return "a text of " + plural(utf8.RuneCountInString(s), "character")
	}
	return "`" + s + "`"
}

// list answers names as a sentence does: `a`, `b`, `c`. A long list ends with a count of what is left out.
func list(names []string) string {
	quoted := make([]string, 0, len(names))
	for _, n := range names[:min(len(names), maxListed)] {
		quoted = append(quoted, "`"+n+"`")
	}
	text := strings.Join(quoted, ", ")
	if more := len(names) - maxListed; more > 0 {
		text += " and " + plural(more, "other")
	}
	return text
}

// suggestion answers "did you mean `x`?" when one of known is close, and otherwise names them. A file that is wrong in a
// thousand places gets no more of them: each costs a comparison with every name.
func (r *reader) suggestion(given string, known []string) string {
	if len(r.problems) > maxSuggestions {
		return "look at the problems above first"
	}
	if near, ok := nearest(given, known); ok {
		return "did you mean `" + near + "`?"
	}
	if len(known) == 0 {
		return "none is declared"
	}
	return "known are " + list(known)
}

// nearest answers the candidate that is fewest edits away, ignoring case, dashes and underscores, if those are at most a
// third of the longer one's length.
func nearest(given string, candidates []string) (string, bool) {
	best, found := 0, ""
	a := []rune(squash(given))
	if len(a) > maxQuoted {
		return "", false
	}
	for _, candidate := range candidates {
		b := []rune(squash(candidate))
		d := distance(a, b)
		if d <= max(len(a), len(b))/3 && (found == "" || d < best) {
			best, found = d, candidate
		}
	}
	return found, found != ""
}

func squash(s string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(s))
}

// distance is Levenshtein's.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		corner := row[0]
		row[0] = i + 1
		for j := range b {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// slug answers a name in the form of a handle: lower case, accents dropped, everything else a dash. It is empty when the
// name has no Latin letter and no digit.
func slug(name string) string {
	var b strings.Builder
	dash := false
	for _, r := range norm.NFD.String(strings.ToLower(name)) {
		switch {
		case unicode.Is(unicode.Mn, r):
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			if dash && b.Len() > 0 {
				b.WriteByte('-')
			}
			dash = false
			b.WriteRune(r)
		default:
			dash = true
		}
	}
	return b.String()
}
