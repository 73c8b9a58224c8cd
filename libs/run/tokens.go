package run

import (
	"context"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/tool/v1/toolv1connect"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// tokenService is the service that answers bullpen.tool.v1.PrincipalService.
const tokenService = "company"

// tokens verifies API tokens where they are kept. The client is found late: in one process with the token service, the server
// that asks is the server that answers.
type tokens struct {
	process string
	peers   func() *peers
}

// VerifyToken implements [rpc.TokenVerifier].
func (t tokens) VerifyToken(ctx context.Context, token string) (*rpc.Principal, error) {
	client := toolv1connect.NewPrincipalServiceClient(t.peers().client(t.process, tokenService))
	answer, err := client.VerifyToken(ctx, &toolv1.VerifyTokenRequest{Token: token})
	if err != nil {
		return nil, rpc.FromError(err)
	}
	return answer.GetPrincipal(), nil
}
