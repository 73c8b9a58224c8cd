package bench

import (
	"io"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/bench/upstream"
	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/topology"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/pgtest"
)

// BenchmarkCallBetweenProcesses is `bench call` where each service is a process of its own: a call as a turn makes it, over real ports
// to the registry and from there to the host, beside the same call made directly to the MCP server.
func BenchmarkCallBetweenProcesses(b *testing.B) {
	ctx := b.Context()
	bin, err := topology.Build(ctx)
	require.NoError(b, err)
	executable := filepath.Join(bin, "bullpen")
	address, err := serveWeb(ctx, executable)
	require.NoError(b, err)
	defer func() { require.NoError(b, address.close()) }()
	broker, err := embedded.Start(ctx, embedded.Options{})
	require.NoError(b, err)
	defer func() { require.NoError(b, broker.Close()) }()
	suite, err := topology.Start(ctx, topology.Options{
		Bin: bin, Dir: b.TempDir(), DatabaseURL: pgtest.DSN(b), Brokers: broker.Brokers(), Document: callCompany(executable, address.url),
	})
	require.NoError(b, err)
	defer func() { require.NoError(b, suite.Close(ctx)) }()
	turn := suite.ClientAs("turn", "toolregistry")
	require.NoError(b, awaitTools(ctx, toolregistryv1connect.NewToolRegistryServiceClient(turn), seat, len(transports())))

	options := CallDefaults(Options{Watch: io.Discard})
	var serial atomic.Int64
	for _, transport := range transports() {
		session, err := connectDirectly(ctx, executable, transport, address.url)
		require.NoError(b, err)
		arms := []arm{sessionArm(direct, session, upstream.Tool), registryArm(turn, transport)}
		for _, a := range arms {
			for range options.WarmUp {
				require.NoError(b, a.call(ctx, int(serial.Add(1)), options.Bytes[0]))
			}
		}
		for _, workers := range []int{1, 16} {
			b.Run(transport+"/workers="+strconv.Itoa(workers), func(b *testing.B) {
				for b.Loop() {
					cells, err := cell(ctx, options, arms, workers, options.Bytes[0], &serial)
					require.NoError(b, err)
					b.ReportMetric(cells[1].AddedP50, "added-p50-ms")
					b.ReportMetric(cells[1].AddedP99, "added-p99-ms")
					b.ReportMetric(cells[1].Ratio, "of-direct-rate")
				}
			})
		}
		require.NoError(b, session.Close())
	}
}
