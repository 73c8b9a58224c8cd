package mcphost_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/durationpb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/mcphost"
)

// leakless waits until no goroutine is left but those of before. Connections to the broker and to Postgres are the process's, and
// end when they like.
func leakless(t *testing.T, before goleak.Option) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); {
		if err = goleak.Find(before,
			goleak.IgnoreTopFunction("github.com/jackc/pgx/v5/pgxpool.(*Pool).backgroundHealthCheck"),
			goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn/internal/bgreader.(*BGReader).bgRead"),
			goleak.IgnoreAnyFunction("github.com/segmentio/kafka-go.(*conn).run"),
			goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read"),
			goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read.func1"),
			goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).write"),
		); err == nil {
			return
		}
	}
	require.NoError(t, err)
}

// None of the tests here is parallel: whatever runs when it begins is not its own.

func TestStartsAndStopsLeaveNothingBehind(t *testing.T) {
	w := setup(t)
	before := goleak.IgnoreCurrent()
	n := w.node(t, "n1")
	good, effects := hostile(t, "good", "")
	bad, badEffects := hostile(t, "bad", "fail")
	template, ownEffects := hostile(t, "own", "modern")
	template.Shared = false
	seats := []*companyv1.Seat{seatWith("ada", "own"), seatWith("bo", "own"), seatWith("cy", "own")}
	for range 5 {
		w.apply(t, n, []*companyv1.McpServer{good, bad, template}, seats...)
		require.Equal(t, "ready", n.tools(t, "", "good").GetState())
		n.tools(t, "", "bad")
		for _, seat := range seats {
			_, err := n.call(t.Context(), seat.GetHandle(), "own", "echo", "{}")
			require.NoError(t, err)
		}
		_, err := n.call(t.Context(), "ada", "own", "crash", "{}")
		require.Error(t, err)
		w.apply(t, n, nil)
	}
	n.stop()
	for _, file := range []string{effects, badEffects, ownEffects} {
		require.Empty(t, childrenOf(t, file))
	}
	require.GreaterOrEqual(t, count(t, effects, "start"), 5, "once a round, and again where a busy machine made it seem silent")
	leakless(t, before)
}

func TestAThousandStartsAndStopsLeaveNothingBehind(t *testing.T) {
	const cycles, seats = 1000, 20
	w, program := setup(t), tiny(t)
	goroutines, open := goleak.IgnoreCurrent(), descriptors(t)
	n := w.node(t, "n1", func(c *mcphost.Config) { c.ParallelStarts = 8 })
	servers := templates(program, 1)
	w.apply(t, n, servers, seated(seats, servers)...)
	var group sync.WaitGroup
	var ended atomic.Int32
	for seat := range seats {
		group.Go(func() {
			handle := fmt.Sprintf("seat%d", seat)
			for range cycles / seats {
				if _, err := n.call(t.Context(), handle, "s0", "echo", "{}"); err != nil {
					t.Errorf("call: %v", err)
					return
				}
				released, err := n.ReleaseSeat(t.Context(), &mcphostv1.ReleaseSeatRequest{Seat: handle})
				if err != nil {
					t.Errorf("release: %v", err)
					return
				}
				ended.Add(released.GetEnded())
			}
		})
	}
	group.Wait()
	require.EqualValues(t, cycles, ended.Load())
	require.Empty(t, processesOf(t, program), "while the node still runs")
	n.stop()
	leakless(t, goroutines)
	require.Equal(t, open, descriptors(t))
}

func TestAStormOfStartsKeepsToTheCeilingAndServesEverybody(t *testing.T) {
	const kinds, seats, ceiling = 50, 20, 60
	w, program := setup(t), tiny(t)
	goroutines, open := goleak.IgnoreCurrent(), descriptors(t)
	n := w.node(t, "n1", func(c *mcphost.Config) { c.ParallelStarts, c.MaxChildren = 8, ceiling })
	servers := templates(program, kinds)
	w.apply(t, n, servers, seated(seats, servers)...)
	var storm sync.WaitGroup
	for server := range kinds {
		for seat := range seats {
			storm.Go(func() {
				for {
					_, err := n.CallServerTool(t.Context(), &mcphostv1.CallServerToolRequest{
						Server: fmt.Sprintf("s%d", server), Tool: "echo", Seat: fmt.Sprintf("seat%d", seat), Timeout: durationpb.New(time.Minute),
					})
					if f := rpc.FromError(err); f != nil && f.Reason == "TOO_MANY_SERVERS" {
						continue // it says: try again later
					}
					if err != nil {
						t.Errorf("call: %v", err)
					}
					return
				}
			})
		}
	}
	over := make(chan struct{})
	go func() { storm.Wait(); close(over) }()
	most, look := 0, time.NewTicker(20*time.Millisecond)
	defer look.Stop()
	for running := true; running; {
		most = max(most, len(processesOf(t, program)))
		select {
		case <-look.C:
		case <-over:
			running = false
		}
	}
	require.LessOrEqual(t, most, ceiling)
	n.stop()
	require.Empty(t, processesOf(t, program))
	leakless(t, goroutines)
	require.Equal(t, open, descriptors(t))
}
