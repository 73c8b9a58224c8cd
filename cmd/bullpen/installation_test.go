package main_test

import (
	"context"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/story"
	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/topology"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/pgtest"
)

// patience bounds everything that must happen; tests end long before.
const patience = 2 * time.Minute

// built builds all binaries once a test run.
var built = sync.OnceValues(func() (string, error) { return topology.Build(context.Background()) })

// binaries answers the folder of all binaries.
func binaries(t *testing.T) string {
	t.Helper()
	dir, err := built()
	require.NoError(t, err)
	return dir
}

// program answers the path of the bullpen binary.
func program(t *testing.T) string {
	t.Helper()
	return filepath.Join(binaries(t), "bullpen")
}

// startBroker starts the embedded broker in this process, on a port that clients can find again.
func startBroker(t *testing.T) []string {
	t.Helper()
	broker, err := embedded.Start(t.Context(), embedded.Options{DataDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	return broker.Brokers()
}

// startTopology starts every service in a process of its own. What it is not told it gets a default for: a database of its
// own, and an embedded broker. When the test fails, the logs are printed.
func startTopology(t *testing.T, o topology.Options) *topology.Topology {
	t.Helper()
	o.Bin, o.Dir = binaries(t), t.TempDir()
	if o.DatabaseURL == "" {
		o.DatabaseURL = pgtest.DSN(t)
	}
	if o.Brokers == nil {
		o.Brokers = startBroker(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	installation, err := topology.Start(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		// The test's own context has ended by now.
		require.NoError(t, installation.Close(context.Background()))
		if t.Failed() {
			for _, service := range topology.Services() {
				t.Logf("the end of %s's log:\n%s", service, installation.Log(service))
			}
		}
	})
	return installation
}

// startVendors starts the doubles of the outside world.
func startVendors(t *testing.T) *story.Vendors {
	t.Helper()
	vendors, err := story.StartVendors(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, vendors.Close()) })
	return vendors
}

// divide tells settings, which all services get, from the company's secrets, which only one does.
func divide(environment map[string]string) (settings, secrets map[string]string) {
	settings, secrets = maps.Clone(environment), maps.Clone(environment)
	maps.DeleteFunc(settings, func(name, _ string) bool { return !strings.HasPrefix(name, "BULLPEN_") })
	maps.DeleteFunc(secrets, func(name, _ string) bool { return strings.HasPrefix(name, "BULLPEN_") })
	return settings, secrets
}
