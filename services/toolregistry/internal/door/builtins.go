package door

import (
	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/projection"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// Builtins answers a function from a company to the suite's own tools that it runs. A tool that the company lacks something for
// is left out: a model that is shown a tool which always fails learns to distrust all.
func Builtins(all *catalogue.Catalogue) func(*companyv1.Company) []*surface.Tool {
	rows := map[string]*surface.Tool{}
	for _, tool := range all.Tools() {
		rows[tool.Name] = Row(tool)
	}
	return func(company *companyv1.Company) []*surface.Tool {
		var run []*surface.Tool
		for _, tool := range all.Tools() {
			if _, ok := runs(company, tool.Requires); ok {
				run = append(run, rows[tool.Name])
			}
		}
		return run
	}
}

// Row answers a declared tool as a row of a surface.
func Row(tool *catalogue.Tool) *surface.Tool {
	return &surface.Tool{
		Name: tool.Name, Raw: tool.Name, Wire: surface.WireName(tool.Name), Description: tool.Description, Source: surface.Builtin,
		Schema: string(tool.Schema), Arguments: tool.Arguments, Shown: projection.All(string(tool.Schema)),
		Hints:    surface.Hints{ReadOnly: tool.ReadOnly, Destructive: tool.Destructive, Idempotent: tool.Idempotent, OpenWorld: tool.OpenWorld},
		Delivers: tool.Delivers, Audiences: tool.Audiences, EngineLocal: tool.EngineLocal, Digest: tool.Digest,
	}
}
