package document

import (
	"regexp"

	"github.com/bullpenhq/bullpen/services/company/internal/template"
	"github.com/bullpenhq/bullpen/services/company/internal/yamltree"
)

// maxSkillVariable is how many bytes a variable of tool skills may have.
const maxSkillVariable = 4096

// skillVariables reads what tool skills may name. Seats read the skills with the values in them, so none may be a secret.
func (r *reader) skillVariables(o *object) map[string]string {
	name := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	out := map[string]string{}
	for _, m := range o.members() {
		if !name.MatchString(m.key) {
			r.add(m.at, KindValue, "the key must be 1 to 64 letters, digits and underscores, no digit first")
		}
		if m.node.Kind != yamltree.String {
			r.wrongType(m.node, m.at, "text")
			continue
		}
		if n := len(m.node.Text); n > maxSkillVariable {
			r.add(m.at, KindValue, "has %d bytes; at most %d are allowed", n, maxSkillVariable)
		}
		if t, err := template.Parse(m.node.Text); err == nil && len(t.Names()) > 0 {
			r.add(m.at, KindUnsupported, "this build fills no `${NAME}` in what every seat may read; write the value itself")
		}
		out[m.key] = m.node.Text
	}
	return out
}

// checkSkills keeps the skills out of the containers that units write to: a seat would set its own rules.
func (d *draft) checkSkills(r *reader) {
	for _, u := range d.units {
		if d.skills.v != "" && u.Space == d.skills.v {
			r.add(u.spaceAt, KindValue, "is the skills_container on line %d, which no seat may write to; take another one", d.skills.at.line)
		}
	}
}
