package api

import (
	"strings"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
)

// projectOf answers the key of the project that an argument named project says, in any case; the caller's own unit's when it says none.
func projectOf(o *org.Org, by item.Actor, text string) (string, error) {
	key := strings.ToUpper(strings.TrimSpace(text))
	switch {
	case key == "":
		return o.ProjectOf(by.Seat)
	case !o.HasProject(key):
		return "", o.NoProject(text)
	}
	return key, nil
}
