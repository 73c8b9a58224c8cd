package projection

import (
	"encoding/json"
	"errors"
	"regexp"
	"regexp/syntax"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dialect"
)

// node projects one subschema.
func (p *projector) node(value any) (any, error) {
	if err := p.spend(1); err != nil {
		return nil, err
	}
	source, ok := value.(*object)
	if !ok {
		return value, nil
	}
	if p.older {
		source = modern(source)
	}
	o := newObject()
	for _, keyword := range source.names {
		if err := p.keyword(o, keyword, source.get(keyword)); err != nil {
			return nil, err
		}
	}
	if pattern, ok := source.get("pattern").(string); ok && !readable(pattern) {
		o.remove("pattern")
		note(o, "It has the form `%s`.", pattern)
	}
	return p.fit(o)
}

// keyword projects one keyword of a subschema into o.
func (p *projector) keyword(o *object, keyword string, value any) (err error) {
	switch keyword {
	case "$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary":
		// Names for references, which are mended later, and what a provider has no use for.
		return nil
	case "$dynamicRef", "$recursiveRef":
		keyword = "$ref"
	}
	switch dialect.Place(keyword) {
	case dialect.One:
		value, err = p.node(value)
	case dialect.List:
		value, err = p.list(value)
	case dialect.Members:
		value, err = p.members(value)
	case dialect.Data:
		err = p.spend(weight(value))
	}
	if err != nil {
		return err
	}
	o.set(keyword, value)
	return nil
}

func (p *projector) list(value any) (any, error) {
	source, ok := value.([]any)
	if !ok {
		return value, nil
	}
	list := make([]any, len(source))
	for i, inner := range source {
		var err error
		if list[i], err = p.node(inner); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (p *projector) members(value any) (any, error) {
	source, ok := value.(*object)
	if !ok {
		return value, nil
	}
	o := newObject()
	for _, name := range source.names {
		inner, err := p.node(source.get(name))
		if err != nil {
			return nil, err
		}
		o.set(name, inner)
	}
	return o, nil
}

// fit changes what the provider does not take of a subschema that is projected already.
func (p *projector) fit(o *object) (any, error) {
	p.fitPatterns(o)
	if p.provider == dialect.Anthropic {
		fitNames(o)
		return o, nil
	}
	o, err := p.fitAllOf(o)
	if err != nil {
		return nil, err
	}
	if says(o, "object") && !o.has("properties") {
		o.set("properties", newObject())
	}
	if says(o, "array") && !o.has("items") {
		o.set("items", newObject())
	}
	return o, nil
}

// fitPatterns takes out properties whose names are given by a pattern that nobody can read, and with them what closes the object.
func (p *projector) fitPatterns(o *object) {
	patterns, ok := o.get("patternProperties").(*object)
	if !ok {
		return
	}
	kept := newObject()
	for _, pattern := range patterns.names {
		if readable(pattern) {
			kept.set(pattern, patterns.get(pattern))
		}
	}
	if len(kept.names) < len(patterns.names) {
		o.set("patternProperties", kept)
		o.remove("additionalProperties", "unevaluatedProperties")
	}
}

// fitNames moves properties whose names Anthropic does not take to where any name may stand, which means the same.
func fitNames(o *object) {
	properties, ok := o.get("properties").(*object)
	if !ok {
		return
	}
	patterns := newObject()
	if there, ok := o.get("patternProperties").(*object); ok {
		patterns = there.without()
	}
	kept := newObject()
	for _, name := range properties.names {
		schema := properties.get(name)
		if dialect.PropertyName.MatchString(name) {
			kept.set(name, schema)
			continue
		}
		pattern := "^" + regexp.QuoteMeta(name) + "$"
		if !patterns.has(pattern) {
			patterns.set(pattern, schema)
		}
		note(o, "It takes the argument %s too, by exactly this name.", write(name))
	}
	if len(kept.names) < len(properties.names) {
		o.set("properties", kept)
		o.set("patternProperties", patterns)
	}
}

// readable reports whether a pattern is a regular expression at all. Look-aheads and the like are, though Go has none.
func readable(pattern string) bool {
	_, err := regexp.Compile(pattern)
	var fault *syntax.Error
	if !errors.As(err, &fault) {
		return err == nil
	}
	switch fault.Code {
	case syntax.ErrInvalidPerlOp, syntax.ErrInvalidEscape, syntax.ErrInvalidRepeatSize, syntax.ErrInvalidCharRange, syntax.ErrLarge:
		return true
	default:
		return false
	}
}

// modern writes a subschema of an older draft in the words of 2020-12.
func modern(source *object) *object {
	if source.has("$ref") {
		// Beside a reference, older drafts read nothing.
		alone := newObject()
		for _, name := range source.names {
			switch name {
			case "$ref", "title", "description", "default", "examples", "$defs", "definitions":
				alone.set(name, source.get(name))
			}
		}
		return alone
	}
	o := source.without()
	if tuple, ok := o.get("items").([]any); ok {
		o.set("prefixItems", tuple)
		o.remove("items")
		if rest := o.get("additionalItems"); rest != nil {
			o.set("items", rest)
		}
	}
	o.remove("additionalItems")
	bound(o, "minimum", "exclusiveMinimum")
	bound(o, "maximum", "exclusiveMaximum")
	if dependencies, ok := o.get("dependencies").(*object); ok {
		o.remove("dependencies")
		required, schemas := newObject(), newObject()
		for _, name := range dependencies.names {
			if _, list := dependencies.get(name).([]any); list {
				required.set(name, dependencies.get(name))
			} else {
				schemas.set(name, dependencies.get(name))
			}
		}
		o.set("dependentRequired", required)
		o.set("dependentSchemas", schemas)
	}
	return o
}

// bound turns draft 4's flag beside a bound into a bound of its own.
func bound(o *object, inclusive, exclusive string) {
	flag, ok := o.get(exclusive).(bool)
	if !ok {
		return
	}
	o.remove(exclusive)
	limit, number := o.get(inclusive).(json.Number)
	if flag && number {
		o.remove(inclusive)
		o.set(exclusive, limit)
	}
}
