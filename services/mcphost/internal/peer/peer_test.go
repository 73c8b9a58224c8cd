package peer_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace/noop"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1/mcphostv1connect"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/peer"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

// named is a node that knows its name.
type named struct {
	mcphostv1connect.UnimplementedMcpHostServiceHandler

	peers *peer.Peers
}

func (n named) ReleaseSeat(ctx context.Context, _ *mcphostv1.ReleaseSeatRequest) (*mcphostv1.ReleaseSeatResponse, error) {
	_, _, err := n.peers.Incoming(ctx)
	return &mcphostv1.ReleaseSeatResponse{}, err
}

func peers(t *testing.T, self string, keys *rpc.Keys) *peer.Peers {
	t.Helper()
	p := peer.New(self, "mcphost", keys, noop.NewTracerProvider())
	t.Cleanup(p.Close)
	return p
}

func TestANodeHasEndedWhenItsAddressIsNobodysOrAnothers(t *testing.T) {
	t.Parallel()
	keys, err := rpc.NewKeys(config.Secret(strings.Repeat("k", rpc.MinKeyBytes)))
	require.NoError(t, err)
	server := rpc.NewServer(rpc.ServerOptions{Service: "mcphost", Log: slog.New(slog.DiscardHandler), Keys: keys})
	mcphostv1connect.RegisterMcpHostServiceHandler(server, named{peers: peers(t, "two", keys)})
	mux := http.NewServeMux()
	rpc.Mount(mux, server)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	// One that is stopped: the system takes connections for it, and nobody answers.
	stopped, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stopped.Close()) })
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, free.Close())

	one := peers(t, "one", keys)
	for url, ended := range map[string]bool{
		web.URL:                             false,
		"http://" + stopped.Addr().String(): false,
		"http://" + free.Addr().String():    true,
		"http://unknown.invalid:1":          false,
		"%":                                 false,
	} {
		require.Equal(t, ended, one.Ended(t.Context(), store.Node{Name: "two", URL: url}), url)
	}
	require.True(t, one.Ended(t.Context(), store.Node{Name: "three", URL: web.URL}), "another process has its address")
}
