// Package nearest finds the name that somebody who wrote another one probably meant.
//
// Case and underscores are not counted, so `waitingOn` is as near to `waiting_on` as can be. A name is near when at most
// a third of its letters would have to change: a suggestion that is a guess sends a model astray.
package nearest

import (
	"cmp"
	"slices"
	"strings"
)

// One answers the candidate nearest to name, and false when none is near. Of equally near ones the first wins.
func One(name string, candidates []string) (string, bool) {
	few := Few(name, candidates, 1)
	if len(few) == 0 {
		return "", false
	}
	return few[0], true
}

// Few answers at most limit candidates that are near to name, nearest first.
func Few(name string, candidates []string, limit int) []string {
	type scored struct {
		name     string
		distance int
	}
	folded := fold(name)
	var near []scored
	for _, candidate := range candidates {
		other := fold(candidate)
		allowed := max(len(folded), len(other)) / 3
		if abs(len(folded)-len(other)) > allowed {
			continue
		}
		if d := distance(folded, other); d <= allowed {
			near = append(near, scored{candidate, d})
		}
	}
	slices.SortStableFunc(near, func(a, b scored) int { return cmp.Compare(a.distance, b.distance) })
	var names []string
	for _, n := range near {
		if len(names) < limit && !slices.Contains(names, n.name) {
			names = append(names, n.name)
		}
	}
	return names
}

// maxFolded bounds the work: a longer name is compared by its beginning.
const maxFolded = 128

func fold(name string) string {
	name = strings.ToLower(strings.ReplaceAll(name, "_", ""))
	return name[:min(len(name), maxFolded)]
}

// distance is Levenshtein's, over bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
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

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
