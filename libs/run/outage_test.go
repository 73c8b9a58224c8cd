package run_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/pgtest"
)

func TestProcessOutlivesItsBrokerAndItsDatabaseAndSaysSo(t *testing.T) {
	t.Parallel()
	kafka, err := embedded.Start(t.Context(), embedded.Options{})
	require.NoError(t, err)
	postgres := pgtest.Server(t)
	m := plain("tracker", piece{})
	m.Migrations, m.Topics = migrations(), []bus.Topic{{Name: "bullpen.tracker.item.v1"}}
	o := options(t, m)
	o.Brokers, o.DatabaseURL = kafka.Brokers(), config.Secret(postgres.DSN())
	p := start(t, o)

	require.NoError(t, kafka.Close())
	status, r := readiness(t, p)
	require.Equal(t, "/process=true /postgres=true /kafka=false", names(r))
	require.Equal(t, http.StatusOK, status, "without the broker events wait in Postgres")

	require.NoError(t, postgres.Stop(context.WithoutCancel(t.Context())))
	status, r = readiness(t, p)
	require.Equal(t, "/process=true /postgres=false /kafka=false", names(r))
	require.Equal(t, http.StatusServiceUnavailable, status)
	status, _ = get(t, p.URL()+"/healthz")
	require.Equal(t, http.StatusOK, status)
}

func TestProcessThatMayNotMigrateUsesWhatIsThere(t *testing.T) {
	t.Parallel()
	m := plain("tracker", piece{})
	m.Migrations = migrations()
	o := options(t, m)
	o.DatabaseURL = config.Secret(pgtest.DSN(t))
	first := start(t, o)
	again := options(t, m)
	again.DatabaseURL, again.Migrate = o.DatabaseURL, false
	second := start(t, again)
	for _, p := range []string{first.URL(), second.URL()} {
		status, _ := get(t, p+"/readyz")
		require.Equal(t, http.StatusOK, status)
	}
}
