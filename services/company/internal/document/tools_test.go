package document_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/company/internal/document"
)

func TestAPolicyIsResolvedToHandlesAndUnitIDs(t *testing.T) {
	t.Parallel()
	company, problems := document.Parse(`
name: Co
roles: [{name: Ada Byron}]
units: [{name: Dev Ops, roles: [{name: Bo, handle: b}]}]
tool_policy:
  hold_changed_tools: true
  rules:
    - {name: main asks, effect: ask, seats: [Ada Byron, b], units: [Dev Ops], tools: ['push*'], when: 'true', reason: it is protected}
    - {name: short ask, effect: ask, expire_seconds: 60}
    - {name: no, effect: deny, sources: [builtin]}
`)
	require.Empty(t, problems)
	require.Equal(t, document.Policy{Otherwise: "allow", HoldChanged: true, Rules: []document.Rule{
		{
			Name: "main asks", Effect: "ask", Seats: []string{"ada-byron", "b"}, Units: []string{"dev-ops"},
			Tools: []string{"push*"}, Sources: []string{}, When: "true", Reason: "it is protected", ExpireSeconds: 86400,
		},
		{Name: "short ask", Effect: "ask", Tools: []string{}, Sources: []string{}, ExpireSeconds: 60},
		{Name: "no", Effect: "deny", Tools: []string{}, Sources: []string{"builtin"}},
	}}, company.Policy)
}

func TestAServerKeepsHowItIsAuthorisedAndHowLongEachToolMayTake(t *testing.T) {
	t.Parallel()
	company, problems := document.Parse(`
name: Co
roles: [{name: Ada}]
mcp_servers:
  - {name: a, transport: sse, url: 'https://a.example/sse', tool_timeout_seconds: {index: 900},
     authorization: {grant: client_credentials, client_id: co, client_secret: '${S}', scopes: [read]}}
  - {name: b, command: x}
`)
	require.Empty(t, problems)
	a, b := company.Servers[0], company.Servers[1]
	require.Equal(t, document.TransportSSE, a.Transport)
	require.Equal(t, document.ProtocolAuto, a.Protocol)
	require.Equal(t, map[string]int{"index": 900}, a.ToolSeconds)
	require.Equal(t, &document.Authorization{
		Grant: "client_credentials", ClientID: "co", ClientSecret: "${S}", Scopes: []string{"read"},
	}, a.Authorization)
	require.Nil(t, b.Authorization)
}

func TestToolSkillsKeepTheirContainerAndVariables(t *testing.T) {
	t.Parallel()
	company, problems := document.Parse("name: Co\nroles: [{name: Ada}]\nknowledge: {skills_container: TS}\nskill_variables: {wiki: 'https://w.example'}\n")
	require.Empty(t, problems)
	require.Equal(t, "TS", company.SkillsContainer)
	require.Equal(t, map[string]string{"wiki": "https://w.example"}, company.SkillVariables)
}
