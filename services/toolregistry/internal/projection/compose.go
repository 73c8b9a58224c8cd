package projection

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dialect"
)

// closed reports whether an object takes no property but those that it names.
func closed(o *object) bool {
	return o.get("additionalProperties") == false && !o.has("patternProperties")
}

func propertiesOf(o *object) *object {
	if properties, ok := o.get("properties").(*object); ok {
		return properties
	}
	return newObject()
}

func requiredOf(o *object) []string {
	list, _ := o.get("required").([]any)
	var names []string
	for _, value := range list {
		if name, ok := value.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// addRequired makes o want more of its properties.
func addRequired(o *object, names []string) {
	if len(names) == 0 {
		return
	}
	all, list := setOf(requiredOf(o)), []any{}
	if there, ok := o.get("required").([]any); ok {
		list = slices.Clone(there)
	}
	for _, name := range names {
		if !all[name] {
			all[name] = true
			list = append(list, name)
		}
	}
	o.set("required", list)
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// join makes o say what member says too. Where both say something of one keyword that cannot be joined, o's word stays: that
// allows more.
func join(o, member *object) {
	properties := propertiesOf(o).without()
	for _, name := range propertiesOf(member).names {
		schema := propertiesOf(member).get(name)
		switch {
		case properties.has(name):
			properties.set(name, both(properties.get(name), schema))
		case !closed(o):
			properties.set(name, schema)
		}
	}
	if closed(member) {
		allowed, own := newObject(), propertiesOf(member)
		for _, name := range properties.names {
			if own.has(name) {
				allowed.set(name, properties.get(name))
			}
		}
		properties = allowed
	}
	if len(properties.names) > 0 || o.has("properties") || member.has("properties") {
		o.set("properties", properties)
	}
	addRequired(o, requiredOf(member))
	for _, keyword := range member.names {
		switch value := member.get(keyword); {
		case keyword == "properties", keyword == "required", keyword == "$defs", keyword == "definitions":
		case keyword == "additionalProperties" && value == false, !o.has(keyword):
			o.set(keyword, value)
		}
	}
}

// both answers a schema that says what two say.
func both(a, b any) any {
	if same(a, b) || b == true {
		return a
	}
	first, ok := a.(*object)
	if !ok {
		if a == false {
			return a
		}
		return b
	}
	second, ok := b.(*object)
	if !ok {
		return b // false
	}
	joined := first.without()
	join(joined, second)
	return joined
}

// unite makes o take what any of the branches takes, and says in words what the schema can no longer say.
func unite(o *object, branches []*object, keyword string) {
	properties, wasClosed := propertiesOf(o).without(), closed(o)
	ofAll, allClosed := requiredOf(branches[0]), true
	variants, seen := map[string][]any{}, map[[2]string]bool{}
	for _, branch := range branches {
		own := propertiesOf(branch)
		for _, name := range own.names {
			if !properties.has(name) && wasClosed {
				continue
			}
			if key := [2]string{name, write(own.get(name))}; !seen[key] {
				seen[key] = true
				variants[name] = append(variants[name], own.get(name))
			}
			if !properties.has(name) {
				properties.set(name, nil)
			}
		}
		required := setOf(requiredOf(branch))
		ofAll = slices.DeleteFunc(ofAll, func(name string) bool { return !required[name] })
		allClosed = allClosed && closed(branch)
	}
	for _, name := range properties.names {
		if properties.get(name) == nil {
			properties.set(name, either(variants[name]))
		}
	}
	if len(properties.names) > 0 || o.has("properties") {
		o.set("properties", properties)
	}
	if allClosed && !o.has("additionalProperties") {
		o.set("additionalProperties", false)
	}
	addRequired(o, ofAll)
	noteBranches(o, branches, setOf(requiredOf(o)), keyword)
}

// either answers a schema that takes what any of the schemas takes.
func either(schemas []any) any {
	if len(schemas) == 1 {
		return schemas[0]
	}
	values := []any{}
	for _, schema := range schemas {
		o, ok := schema.(*object)
		if !ok || !o.has("const") {
			return fromAlternatives(schemas)
		}
		values = append(values, o.get("const"))
	}
	o := newObject()
	o.set("enum", values)
	return o
}

func fromAlternatives(schemas []any) *object {
	o := newObject()
	o.set("anyOf", schemas)
	return o
}

// maxTold is how many alternatives are told in words.
const maxTold = 40

// noteBranches tells the alternatives: what each wants beyond what all want.
func noteBranches(o *object, branches []*object, ofAll map[string]bool, keyword string) {
	var told []string
	for i, branch := range branches {
		if i == maxTold {
			told = append(told, fmt.Sprintf("and %d more", len(branches)-i))
			break
		}
		told = append(told, fmt.Sprintf("(%d) %s", i+1, wants(branch, ofAll)))
	}
	how := "Fit at least one of these:"
	if keyword == "oneOf" {
		how = "Fit exactly one of these:"
	}
	note(o, "%s %s.", how, strings.Join(told, "; "))
}

// wants tells one alternative.
func wants(branch *object, ofAll map[string]bool) string {
	var parts []string
	properties := propertiesOf(branch)
	for _, name := range requiredOf(branch) {
		if p, ok := properties.get(name).(*object); ok && p.has("const") {
			parts = append(parts, fmt.Sprintf("`%s` is %s", name, write(p.get("const"))))
		} else if !ofAll[name] {
			parts = append(parts, "`"+name+"`")
		}
	}
	if len(parts) == 0 && len(properties.names) > 0 {
		parts = append(parts, "some of `"+strings.Join(properties.names, "`, `")+"`")
	}
	text := strings.Join(parts, ", ")
	if text == "" {
		text = "nothing more"
	}
	if title, _ := branch.get("title").(string); title != "" {
		text += " (" + title + ")"
	}
	return text
}

// says reports whether a subschema's type is, or may be, the named one.
func says(o *object, name string) bool { return dialect.Says(o.get("type"), name) }
