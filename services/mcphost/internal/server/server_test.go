package server_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/server"
)

func TestFailuresWaitLongerUntilTheBreakerOpens(t *testing.T) {
	t.Parallel()
	p := server.Policy{First: time.Second, Longest: 4 * time.Second, Open: 4, Probe: time.Minute, Sustained: time.Minute}
	now := time.Unix(0, 0)
	m := server.New(p, func() float64 { return 0.999999999 }, now)
	var waits []time.Duration
	for range 6 {
		require.True(t, m.Start(now))
		require.True(t, m.Fail("it broke", now))
		require.False(t, m.Start(now), "not before its time")
		waits = append(waits, m.Due().Sub(now).Round(time.Millisecond))
		now = m.Due()
	}
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, time.Minute, time.Minute, time.Minute}, waits)
	require.True(t, m.Open())

	up := func() {
		require.True(t, m.Start(now))
		require.True(t, m.Handshake(now))
		require.True(t, m.Up(now))
	}
	up()
	require.True(t, m.Fail("it broke at once", now))
	require.True(t, m.Open(), "a start alone closes nothing")
	now = m.Due()
	up()
	now = now.Add(p.Sustained)
	require.True(t, m.Fail("it broke after a while", now))
	require.False(t, m.Open(), "time in ready forgets")
}

func TestAMachineKeepsItsRulesWhateverHappens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := server.DefaultPolicy()
		now := time.Unix(0, 0)
		m := server.New(p, func() float64 { return rapid.Float64Range(0, 0.999).Draw(t, "jitter") }, now)
		legal := map[server.State][]server.State{
			server.Idle:       {server.Spawn, server.Shutdown},
			server.Spawn:      {server.Initialise, server.Failed, server.Shutdown},
			server.Initialise: {server.Ready, server.Failed, server.Shutdown},
			server.Ready:      {server.Failed, server.Shutdown},
			server.Failed:     {server.Spawn, server.Shutdown},
			server.Shutdown:   {},
		}
		step := func(move func() bool) {
			before, _, _ := m.State()
			due, starts := m.Due(), m.Starts()
			moved := move()
			after, reason, since := m.State()
			if !moved {
				require.Equal(t, before, after)
				return
			}
			require.Contains(t, legal[before], after)
			require.Equal(t, now, since)
			require.Equal(t, after == server.Failed, reason != "")
			if after == server.Spawn {
				require.False(t, now.Before(due))
				require.Equal(t, starts+1, m.Starts())
			}
			if after == server.Failed {
				wait := m.Due().Sub(now)
				require.Positive(t, wait)
				require.LessOrEqual(t, wait, p.Probe, "it never gives up for ever")
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(10*time.Minute)).Draw(t, "time")))
			},
			"start":     func(*rapid.T) { step(func() bool { return m.Start(now) }) },
			"handshake": func(*rapid.T) { step(func() bool { return m.Handshake(now) }) },
			"up":        func(*rapid.T) { step(func() bool { return m.Up(now) }) },
			"fail":      func(*rapid.T) { step(func() bool { return m.Fail("reason", now) }) },
			"demand":    func(*rapid.T) { m.Demand(now) },
			"postpone": func(t *rapid.T) {
				if m.Postpone(now) {
					require.True(t, m.Due().After(now))
					require.False(t, m.Retries(now))
				}
			},
			"stop": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "rarely") == 0 {
					step(func() bool { return m.Stop(now) })
				}
			},
		})
	})
}

func TestWhoeverAsksHasAFailedInstanceTriedButNotAtOnce(t *testing.T) {
	t.Parallel()
	p := server.DefaultPolicy()
	now := time.Unix(0, 0)
	m := server.New(p, func() float64 { return 0 }, now)
	require.False(t, m.Demand(now), "nothing has failed")
	for range p.Open {
		require.True(t, m.Start(now))
		require.True(t, m.Fail("it broke", now))
		now = m.Due()
	}
	require.True(t, m.Open())
	_, _, failed := m.State()
	now = failed.Add(p.Demand - 1)
	require.False(t, m.Demand(now))
	require.False(t, m.Start(now))
	now = now.Add(1)
	require.True(t, m.Demand(now))
	require.False(t, m.Demand(now), "it is due already")
	require.True(t, m.Start(now))
	require.True(t, m.Fail("it broke", now))
	require.True(t, m.Due().After(now.Add(p.Demand)), "one probe closes nothing")
}

func TestARetryCanBePutOffButNotWhatSomebodyAskedFor(t *testing.T) {
	t.Parallel()
	p := server.DefaultPolicy()
	now := time.Unix(0, 0)
	m := server.New(p, func() float64 { return 0 }, now)
	require.False(t, m.Postpone(now), "the first start")
	require.True(t, m.Start(now))
	require.True(t, m.Fail("it broke", now))
	require.False(t, m.Postpone(now), "it waits anyway")
	now = m.Due()
	require.True(t, m.Postpone(now))
	require.False(t, m.Start(now))
	require.Equal(t, 1, m.Starts())
	now = m.Due()
	require.True(t, m.Retries(now))
	require.True(t, m.Start(now))
	require.True(t, m.Fail("it broke", now))
	require.True(t, m.Forgive(now))
	require.False(t, m.Postpone(now))
	require.True(t, m.Start(now))
}

func TestWhatAFailureWaitedForTakesItBack(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	m := server.New(server.Policy{First: time.Minute, Longest: time.Hour, Open: 2, Probe: time.Hour, Sustained: time.Minute}, func() float64 { return 0 }, now)
	require.False(t, m.Forgive(now), "nothing failed")
	for range 3 {
		require.True(t, m.Start(now))
		require.True(t, m.Fail("somebody must consent", now))
		require.False(t, m.Start(now))
		require.True(t, m.Forgive(now))
		require.False(t, m.Open())
	}
	require.True(t, m.Start(now))
}
