package surface_test

import (
	"fmt"
	"testing"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// BenchmarkBuild settles a surface of 5,000 tools whose definitions are read already, and reads them anew.
func BenchmarkBuild(b *testing.B) {
	var texts []string
	for i := range 5000 {
		texts = append(texts, fmt.Sprintf(`{"name":"tool.%d","description":"Does the thing number %d.","inputSchema":{"type":"object","properties":{`+
			`"id":{"type":"integer","description":"Which thing."},"labels":{"type":"array","items":{"type":"string"}},"state":{"type":"string","enum":["open","closed"]},`+
			`"where":{"type":"object","properties":{"path":{"type":"string"}}}},"required":["id"],"additionalProperties":false}}`, i, i))
	}
	var kept surface.Reader
	for name, reader := range map[string]func() *surface.Reader{
		"definitions known": func() *surface.Reader { return &kept },
		"definitions new":   func() *surface.Reader { return new(surface.Reader) },
	} {
		b.Run(name, func(b *testing.B) {
			kept.Read(texts)
			for b.Loop() {
				surface.Build(nil, []surface.Server{{Name: "a", State: surface.Ready, Tools: reader().Read(texts)}})
			}
		})
	}
}
