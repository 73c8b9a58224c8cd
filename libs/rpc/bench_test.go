package rpc_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/tool/v1/toolv1connect"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// BenchmarkCall is what one signed, validated, bounded call costs with a handler that does nothing.
func BenchmarkCall(b *testing.B) {
	keys, err := rpc.NewKeys(keyA)
	require.NoError(b, err)
	server := rpc.NewServer(rpc.ServerOptions{Log: slog.New(slog.DiscardHandler), Keys: keys})
	toolv1connect.RegisterPrincipalServiceHandler(server, answer(whoami))
	mux := http.NewServeMux()
	rpc.Mount(mux, server)
	listener := httptest.NewServer(mux)
	defer listener.Close()
	remote := rpc.HTTPTransport(listener.URL)
	defer remote.Close()
	for name, transport := range map[string]connect.Transport{"over HTTP": remote, "in process": rpc.InProcess(server)} {
		client := toolv1connect.NewPrincipalServiceClient(rpc.NewClient(transport, rpc.ClientOptions{Service: "turn", Keys: keys}))
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := client.VerifyToken(b.Context(), &toolv1.VerifyTokenRequest{Token: "t"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
