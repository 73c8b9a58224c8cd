// Package rank makes the keys of a manual order.
//
// A key is a fraction between nothing and everything, written in 62 digits and compared byte by byte. Between any two keys there is
// another one, so an item is put anywhere by writing one row, and nobody's place is a number that a neighbour's move changes.
//
// The idea to hold: a key never ends in the least digit. A fraction that did would equal a shorter one, and between the two nothing
// would fit.
package rank

import (
	"fmt"
	"strings"
)

const (
	// MaxLength is how long a key may grow before its neighbours are spread again.
	MaxLength = 64
	// MaxNeighbours is how many keys are spread in one go.
	MaxNeighbours = 256

	digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	base   = len(digits)
)

// Of is the key of a new item: its number decides, so that new items stand at the end of their project's order and two of them never
// look at the same row to find out where that is.
func Of(number int32) string { return fmt.Sprintf("m%08xV", number) }

// Between answers a key above one and below another. An empty low is the beginning of everything, an empty high the end. It panics
// when low does not come before high, which is the caller's mistake.
func Between(low, high string) string {
	if high != "" && low >= high {
		panic(fmt.Sprintf("rank: %q does not come before %q", low, high))
	}
	var key strings.Builder
	for {
		from, to := digit(low, 0), base
		if high != "" {
			to = digit(high, 0)
		}
		switch {
		case to-from > 1:
			key.WriteByte(digits[(from+to)/2])
			return key.String()
		case from == to: // still on the way that both go
			key.WriteByte(digits[from])
			low, high = tail(low), tail(high)
		case len(high) > 1: // what high begins with alone is below it, and above low
			key.WriteByte(high[0])
			return key.String()
		default: // nothing fits between the two digits: go above low, without a bound
			key.WriteByte(digits[from])
			low, high = tail(low), ""
		}
	}
}

// Spread answers n keys in rising order above one and below another, as far from each other as they can be.
func Spread(low, high string, n int) []string {
	keys := make([]string, n)
	spread(keys, low, high)
	return keys
}

func spread(keys []string, low, high string) {
	if len(keys) == 0 {
		return
	}
	middle := len(keys) / 2
	keys[middle] = Between(low, high)
	spread(keys[:middle], low, keys[middle])
	spread(keys[middle+1:], keys[middle], high)
}

// digit is the value at a place; beyond the end a fraction has the least one.
func digit(key string, at int) int {
	if at >= len(key) {
		return 0
	}
	return strings.IndexByte(digits, key[at])
}

func tail(key string) string {
	if key == "" {
		return ""
	}
	return key[1:]
}
