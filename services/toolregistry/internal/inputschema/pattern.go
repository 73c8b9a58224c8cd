package inputschema

import (
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compilePattern reads a pattern as Go does. ECMA patterns that Go cannot run match everything.
func compilePattern(text string) (jsonschema.Regexp, error) {
	if compiled, err := regexp.Compile(text); err == nil {
		return compiled, nil
	}
	return anything(text), nil
}

type anything string

// MatchString implements [jsonschema.Regexp].
func (anything) MatchString(string) bool { return true }

// String implements [jsonschema.Regexp].
func (a anything) String() string { return string(a) }
