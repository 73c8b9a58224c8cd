package api_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// Each RPC is asked by each kind of caller; the table is the one in the package comment.
func TestWhoMayAsk(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	b.put(lantern, "")

	type caller struct {
		name string
		via  *clients
		as   func(t *testing.T) context.Context
	}
	person := func(t *testing.T) context.Context { t.Helper(); return as(t, rpc.KindPerson, "ines-rocha") }
	seat := func(t *testing.T) context.Context { t.Helper(); return as(t, rpc.KindSeat, "ops-lead") }
	callers := []caller{
		{"service", b.connect("tracker"), (*testing.T).Context},
		{"operator", b.clients, operator},
		{"person", b.clients, person},
		{"seat through the door", b.connect("toolregistry"), seat},
		{"seat on its own", b.connect("turn"), seat},
	}
	const everybody, noSeat, writers, services = "all", "no seat", "writers", "services"
	for name, c := range map[string]struct {
		who  string
		call func(ctx context.Context, c *clients) error
	}{
		"CheckCompany": {noSeat, func(ctx context.Context, c *clients) error {
			_, err := c.company.CheckCompany(ctx, &companyv1.CheckCompanyRequest{Document: "a"})
			return err
		}},
		"GetCompany": {noSeat, func(ctx context.Context, c *clients) error {
			_, err := c.company.GetCompany(ctx, &companyv1.GetCompanyRequest{})
			return err
		}},
		"GetDocument": {noSeat, func(ctx context.Context, c *clients) error {
			_, err := c.company.GetDocument(ctx, &companyv1.GetDocumentRequest{})
			return err
		}},
		"ListRevisions": {noSeat, func(ctx context.Context, c *clients) error {
			_, err := c.company.ListRevisions(ctx, &companyv1.ListRevisionsRequest{})
			return err
		}},
		"ListMcpServers": {noSeat, func(ctx context.Context, c *clients) error {
			_, err := c.company.ListMcpServers(ctx, &companyv1.ListMcpServersRequest{})
			return err
		}},
		"GetMcpServer": {noSeat, func(ctx context.Context, c *clients) error {
			_, err := c.company.GetMcpServer(ctx, &companyv1.GetMcpServerRequest{Name: "chat"})
			return err
		}},
		"PutMcpServer": {writers, func(ctx context.Context, c *clients) error {
			_, err := c.company.PutMcpServer(ctx, &companyv1.PutMcpServerRequest{Name: "x", EntryJson: "{}", Summary: "x"})
			return err
		}},
		"LookupColleague": {everybody, func(ctx context.Context, c *clients) error {
			_, err := c.company.LookupColleague(ctx, &companyv1.LookupColleagueRequest{Query: "ops-lead"})
			return err
		}},
		"PutCompany": {writers, func(ctx context.Context, c *clients) error {
			_, err := c.company.PutCompany(ctx, &companyv1.PutCompanyRequest{Document: lantern, Summary: "x"})
			return err
		}},
		"PutSecret": {writers, func(ctx context.Context, c *clients) error {
			_, err := c.company.PutSecret(ctx, &companyv1.PutSecretRequest{Name: "A", Value: "b"})
			return err
		}},
		"ListSecrets": {writers, func(ctx context.Context, c *clients) error {
			_, err := c.company.ListSecrets(ctx, &companyv1.ListSecretsRequest{})
			return err
		}},
		"DeleteSecret": {writers, func(ctx context.Context, c *clients) error {
			_, err := c.company.DeleteSecret(ctx, &companyv1.DeleteSecretRequest{Name: "NONE"})
			return err
		}},
		"CreateToken": {writers, func(ctx context.Context, c *clients) error {
			_, err := c.company.CreateToken(ctx, &companyv1.CreateTokenRequest{Name: "x"})
			return err
		}},
		"ListTokens": {writers, func(ctx context.Context, c *clients) error {
			_, err := c.company.ListTokens(ctx, &companyv1.ListTokensRequest{})
			return err
		}},
		"RevokeToken": {writers, func(ctx context.Context, c *clients) error {
			_, err := c.company.RevokeToken(ctx, &companyv1.RevokeTokenRequest{TokenId: "00000000-0000-7000-8000-000000000000"})
			return err
		}},
		"VerifyToken": {services, func(ctx context.Context, c *clients) error {
			_, err := c.principals.VerifyToken(ctx, &toolv1.VerifyTokenRequest{Token: "x"})
			return err
		}},
		"ResolveSecrets": {"nobody of these", func(ctx context.Context, c *clients) error {
			_, err := c.company.ResolveSecrets(ctx, &companyv1.ResolveSecretsRequest{})
			return err
		}},
	} {
		for _, caller := range callers {
			t.Run(caller.name+" asks "+name, func(t *testing.T) {
				t.Parallel()
				allowed := map[string]bool{
					everybody: caller.name != "seat on its own",
					noSeat:    caller.name == "service" || caller.name == "operator" || caller.name == "person",
					writers:   caller.name == "service" || caller.name == "operator",
					services:  caller.name == "service",
				}[c.who]
				err := c.call(caller.as(t), caller.via)
				if !allowed {
					refused(t, err, fault.Forbidden)
				} else if err != nil && name != "VerifyToken" {
					require.NotEqual(t, fault.Forbidden, rpc.FromError(err).Class)
				} else if name == "VerifyToken" {
					require.Equal(t, "TOKEN_NOT_LIVE", refused(t, err, fault.Forbidden).Reason)
				}
			})
		}
	}
}
