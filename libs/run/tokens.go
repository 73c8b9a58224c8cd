package run

import (
	"context"
	"sync"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/tool/v1/toolv1connect"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// tokenService is the service that answers bullpen.tool.v1.PrincipalService.
const tokenService = "company"

// tokens verifies API tokens where they are kept. The client is found at the first token: in one process with the token
// service, the server that asks is the server that answers.
type tokens func() toolv1connect.PrincipalServiceClient

func newTokens(process string, p func() *peers) tokens {
	return sync.OnceValue(func() toolv1connect.PrincipalServiceClient {
		return toolv1connect.NewPrincipalServiceClient(p().client(process, tokenService))
	})
}

// VerifyToken implements [rpc.TokenVerifier].
func (client tokens) VerifyToken(ctx context.Context, token string) (*rpc.Principal, error) {
	answer, err := client().VerifyToken(ctx, &toolv1.VerifyTokenRequest{Token: token})
	if err != nil {
		return nil, rpc.FromError(err)
	}
	return answer.GetPrincipal(), nil
}
