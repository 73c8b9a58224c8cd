package main_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/demo"
	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/story"
	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/topology"
	"github.com/bullpenhq/bullpen/libs/bus/bustest/apachekafka"
)

func TestStoryInOneProcess(t *testing.T) {
	t.Parallel()
	report, err := demo.Run(t.Context(), demo.Options{
		Executable: program(t), Getenv: os.Getenv, Watch: t.Output(), LogLevel: "warn", Log: t.Output(),
	})
	require.NoError(t, err)
	require.True(t, report.OK)
}

func TestStoryInSeparateProcesses(t *testing.T) {
	t.Parallel()
	playInSeparateProcesses(t, nil)
}

func TestStoryInSeparateProcessesOnApacheKafka(t *testing.T) {
	t.Parallel()
	playInSeparateProcesses(t, apachekafka.Start(t).Brokers())
}

func playInSeparateProcesses(t *testing.T, brokers []string) {
	t.Helper()
	vendors := startVendors(t)
	document, err := story.Document(program(t), demo.ServerCommand)
	require.NoError(t, err)
	settings, secrets := divide(vendors.Environment())
	installation := startTopology(t, topology.Options{Brokers: brokers, Document: document, Settings: settings, Secrets: secrets})
	report, err := story.Play(t.Context(), story.Target{
		Webhooks: installation.URL("notification"), Turn: installation.Client("turn"), Registry: installation.Client("toolregistry"),
	}, vendors, t.Output())
	require.NoError(t, err)
	require.True(t, report.OK)
	for _, service := range topology.Services() {
		code, err := installation.Stop(t.Context(), service)
		require.NoError(t, err)
		require.Zero(t, code, "%s ended with %d", service, code)
	}
}
