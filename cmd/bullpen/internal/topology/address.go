package topology

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are taken from below those that systems give to outgoing connections: while a service is down, none of these may get
// its port.
const (
	lowestPort  = 15_000
	highestPort = 30_000
)

// FreeAddresses answers n free addresses on loopback that no outgoing connection takes. It holds all of them before it lets go of any, so that they differ.
func FreeAddresses(n int) ([]string, error) {
	var addresses []string
	for range 100 * n {
		address := fmt.Sprintf("127.0.0.1:%d", lowestPort+rand.IntN(highestPort-lowestPort))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		defer listener.Close()
		if addresses = append(addresses, address); len(addresses) == n {
			return addresses, nil
		}
	}
	return nil, errors.New("there are not enough free ports")
}
