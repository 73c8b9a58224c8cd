package toolregistry

import (
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/api"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/door"
)

// Declared answers every tool that this build declares, whatever a company runs, from its own descriptors: nothing has to run. It
// fails on contracts that cannot be read, which the tests of the catalogue rule out.
func Declared() ([]*toolregistryv1.Tool, error) {
	all, err := catalogue.Load()
	if err != nil {
		return nil, err
	}
	var declared []*toolregistryv1.Tool
	for _, tool := range all.Tools() {
		declared = append(declared, api.ToolToProto(door.Row(tool)))
	}
	return declared, nil
}
