package api

import (
	"google.golang.org/protobuf/types/known/durationpb"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/door"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

func callFromProto(req *toolregistryv1.CallToolRequest) door.Request {
	return door.Request{
		Tool: req.GetTool(), Arguments: req.GetArgumentsJson(), OperationID: req.GetOperationId(), CallID: req.GetCallId(), Seat: req.GetSeat(),
		Timeout: req.GetTimeout().AsDuration(), NotOffered: req.GetNotOffered(),
	}
}

func answerToProto(a *door.Answer) *toolregistryv1.CallToolResponse {
	return &toolregistryv1.CallToolResponse{
		Text: a.Text, ResultJson: a.JSON, Failed: a.Failed, Receipt: a.Receipt, Source: a.Source, Delivered: a.Delivered,
		AuditId: a.AuditID.String(), Duration: durationpb.New(a.Duration), ApprovalId: a.ApprovalID,
	}
}

// ToolToProto answers a row as callers see it.
func ToolToProto(t *surface.Tool) *toolregistryv1.Tool {
	p := &toolregistryv1.Tool{
		Name: t.Name, WireName: t.Wire, Title: t.Title, Description: t.Description, Source: t.Source, InputSchemaJson: t.Schema,
		OutputSchemaJson: t.OutputSchema, RawJson: t.JSON,
		Annotations: &toolregistryv1.Annotations{
			ReadOnly: t.Hints.ReadOnly, Destructive: t.Hints.Destructive, Idempotent: t.Hints.Idempotent, OpenWorld: t.Hints.OpenWorld,
		},
		Delivers: t.Delivers, Surfaces: t.Surfaces, ArgumentCount: int32(t.Arguments), Audiences: t.Audiences, EngineLocal: t.EngineLocal,
		Digest: t.Digest, Change: t.Change, Quarantine: t.Quarantine,
	}
	for provider, shown := range t.Shown {
		if shown.Refused != "" {
			p.ProviderQuarantine = with(p.GetProviderQuarantine(), provider, shown.Refused)
		} else {
			p.ProviderSchemas = with(p.GetProviderSchemas(), provider, shown.Schema)
		}
	}
	return p
}

func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}
