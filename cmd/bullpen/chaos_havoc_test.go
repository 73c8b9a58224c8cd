package main_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/topology"
	"github.com/bullpenhq/bullpen/libs/pg/pgserver"
)

// victim is something that is killed and comes back.
type victim struct {
	name   string
	kill   func() error
	revive func(ctx context.Context) error
}

// havoc kills one victim after the other, in an order and at moments that follow from a seed.
type havoc struct {
	random  *rand.Rand
	victims []victim
	began   time.Time
	// points tells what was killed when, and kills how often.
	points []string
	kills  map[string]int
}

func newHavoc(seed uint64, installation *topology.Topology, postgres *pgserver.Server, broker *brokerProcess) *havoc {
	h := &havoc{random: rand.New(rand.NewPCG(seed, 2)), began: time.Now(), kills: map[string]int{}}
	for _, service := range topology.Services() {
		h.victims = append(h.victims, victim{
			name: service,
			kill: func() error { return installation.Kill(service) },
			revive: func(ctx context.Context) error {
				return installation.Restart(ctx, service)
			},
		})
	}
	var killed int
	h.victims = append(h.victims,
		victim{
			name: "postgres",
			kill: func() error {
				killed = postgres.PID()
				return syscall.Kill(killed, syscall.SIGKILL)
			},
			// Its supervisor starts it again.
			revive: func(ctx context.Context) error { return awaitPostgres(ctx, postgres, killed) },
		},
		victim{
			name: "kafka", kill: broker.kill,
			revive: func(context.Context) error { return broker.start() },
		},
	)
	return h
}

func awaitPostgres(ctx context.Context, postgres *pgserver.Server, killed int) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		if postgres.PID() != killed {
			conn, err := pgx.Connect(ctx, postgres.DSN())
			if err == nil {
				return conn.Close(ctx)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("postgres did not come back: %w", ctx.Err())
		case <-ticker.C:
		}
	}
}

// run kills everything once and then goes on until the length is over. Each victim is back before the next is killed.
func (h *havoc) run(t *testing.T, length time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), length+patience)
	defer cancel()
	for round := 1; ; round++ {
		for _, i := range h.random.Perm(len(h.victims)) {
			if round > 1 && time.Since(h.began) > length {
				return
			}
			v := h.victims[i]
			h.wait(ctx, 500*time.Millisecond, 2500*time.Millisecond)
			at := time.Since(h.began)
			require.NoError(t, v.kill(), v.name)
			h.wait(ctx, 0, 1200*time.Millisecond)
			require.NoError(t, v.revive(ctx), v.name)
			h.kills[v.name]++
			h.points = append(h.points, fmt.Sprintf("%6.2fs %s, ready again %.2fs later", at.Seconds(), v.name, (time.Since(h.began)-at).Seconds()))
		}
	}
}

// wait lets a random while go by.
func (h *havoc) wait(ctx context.Context, least, most time.Duration) {
	timer := time.NewTimer(least + time.Duration(h.random.Int64N(int64(most-least))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
