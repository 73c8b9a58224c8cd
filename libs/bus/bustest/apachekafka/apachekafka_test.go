package apachekafka_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/bus/bustest"
	"github.com/bullpenhq/bullpen/libs/bus/bustest/apachekafka"
)

func TestMain(m *testing.M) { bustest.Main(m) }

func TestApacheKafka(t *testing.T) {
	s := apachekafka.Start(t)
	bustest.Suite(t, bustest.Broker{
		Addrs: s.Brokers(),
		Restart: func(t testing.TB) {
			t.Helper()
			require.NoError(t, s.Restart(t.Context()))
		},
	})
}
