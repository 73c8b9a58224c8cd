package api

import (
	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/services/company/internal/document"
)

func policyToProto(p document.Policy) *companyv1.ToolPolicy {
	out := &companyv1.ToolPolicy{Otherwise: p.Otherwise, HoldChangedTools: p.HoldChanged}
	for _, r := range p.Rules {
		out.Rules = append(out.Rules, &companyv1.ToolRule{
			Name: r.Name, Effect: r.Effect, Seats: r.Seats, Units: r.Units, Tools: r.Tools, Sources: r.Sources,
			When: r.When, Reason: r.Reason, ExpireSeconds: int32(r.ExpireSeconds),
		})
	}
	return out
}

func serverToProto(s document.Server) *companyv1.McpServer {
	out := &companyv1.McpServer{
		Name: s.Name, Transport: s.Transport, Command: s.Command, Args: s.Args, Env: s.Env, Url: s.URL, Headers: s.Headers,
		Shared: s.Shared, ToolPrefix: s.ToolPrefix, ToolAnnotations: map[string]*companyv1.ToolAnnotations{},
		Surfaces: s.Surfaces, StartupTimeoutSeconds: int32(s.StartSeconds), RequestTimeoutSeconds: int32(s.CallSeconds),
		InstallTimeoutSeconds: int32(s.InstallSeconds), Protocol: s.Protocol, ToolTimeoutSeconds: map[string]int32{},
	}
	if a := s.Authorization; a != nil {
		out.Authorization = &companyv1.McpAuthorization{
			Grant: a.Grant, ClientId: a.ClientID, ClientSecret: a.ClientSecret, Scopes: a.Scopes,
		}
	}
	for tool, seconds := range s.ToolSeconds {
		out.ToolTimeoutSeconds[tool] = int32(seconds)
	}
	for tool, a := range s.Annotations {
		out.ToolAnnotations[tool] = &companyv1.ToolAnnotations{
			ReadOnly: a.ReadOnly, Destructive: a.Destructive, Idempotent: a.Idempotent, OpenWorld: a.OpenWorld,
		}
	}
	return out
}
