package item

import (
	"strings"
	"unicode"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Says refuses a text in which there is nothing to see: white space alone, or characters that have no shape.
func Says(argument, text string) error {
	if !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }) {
		return fault.New(fault.Invalid, "%s must say something", argument).WithField(argument)
	}
	return nil
}

// Line is [Says] for a text that stands in lists and in messages among other lines: it must not be able to pass for several. A tab is a space.
func Line(argument, text string) error {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\t' || r == '\u2028' || r == '\u2029' }) {
		return fault.New(fault.Invalid, "%s must be one line, without control characters", argument).WithField(argument)
	}
	return Says(argument, text)
}
