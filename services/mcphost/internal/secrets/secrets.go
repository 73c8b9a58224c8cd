// Package secrets fills the `${NAME}` of a server's configuration, and takes the values out again of whatever comes back.
//
// The values are asked for at each start of an instance and live in its memory and its child's environment, nowhere else. What
// the instance says, in results, reasons and log lines, passes its [Redactor] first.
package secrets

import (
	"context"
	"strings"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// perRequest is how many templates one request may carry.
const perRequest = 256

// Company is the company service, as far as secrets go.
type Company interface {
	ResolveSecrets(ctx context.Context, request *companyv1.ResolveSecretsRequest) (*companyv1.ResolveSecretsResponse, error)
}

// Filler collects templates and fills them together. The zero value is ready to use; it is for one goroutine.
type Filler struct {
	templates []string
	targets   []func(string)
}

// Add has the text given to set once it is filled. A text without a template is given at once.
func (f *Filler) Add(text string, set func(string)) {
	if !strings.Contains(text, "${") {
		set(text)
		return
	}
	f.templates = append(f.templates, text)
	f.targets = append(f.targets, set)
}

// AddMap adds every value of a map, to be filled in place.
func (f *Filler) AddMap(m map[string]string) {
	for name, text := range m {
		f.Add(text, func(value string) { m[name] = value })
	}
}

// Fill asks company for the values and answers what hides them. The error's sentence names what cannot be resolved.
func (f *Filler) Fill(ctx context.Context, company Company) (*Redactor, error) {
	var values []string
	for start := 0; start < len(f.templates); start += perRequest {
		part := f.templates[start:min(start+perRequest, len(f.templates))]
		answer, err := company.ResolveSecrets(ctx, &companyv1.ResolveSecretsRequest{Templates: part})
		if err != nil {
			return nil, rpc.FromError(err)
		}
		for i, value := range answer.GetValues() {
			f.targets[start+i](value)
		}
		values = append(values, answer.GetSecrets()...)
	}
	return NewRedactor(values), nil
}
