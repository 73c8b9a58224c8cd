// Package nearest finds the word that somebody who wrote another one probably meant.
//
// Words are compared by letters, not bytes, without regard to case. One is near when at most a third of its letters would have to
// change: a suggestion that is a guess sends a model astray.
package nearest

import (
	"cmp"
	"slices"
	"strings"
)

// maxLetters bounds the work: a longer word is compared by its beginning.
const maxLetters = 128

// Few answers at most limit candidates that are near to word, nearest first, equally near ones in the order given.
func Few(word string, candidates []string, limit int) []string {
	type scored struct {
		word     string
		distance int
	}
	letters := fold(word)
	var near []scored
	for _, candidate := range candidates {
		other := fold(candidate)
		if d := distance(letters, other); d <= max(len(letters), len(other))/3 {
			near = append(near, scored{candidate, d})
		}
	}
	slices.SortStableFunc(near, func(a, b scored) int { return cmp.Compare(a.distance, b.distance) })
	var words []string
	for _, n := range near[:min(limit, len(near))] {
		words = append(words, n.word)
	}
	return words
}

// Closest answers at most limit candidates by their distance alone, however far they are: for when any hint is better than none.
func Closest(word string, candidates []string, limit int) []string {
	letters := fold(word)
	sorted := slices.Clone(candidates)
	slices.SortStableFunc(sorted, func(a, b string) int {
		return cmp.Compare(distance(letters, fold(a)), distance(letters, fold(b)))
	})
	return sorted[:min(limit, len(sorted))]
}

// Typo reports whether two different words are one slip apart: a letter too many, too few, wrong, or two changed over. Words under four
// letters are never: too many of them are.
func Typo(a, b string) bool {
	x, y := fold(a), fold(b)
	if min(len(x), len(y)) < 4 || slices.Equal(x, y) {
		return false
	}
	return distance(x, y) == 1
}

func swapped(x, y []rune) bool {
	if len(x) != len(y) {
		return false
	}
	at := 0
	for at < len(x) && x[at] == y[at] {
		at++
	}
	return at+1 < len(x) && x[at] == y[at+1] && x[at+1] == y[at] && slices.Equal(x[at+2:], y[at+2:])
}

func fold(word string) []rune {
	letters := []rune(strings.ToLower(word))
	return letters[:min(len(letters), maxLetters)]
}

// distance is Levenshtein's, but that two letters changed over, and nothing else, are one slip.
func distance(a, b []rune) int {
	if swapped(a, b) {
		return 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
