package main

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// bindings are the segments that the <names> of a pattern stand for.
type bindings map[string]string

// match reports whether a slash-separated path fits a pattern, and what its names stand for then.
//
// A segment of a pattern is literal text, a glob such as *test, {a,b} for one of several, <name> for any one segment
// (the same one wherever the name is used again), or ... for any number of segments, none included. Names in bound keep
// their value.
func match(pattern, name string, bound bindings) (bindings, bool) {
	return matchSegments(strings.Split(pattern, "/"), strings.Split(name, "/"), bound)
}

func matchSegments(pattern, name []string, bound bindings) (bindings, bool) {
	if len(pattern) == 0 {
		return bound, len(name) == 0
	}
	head, rest := pattern[0], pattern[1:]
	if head == "..." {
		for skipped := 0; skipped <= len(name); skipped++ {
			if b, ok := matchSegments(rest, name[skipped:], bound); ok {
				return b, true
			}
		}
		return nil, false
	}
	if len(name) == 0 {
		return nil, false
	}
	if key, ok := variable(head); ok {
		if value, ok := bound[key]; ok {
			if value != name[0] {
				return nil, false
			}
			return matchSegments(rest, name[1:], bound)
		}
		b := maps.Clone(bound)
		if b == nil {
			b = bindings{}
		}
		b[key] = name[0]
		return matchSegments(rest, name[1:], b)
	}
	if !oneOf(head, name[0]) {
		return nil, false
	}
	return matchSegments(rest, name[1:], bound)
}

func oneOf(pattern, segment string) bool {
	choices := []string{pattern}
	if inner, ok := strings.CutPrefix(pattern, "{"); ok {
		choices = strings.Split(strings.TrimSuffix(inner, "}"), ",")
	}
	return slices.ContainsFunc(choices, func(glob string) bool {
		ok, err := path.Match(glob, segment)
		return err == nil && ok
	})
}

func variable(segment string) (string, bool) {
	inner, ok := strings.CutPrefix(segment, "<")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(inner, ">")
}

// matchAny returns the bindings of the first pattern that fits.
func matchAny(patterns []string, name string, bound bindings) (bindings, bool) {
	for _, p := range patterns {
		if b, ok := match(p, name, bound); ok {
			return b, true
		}
	}
	return nil, false
}
