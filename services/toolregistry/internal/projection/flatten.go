package projection

import (
	"errors"
	"slices"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dialect"
)

// maxNesting is how many compositions within each other are flattened.
const maxNesting = 16

var errNothingFits = errors.New("fits no arguments at all")

// references answers the keywords that point at another schema.
func references() []string { return []string{"$ref", "$dynamicRef", "$recursiveRef"} }

// flatRoot projects the root, and folds into it what may not stand there.
func (p *projector) flatRoot() (*object, error) {
	if p.original.get("type") != "object" {
		return nil, errors.New("does not say `type: object` at its root")
	}
	root, fits, err := p.flat(p.original, nil)
	switch {
	case err != nil:
		return nil, err
	case !fits:
		return nil, errNothingFits
	}
	if root.get("type") != "object" {
		root.set("type", "object")
	}
	return root, nil
}

// flat answers a schema of objects without compositions. It does not fit when no object can satisfy it. refs are the references
// that led here; one that comes back is left out, as what it says is said already.
func (p *projector) flat(value any, refs []string) (o *object, fits bool, err error) {
	if err := p.spend(1); err != nil {
		return nil, false, err
	}
	if len(refs) > maxNesting {
		return nil, false, errWork
	}
	source, ok := value.(*object)
	if !ok {
		return newObject(), value != false, nil
	}
	if p.older {
		source = modern(source)
	}
	composed := append([]string{"anyOf", "oneOf", "allOf"}, references()...)
	projected, err := p.node(source.without(append(composed, dialect.RootBans(p.provider)...)...))
	if err != nil {
		return nil, false, err
	}
	o, _ = projected.(*object)
	if o.has("type") && !says(o, "object") {
		return nil, false, nil
	}
	if fits, err := p.foldAll(o, source, refs); err != nil || !fits {
		return nil, false, err
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if fits, err := p.foldAny(o, source, keyword, refs); err != nil || !fits {
			return nil, false, err
		}
	}
	p.noteBans(o, source)
	return o, true, nil
}

// foldAll folds in what must hold too: what the schema refers to, and `allOf`.
func (p *projector) foldAll(o, source *object, refs []string) (fits bool, err error) {
	fold := func(value any, refs []string) (bool, error) {
		member, fits, err := p.flat(value, refs)
		if err == nil && fits {
			join(o, member)
		}
		return fits, err
	}
	for _, keyword := range references() {
		ref, has := source.get(keyword).(string)
		if !has || slices.Contains(refs, ref) {
			continue
		}
		target, err := p.lookup(ref)
		if err != nil {
			return false, err
		}
		if fits, err := fold(target, append(slices.Clone(refs), ref)); err != nil || !fits {
			return false, err
		}
	}
	all, _ := source.get("allOf").([]any)
	for _, value := range all {
		// Deeper by one, so that compositions end as references do.
		if fits, err := fold(value, append(slices.Clone(refs), "")); err != nil || !fits {
			return false, err
		}
	}
	return true, nil
}

// foldAny folds in alternatives.
func (p *projector) foldAny(o, source *object, keyword string, refs []string) (fits bool, err error) {
	values, _ := source.get(keyword).([]any)
	if len(values) == 0 {
		return true, nil
	}
	var branches []*object
	for _, value := range values {
		branch, fits, err := p.flat(value, append(slices.Clone(refs), ""))
		if err != nil {
			return false, err
		}
		if fits {
			branches = append(branches, branch)
		}
	}
	switch len(branches) {
	case 0:
		return false, nil
	case 1:
		join(o, branches[0])
	default:
		unite(o, branches, keyword)
	}
	return true, nil
}

// maxQuoted is the longest schema that is told in words.
const maxQuoted = 2000

// noteBans says in words what else the provider refuses at the root.
func (p *projector) noteBans(o, source *object) {
	for _, ban := range []struct{ keyword, format string }{
		{"enum", "The arguments are one of %s."},
		{"const", "The arguments are %s."},
		{"not", "Arguments that fit this schema are refused: %s."},
	} {
		if !source.has(ban.keyword) || !slices.Contains(dialect.RootBans(p.provider), ban.keyword) {
			continue
		}
		if text := write(source.get(ban.keyword)); len(text) <= maxQuoted {
			note(o, ban.format, text)
		}
	}
}

// fitAllOf folds `allOf` into the subschema that has it, for the provider that takes it nowhere.
func (p *projector) fitAllOf(o *object) (*object, error) {
	members, ok := o.get("allOf").([]any)
	if !ok {
		return o, nil
	}
	folded := o.without("allOf")
	if only, ok := lone(members); ok && !folded.has("$ref") {
		folded.set("$ref", only)
		return folded, nil
	}
	for _, value := range members {
		member, ok := value.(*object)
		if !ok {
			if value == false {
				folded.set("not", newObject())
			}
			continue
		}
		join(folded, member.without("$ref"))
		ref, refers := member.get("$ref").(string)
		if !refers || p.unfolding[ref] {
			continue
		}
		target, err := p.unfold(ref)
		if err != nil {
			return nil, err
		}
		join(folded, target)
	}
	return folded, nil
}

// unfold projects what a reference means. While it does, the same reference within is left out.
func (p *projector) unfold(ref string) (*object, error) {
	target, err := p.lookup(ref)
	if err != nil {
		return nil, err
	}
	p.unfolding[ref] = true
	defer delete(p.unfolding, ref)
	projected, err := p.node(target)
	if err != nil {
		return nil, err
	}
	if o, ok := projected.(*object); ok {
		return o, nil
	}
	return newObject(), nil
}

// lone answers the reference that is all of an `allOf`, which is how many generators describe a property that refers to another
// schema.
func lone(members []any) (ref string, ok bool) {
	if len(members) != 1 {
		return "", false
	}
	only, ok := members[0].(*object)
	if !ok || len(only.names) != 1 {
		return "", false
	}
	ref, ok = only.get("$ref").(string)
	return ref, ok
}
