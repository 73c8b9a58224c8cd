package apachekafka_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/bustest/apachekafka"
)

// TestApacheKafkaRestarts tells how long starts take, for those who wait.
func TestApacheKafkaRestarts(t *testing.T) {
	began := time.Now()
	s := apachekafka.Start(t)
	t.Logf("formatted and started in %s", time.Since(began).Round(time.Millisecond))
	c, err := bus.Open(bus.Config{Brokers: s.Brokers()})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.EnsureTopics(t.Context(), bus.Topic{Name: "t"}))
	publish := func() {
		for c.Publish(t.Context(), bus.Message{Topic: "t", Key: "k", Value: []byte("v")}) != nil {
			require.NoError(t, t.Context().Err())
		}
	}
	publish()

	for _, way := range []struct {
		name string
		end  func() error
	}{{"stopped", s.Stop}, {"killed", s.Kill}} {
		began = time.Now()
		require.NoError(t, way.end())
		ended := time.Now()
		require.NoError(t, s.Start(t.Context()))
		ready := time.Now()
		publish()
		t.Logf("%s in %s, started again in %s, published after %s more", way.name,
			ended.Sub(began).Round(time.Millisecond), ready.Sub(ended).Round(time.Millisecond), time.Since(ready).Round(time.Millisecond))
	}
	all, err := c.ReadAll(t.Context(), "t")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), 3)
}
