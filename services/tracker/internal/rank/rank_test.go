package rank_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/services/tracker/internal/rank"
)

func TestNewItemsStandInTheOrderOfTheirNumbers(t *testing.T) {
	t.Parallel()
	for _, number := range []int32{1, 9, 15, 16, 255, 1_000_000, 1<<31 - 2} {
		require.Less(t, rank.Of(number), rank.Of(number+1))
	}
}

func TestBetweenTwoKeysThereIsAlwaysAnother(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		order := []string{rank.Of(1), rank.Of(2), rank.Of(16), rank.Of(17)}
		for range rapid.IntRange(1, 200).Draw(t, "insertions") {
			at := rapid.IntRange(0, len(order)).Draw(t, "at")
			low, high := "", ""
			if at > 0 {
				low = order[at-1]
			}
			if at < len(order) {
				high = order[at]
			}
			key := rank.Between(low, high)
			require.Greater(t, key, low)
			if high != "" {
				require.Less(t, key, high)
			}
			require.False(t, strings.HasSuffix(key, "0"), "%q ends in the least digit", key)
			order = slices.Insert(order, at, key)
		}
	})
}

func TestKeysGrowByADigitForEveryFiveInsertionsAtOnePlace(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"after the last", "before the first", "always between"} {
		low, high, insertions := rank.Of(7), rank.Of(8), 0
		for {
			key := rank.Between(low, high)
			if len(key) > rank.MaxLength {
				break
			}
			insertions++
			switch name {
			case "after the last":
				low = key
			case "before the first":
				high = key
			default:
				if insertions%2 == 0 {
					low = key
				} else {
					high = key
				}
			}
		}
		require.GreaterOrEqual(t, insertions, 250, name)
	}
}

func TestSpreadKeysRiseAndAreShort(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		low, high := "", ""
		if rapid.Bool().Draw(t, "low?") {
			low = rank.Of(rapid.Int32Range(1, 1000).Draw(t, "low"))
		}
		if rapid.Bool().Draw(t, "high?") {
			high = rank.Of(rapid.Int32Range(1001, 2000).Draw(t, "high"))
		}
		keys := rank.Spread(low, high, rapid.IntRange(0, rank.MaxNeighbours).Draw(t, "n"))
		for _, key := range keys {
			require.Greater(t, key, low)
			require.LessOrEqual(t, len(key), 14)
			low = key
		}
		if high != "" {
			require.Less(t, low, high)
		}
	})
}

func TestKeysOutOfOrderAreTheCallersMistake(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() { rank.Between("b", "a") })
	require.Panics(t, func() { rank.Between("a", "a") })
}
