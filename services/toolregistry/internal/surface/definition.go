package surface

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"unicode"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/inputschema"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/projection"
)

// Definition is a tool as its server describes it, read once however many seats see it. It is shared and never changed.
type Definition struct {
	// JSON is the tool as the server wrote it.
	JSON string
	// Raw is the server's name for it.
	Raw string
	// Title and Description are what people and models read, without what only terminals see.
	Title, Description string
	// Schema and OutputSchema are byte for byte as the server wrote them; OutputSchema may be empty.
	Schema, OutputSchema string
	// Arguments counts what the schema's root names.
	Arguments int
	// Hints are what the server claims.
	Hints Hints
	// Check is the compiled schema; nil when there is none that can be used.
	Check *inputschema.Schema
	// Shown is what becomes of the schema for each model provider, where that is something.
	Shown map[string]projection.Result
	// Fault says why the definition cannot be used, whatever else is on the surface; empty when it can.
	Fault string
	// Digest changes with the name, the description, the schemas and the annotations, and with nothing else.
	Digest string

	read bool // it is a tool at all
}

// wireTool is a tool as `tools/list` has it. Hints are pointers: what a server does not say must not become a no.
type wireTool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  struct {
		Title       string `json:"title"`
		ReadOnly    *bool  `json:"readOnlyHint"`
		Destructive *bool  `json:"destructiveHint"`
		Idempotent  *bool  `json:"idempotentHint"`
		OpenWorld   *bool  `json:"openWorldHint"`
	} `json:"annotations"`
}

// define reads one tool. It fails never: what cannot be used says why.
func define(text string) *Definition {
	d := &Definition{JSON: text}
	var wire wireTool
	if err := json.Unmarshal([]byte(text), &wire); err != nil {
		d.Fault = "the server does not describe it as a tool"
		d.Digest = Digest(text)
		return d
	}
	d.read, d.Raw = true, wire.Name
	d.Title, d.Description = visible(wire.Title), visible(wire.Description)
	d.Schema, d.OutputSchema = string(wire.InputSchema), string(wire.OutputSchema)
	if d.Title == "" {
		d.Title = visible(wire.Annotations.Title)
	}
	a := wire.Annotations
	d.Hints = Hints{a.ReadOnly, a.Destructive, a.Idempotent, a.OpenWorld}
	d.Digest = Digest(d.Reviewed())
	d.Arguments = inputschema.Arguments(wire.InputSchema)
	compiled, err := inputschema.Compile(wire.InputSchema)
	if err != nil {
		d.Fault = err.Error()
		return d
	}
	d.Check, d.Shown = compiled, projection.All(d.Schema)
	return d
}

// Reviewed answers what a person judges of a tool and what its digest covers: name, description, schemas and annotations, as JSON
// with members in order and nothing in it that is not seen.
func (d *Definition) Reviewed() string {
	var all map[string]any
	decoder := json.NewDecoder(strings.NewReader(d.JSON))
	decoder.UseNumber()
	if decoder.Decode(&all) != nil {
		return ""
	}
	reviewed := map[string]any{}
	for _, name := range []string{"name", "description", "inputSchema", "outputSchema", "annotations"} {
		if value, has := all[name]; has {
			reviewed[name] = value
		}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(reviewed) != nil {
		return ""
	}
	return spelt(strings.TrimSuffix(b.String(), "\n"))
}

// spelt writes characters of JSON that nobody sees as escapes: they are how a description hides what it says to a model.
func spelt(text string) string {
	hidden := func(r rune) bool { return r > unicode.MaxASCII && !unicode.IsGraphic(r) }
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			// Beyond what one escape holds, JSON writes a pair.
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// maxDefinitions bounds what a reader keeps.
const maxDefinitions = 50_000

// Reader reads definitions and keeps them: seats share servers, and most lists come back as they were. Safe for concurrent use.
type Reader struct {
	mu   sync.Mutex
	kept map[[sha256.Size]byte]*Definition
}

// Read answers the definitions of tools as a server lists them.
func (r *Reader) Read(texts []string) []*Definition {
	definitions := make([]*Definition, len(texts))
	for i, text := range texts {
		key := sha256.Sum256([]byte(text))
		if definitions[i] = r.known(key); definitions[i] == nil {
			definitions[i] = define(text)
			r.keep(key, definitions[i])
		}
	}
	return definitions
}

func (r *Reader) known(key [sha256.Size]byte) *Definition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kept[key]
}

func (r *Reader) keep(key [sha256.Size]byte, d *Definition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil || len(r.kept) >= maxDefinitions {
		r.kept = map[[sha256.Size]byte]*Definition{}
	}
	r.kept[key] = d
}
