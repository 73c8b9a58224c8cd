package embedded_test

import (
	"testing"

	"github.com/bullpenhq/bullpen/libs/bus/bustest"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
)

func BenchmarkEmbedded(b *testing.B) {
	broker := start(b, embedded.Options{DataDir: b.TempDir()})
	bustest.Bench(b, bustest.Broker{Addrs: broker.Brokers()})
}
