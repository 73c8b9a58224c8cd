package toolregistry

import (
	"encoding/json"
	"fmt"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
)

// DeclaredTool is a tool that this build declares, whatever a company runs. Hints that claim nothing are nil.
type DeclaredTool struct {
	Name        string          `json:"name"`
	Service     string          `json:"service"`
	RPC         string          `json:"rpc"`
	Description string          `json:"description"`
	Audiences   []string        `json:"audiences"`
	ReadOnly    *bool           `json:"read_only"`
	Destructive *bool           `json:"destructive"`
	Idempotent  *bool           `json:"idempotent"`
	OpenWorld   *bool           `json:"open_world"`
	Delivers    string          `json:"delivers"`
	Requires    []string        `json:"requires"`
	EngineLocal bool            `json:"engine_local"`
	Arguments   int             `json:"argument_count"`
	InputSchema json.RawMessage `json:"input_schema"`
	Digest      string          `json:"digest"`
}

// Declared answers every tool that this build declares, from its own descriptors: nothing has to run. It panics on contracts that
// cannot be read, which the tests of the catalogue rule out for a build.
func Declared() []DeclaredTool {
	all, err := catalogue.Load()
	if err != nil {
		panic(fmt.Errorf("read the contracts of this build: %w", err))
	}
	var declared []DeclaredTool
	for _, t := range all.Tools() {
		declared = append(declared, DeclaredTool{
			Name: t.Name, Service: t.Service, RPC: t.Procedure, Description: t.Description, Audiences: t.Audiences,
			ReadOnly: t.ReadOnly, Destructive: t.Destructive, Idempotent: t.Idempotent, OpenWorld: t.OpenWorld, Delivers: t.Delivers,
			Requires: append([]string{}, t.Requires...), EngineLocal: t.EngineLocal, Arguments: t.Arguments, InputSchema: t.Schema, Digest: t.Digest,
		})
	}
	return declared
}
