package apachekafka_test

import (
	"testing"

	"github.com/bullpenhq/bullpen/libs/bus/bustest"
	"github.com/bullpenhq/bullpen/libs/bus/bustest/apachekafka"
)

func BenchmarkApacheKafka(b *testing.B) {
	bustest.Bench(b, bustest.Broker{Addrs: apachekafka.Start(b).Brokers()})
}
