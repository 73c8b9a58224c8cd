package prompt

import (
	"fmt"
	"strings"
)

// Skill is a tool skill as it is listed.
type Skill struct {
	Key, Summary string
	Required     bool
	Tools        []string
}

// skills lists the tool skills, by key.
func skills(all []Skill) string {
	if len(all) == 0 {
		return ""
	}
	lines := make([]string, 0, len(all))
	for _, s := range all {
		required := ""
		if s.Required {
			required = ", required"
		}
		lines = append(lines, fmt.Sprintf("`%s`%s, for `%s`: %s", s.Key, required, strings.Join(s.Tools, "`, `"), s.Summary))
	}
	return "How this company wants tools used. Load one with `load_tool_skill` before you use its tools; those of a required one are held back until then.\n" +
		bullets(lines)
}
