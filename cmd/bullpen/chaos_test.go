package main_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/topology"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/pgtest"
)

const (
	// chaosLength is how long there is load.
	chaosLength = 75 * time.Second
	// chaosQuiet is how long nothing may get done afterwards while something waits: longer than any lease.
	chaosQuiet = 45 * time.Second
	// chaosEvery is between two questions.
	chaosEvery = 150 * time.Millisecond
)

// TestChaos kills every process of the installation under load, again and again. In the end nothing that was acknowledged is
// lost and nothing that is ours is there twice. It runs with BULLPEN_TEST_CHAOS=1; a value of BULLPEN_TEST_CHAOS_SEED repeats
// an order of kills.
func TestChaos(t *testing.T) {
	if os.Getenv("BULLPEN_TEST_CHAOS") != "1" {
		t.Skip("takes minutes; runs when BULLPEN_TEST_CHAOS=1 (make chaos)")
	}
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("BULLPEN_TEST_CHAOS_SEED"); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("the seed is %d", seed)

	vendors, models := startVendors(t), startCrowdModel(t, 30*time.Millisecond)
	postgres, broker := pgtest.Server(t), newBrokerProcess(t)
	settings, secrets := divide(crowdEnvironment(vendors))
	settings[config.EnvName("turn.lease-ttl")] = "3s"
	installation := startTopology(t, topology.Options{
		DatabaseURL: postgres.DSN(), Brokers: []string{broker.address}, Document: crowdDocument(program(t), models.URL()),
		Settings: settings, Secrets: secrets,
	})

	questions := newLoad(installation.URL("notification"), vendors, seed)
	asking, stop := context.WithCancel(t.Context())
	defer stop()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		questions.run(asking, chaosEvery)
	}()
	kills := newHavoc(seed, installation, postgres, broker)
	kills.run(t, chaosLength)
	stop()
	<-asked

	observed := newRecord(installation.Client)
	began := time.Now()
	comeToRest(t, observed, questions.acknowledged)
	v := verdict{
		questions: questions.acknowledged, journals: observed.journals(t), bills: models.Bills(), record: observed, vendors: vendors,
		database: postgres.DSN(), lost: crowd * (kills.kills["turn"] + kills.kills["postgres"]),
	}
	t.Logf("killed:\n%s", strings.Join(kills.points, "\n"))
	t.Logf("%d questions acknowledged, %d sent again for want of an acknowledgement; at rest %.1fs after the last; %s",
		len(questions.acknowledged), questions.again.Load(), time.Since(began).Seconds(), v.summary(t))
	require.Empty(t, questions.refused, "every question was acknowledged in the end")
	v.check(t)
}

// comeToRest waits until every acknowledged question has been worked on and nothing is under way any more.
func comeToRest(t *testing.T, observed *record, acknowledged map[string]question) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stalled := time.AfterFunc(chaosQuiet, cancel)
	defer stalled.Stop()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	ended := map[string]bool{}
	for {
		before := len(ended)
		busy, err := observed.ended(ctx, ended)
		if len(ended) > before {
			// However slow the machine is, something gets done.
			stalled.Reset(chaosQuiet)
		}
		if err == nil && busy == "" {
			busy, err = observed.busy(ctx)
		}
		waiting := maps.Clone(acknowledged)
		maps.DeleteFunc(waiting, func(name string, _ question) bool { return ended[name] })
		if err == nil && busy == "" && len(waiting) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			require.Fail(t, "it does not come to rest", "%s; %v; questions without an ended turn: %v; turns that run: %s",
				busy, err, slices.Sorted(maps.Keys(waiting)), running(t, observed))
		case <-ticker.C:
		}
	}
}

// running tells of the turns that run.
func running(t *testing.T, observed *record) string {
	t.Helper()
	var told []string
	for _, j := range observed.journals(t) {
		if turn := j.GetTurn(); turn.GetState() == "running" {
			told = append(told, fmt.Sprintf("%s (%s, %d resumes, %d rounds): %s", turn.GetTurnId(), turn.GetSeat(), turn.GetResumes(), len(j.GetRounds()), lastCall(j)))
		}
	}
	slices.Sort(told)
	return strings.Join(told, "; ")
}
