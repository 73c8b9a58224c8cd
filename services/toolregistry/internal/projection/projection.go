// Package projection writes a tool's schema so that a model provider takes it.
//
// The idea to hold: a projection is there to tell a model how to call, and not to check what it wrote; that is done at the door,
// against the schema as its server wrote it. So a projection may allow more than the schema, never ask for something else. What
// a provider has no place for (alternatives at the root, a pattern that nobody can read) becomes a sentence in a description.
//
//	parse ─► node by node ─► the root flattened ─► references mended ─► the provider's rules, as the last word
//
// A schema that needs no change has no projection. One that no rewriting makes acceptable is refused for that provider alone. It
// is pure, and its work is bounded: [maxWork] bounds what references can multiply.
package projection

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dialect"
)

// maxWork is how many subschemas and pieces of data are visited at the most.
const maxWork = 50_000

var errWork = errors.New("takes too long to write out")

// Result is what becomes of a schema for one provider.
type Result struct {
	// Schema takes the place of the original; empty where the original will do.
	Schema string
	// Refused says why the provider cannot be shown the tool, as a clause; empty where it can.
	Refused string
}

// All answers a result for every provider that is known, by its type. Those with nothing to say are left out.
func All(schema string) map[string]Result {
	results := map[string]Result{}
	document, err := parse([]byte(schema))
	for _, provider := range dialect.Providers() {
		if err != nil {
			results[provider] = Result{Refused: "its schema " + err.Error()}
			continue
		}
		if r := project(provider, document, schema); r != (Result{}) {
			results[provider] = r
		}
	}
	return results
}

func project(provider string, document any, schema string) Result {
	refused := func(err error) Result { return Result{Refused: "its schema " + err.Error()} }
	root, ok := document.(*object)
	if !ok {
		return refused(errors.New("is not an object"))
	}
	p := &projector{provider: provider, original: root, older: olderDraft(root.get("$schema")), unfolding: map[string]bool{}}
	projected, err := p.root()
	if err != nil {
		return refused(err)
	}
	text := write(projected)
	if text == write(root.without("$schema")) {
		if len(schema) > dialect.MaxBytes {
			return refused(dialect.Check(provider, []byte(schema)))
		}
		return Result{}
	}
	if err := dialect.Check(provider, json.RawMessage(text)); err != nil {
		return refused(err)
	}
	return Result{Schema: text}
}

// olderDraft reports whether a schema is written in a draft before 2020-12, where some keywords mean something else.
func olderDraft(schema any) bool {
	uri, _ := schema.(string)
	for _, draft := range []string{"draft-04", "draft-06", "draft-07", "2019-09"} {
		if strings.Contains(uri, draft) {
			return true
		}
	}
	return false
}

type projector struct {
	provider string
	original *object
	older    bool
	work     int
	// unfolding are references whose meaning is being written out.
	unfolding map[string]bool
}

// spend counts work, and ends what takes too long: references let a short schema stand for a very long one.
func (p *projector) spend(work int) error {
	if p.work += work; p.work > maxWork {
		return errWork
	}
	return nil
}

// weight is the work that copying data and comparing it takes.
func weight(value any) int {
	const aStep = 64
	switch v := value.(type) {
	case string:
		return 1 + len(v)/aStep
	case []any:
		sum := 1
		for _, inner := range v {
			sum += weight(inner)
		}
		return sum
	case *object:
		sum := 1
		for _, name := range v.names {
			sum += weight(name) + weight(v.get(name))
		}
		return sum
	default:
		return 1
	}
}

// root projects the whole schema.
func (p *projector) root() (*object, error) {
	root, err := p.flatRoot()
	if err != nil {
		return nil, err
	}
	if err := p.mendReferences(root); err != nil {
		return nil, err
	}
	return root, nil
}

// note adds a sentence to a schema's description.
func note(o *object, format string, args ...any) {
	sentence := fmt.Sprintf(format, args...)
	if said, _ := o.get("description").(string); said != "" {
		sentence = strings.TrimRight(said, " \n") + "\n" + sentence
	}
	o.set("description", sentence)
}
