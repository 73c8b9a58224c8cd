// Package dialect knows what a model provider takes as the schema of a tool's arguments. A provider refuses a whole request for
// one schema that it does not take, so whatever is offered passes [Check] first.
//
// The rules are those that the providers' own refusals state, for tools without strict mode:
//
//	both       the root is an object that says `type: object`; no `anyOf`, `oneOf` or `allOf` at the root; references stay
//	           within the schema; draft 2020-12
//	anthropic  names of properties match [PropertyName]
//	openai     no `enum`, `const` or `not` at the root; `allOf` nowhere; an object has `properties`, an array has `items`
//
// OpenAI's limit of 1,024 characters for the description of a tool went in 2025, so there is no rule about it. Strict mode has
// more rules (each property required, no recursion, few levels); nothing here is offered in that mode.
package dialect

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Providers whose rules are known, by the type that a company document gives them.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai"
)

// Providers answers every provider that is known, in a fixed order.
func Providers() []string { return []string{Anthropic, OpenAI} }

// MaxBytes is the longest schema that is offered. It is ours: a request has to hold the whole catalogue.
const MaxBytes = 256 << 10

// PropertyName is what Anthropic takes as the name of a property.
var PropertyName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// RootBans answers the keywords that a provider refuses at the root.
func RootBans(provider string) []string {
	if provider == OpenAI {
		return []string{"anyOf", "oneOf", "allOf", "enum", "const", "not"}
	}
	return []string{"anyOf", "oneOf", "allOf"}
}

// Check refuses a schema that the provider does not take. The error says why, as the end of a sentence about the schema.
func Check(provider string, text []byte) error {
	if len(text) > MaxBytes {
		return fmt.Errorf("has %d bytes, and at most %d are offered", len(text), MaxBytes)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return errors.New("is not JSON")
	}
	root, ok := document.(map[string]any)
	if !ok || root["type"] != "object" {
		return errors.New("does not say `type: object` at its root")
	}
	for _, keyword := range RootBans(provider) {
		if _, has := root[keyword]; has {
			return fmt.Errorf("has `%s` at its root", keyword)
		}
	}
	if err := metaschema().Validate(document); err != nil {
		return errors.New("is not valid in draft 2020-12")
	}
	return checker{provider: provider, root: root}.schema(root, "")
}

// metaschema is draft 2020-12's own schema, which the library carries.
var metaschema = sync.OnceValue(func() *jsonschema.Schema {
	return jsonschema.NewCompiler().MustCompile("https://json-schema.org/draft/2020-12/schema")
})

type checker struct {
	provider string
	root     map[string]any
}

func (c checker) schema(value any, path string) error {
	s, ok := value.(map[string]any)
	if !ok {
		return nil // true and false
	}
	if err := c.own(s, path); err != nil {
		return err
	}
	for keyword, value := range s {
		if err := c.within(Place(keyword), value, path+"/"+keyword); err != nil {
			return err
		}
	}
	return nil
}

// within checks the subschemas that a keyword holds.
func (c checker) within(holds Holds, value any, path string) error {
	switch v := value.(type) {
	case []any:
		for i, inner := range v {
			if holds != List {
				break
			}
			if err := c.schema(inner, fmt.Sprintf("%s/%d", path, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		if holds == One {
			return c.schema(v, path)
		}
		for name, inner := range v {
			if holds != Members {
				break
			}
			if err := c.schema(inner, path+"/"+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// own checks what a schema says itself.
func (c checker) own(s map[string]any, path string) error {
	if ref, has := s["$ref"].(string); has && !c.resolves(ref) {
		return fmt.Errorf("refers to %q, which is not within it", ref)
	}
	switch c.provider {
	case Anthropic:
		properties, _ := s["properties"].(map[string]any)
		for name := range properties {
			if !PropertyName.MatchString(name) {
				return fmt.Errorf("names a property at %q that does not match %s", path, PropertyName)
			}
		}
	case OpenAI:
		_, all := s["allOf"]
		_, properties := s["properties"]
		_, items := s["items"]
		switch {
		case all:
			return fmt.Errorf("has `allOf` at %q", path)
		case Says(s["type"], "object") && !properties:
			return fmt.Errorf("has an object without `properties` at %q", path)
		case Says(s["type"], "array") && !items:
			return fmt.Errorf("has an array without `items` at %q", path)
		}
	}
	return nil
}

// Says reports whether the value of `type` names a type, alone or among others.
func Says(value any, name string) bool {
	switch v := value.(type) {
	case string:
		return v == name
	case []any:
		for _, one := range v {
			if one == name {
				return true
			}
		}
	}
	return false
}

// resolves reports whether a JSON pointer leads to something within the schema.
func (c checker) resolves(ref string) bool {
	if ref == "#" {
		return true
	}
	pointer, local := strings.CutPrefix(ref, "#/")
	if !local {
		return false
	}
	var at any = c.root
	for step := range strings.SplitSeq(pointer, "/") {
		var ok bool
		if at, ok = Step(at, step); !ok {
			return false
		}
	}
	return true
}
