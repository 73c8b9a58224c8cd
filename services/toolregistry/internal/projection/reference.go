package projection

import (
	"fmt"
	"strings"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dialect"
)

// lookup answers what a reference means in the schema as it was written.
func (p *projector) lookup(ref string) (any, error) {
	if target, ok := follow(p.original, ref); ok {
		return target, nil
	}
	if anchor, ok := strings.CutPrefix(ref, "#"); ok && !strings.Contains(anchor, "/") {
		if target := anchored(p.original, anchor); target != nil {
			return target, nil
		}
	}
	return nil, fmt.Errorf("refers to %q, which is not within it", ref)
}

// follow answers where a JSON pointer leads.
func follow(root *object, ref string) (any, bool) {
	if ref == "#" {
		return root, true
	}
	pointer, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, false
	}
	var at any = root
	for step := range strings.SplitSeq(pointer, "/") {
		if o, isObject := at.(*object); isObject {
			at, ok = o.members[dialect.Unescape(step)]
		} else {
			at, ok = dialect.Step(at, step)
		}
		if !ok {
			return nil, false
		}
	}
	return at, true
}

// anchored answers the subschema that has an anchor; nil when none has.
func anchored(value any, anchor string) (found *object) {
	walk(value, func(o *object) bool {
		if o.get("$anchor") == anchor || o.get("$dynamicAnchor") == anchor || o.get("$id") == "#"+anchor {
			found = o
		}
		return found == nil
	})
	return found
}

// walk visits every subschema until visit answers false.
func walk(value any, visit func(*object) bool) bool {
	o, ok := value.(*object)
	if !ok {
		return true
	}
	if !visit(o) {
		return false
	}
	for _, keyword := range o.names {
		switch held := o.get(keyword).(type) {
		case *object:
			switch dialect.Place(keyword) {
			case dialect.One:
				if !walk(held, visit) {
					return false
				}
			case dialect.Members:
				for _, name := range held.names {
					if !walk(held.get(name), visit) {
						return false
					}
				}
			case dialect.Data, dialect.List:
			}
		case []any:
			if dialect.Place(keyword) != dialect.List {
				continue
			}
			for _, inner := range held {
				if !walk(inner, visit) {
					return false
				}
			}
		}
	}
	return true
}

// mendReferences gives back what a reference leads to where that was folded away or renamed: it is put beside the other
// definitions, and the reference changed.
func (p *projector) mendReferences(root *object) (err error) {
	moved := map[string]string{}
	for at := []any{root}; len(at) > 0 && err == nil; at = at[1:] {
		walk(at[0], func(o *object) bool {
			ref, has := o.get("$ref").(string)
			if !has {
				return true
			}
			if _, leads := follow(root, ref); leads {
				return true
			}
			if _, known := moved[ref]; !known {
				var hoisted any
				if moved[ref], hoisted, err = p.hoist(root, ref); err != nil {
					return false
				}
				at = append(at, hoisted)
			}
			o.set("$ref", moved[ref])
			return true
		})
	}
	return err
}

// hoist adds what a reference means to the root's definitions, and answers the reference to it there.
func (p *projector) hoist(root *object, ref string) (moved string, hoisted any, err error) {
	target, err := p.lookup(ref)
	if err != nil {
		return "", nil, err
	}
	if hoisted, err = p.node(target); err != nil {
		return "", nil, err
	}
	definitions := newObject()
	if there, ok := root.get("$defs").(*object); ok {
		definitions = there.without()
	}
	name := ""
	for n := len(definitions.names) + 1; name == "" || definitions.has(name); n++ {
		name = fmt.Sprintf("moved_%d", n)
	}
	definitions.set(name, hoisted)
	root.set("$defs", definitions)
	return "#/$defs/" + name, hoisted, nil
}
