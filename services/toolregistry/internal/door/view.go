package door

import (
	"context"
	"strings"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// View is a tool as a seat's call would find it.
type View struct {
	Tool    *surface.Tool
	builtin *catalogue.Tool
}

// View answers what a name means for a seat. Its faults are those of a call: why the name means nothing.
func (d *Door) View(ctx context.Context, company *companyv1.Company, seat, tool string) (*View, error) {
	p := &passage{request: Request{Tool: tool}, record: &call.Record{Tool: d.cleaned(tool)}, caller: caller{seat: seat}, company: company}
	if err := d.resolve(ctx, p); err != nil {
		return nil, err
	}
	return &View{Tool: p.tool, builtin: p.builtin}, nil
}

// ReadForRules reads arguments as rules see them; nil for none, which is not the same as an empty object. Faults: invalid.
func (d *Door) ReadForRules(v *View, arguments string) (map[string]any, error) {
	if strings.TrimSpace(arguments) == "" {
		return nil, nil
	}
	p := &passage{request: Request{Arguments: arguments}, tool: v.Tool, builtin: v.builtin}
	if v.builtin != nil {
		var err error
		if p.input, err = v.builtin.Decode(arguments); err != nil {
			return nil, err
		}
	}
	return p.asRulesSee()
}
