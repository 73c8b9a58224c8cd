package cli

import (
	"context"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// tokens are the names of API tokens, by the principal that each acts as.
type tokens map[string]string

// tokenNames answers no names where this caller may not list tokens: an id is read then.
func (a *app) tokenNames(ctx context.Context) tokens {
	client, err := a.companyClient()
	if err != nil {
		return nil
	}
	response, err := client.ListTokens(ctx, &companyv1.ListTokensRequest{})
	if err != nil {
		return nil
	}
	names := tokens{}
	for _, t := range response.GetTokens() {
		if t.GetSeat() == "" { // the others act as their seat, which has a name
			names[rpc.KindOperator+":"+t.GetTokenId()] = t.GetName()
		}
	}
	return names
}

// short is a principal for a table: the name of its token, where it is one.
func (n tokens) short(principal string) string {
	if name := n[principal]; name != "" {
		return "token " + name
	}
	return principal
}

// full is a principal with the name of its token, where it is one.
func (n tokens) full(principal string) string {
	if name := n[principal]; name != "" {
		return principal + " (token " + name + ")"
	}
	return principal
}
