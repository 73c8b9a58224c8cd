package mcp

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsFollowedIsKeptOnceAndNotByWhoHasGone(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	f := newFollower("operator:a")
	for i := range maxWatched {
		kept, failed := f.keep(watched{"wiki", fmt.Sprintf("wiki:%d", i)})
		require.Nil(t, failed)
		require.True(t, kept)
	}
	kept, failed := f.keep(watched{"wiki", "wiki:0"})
	require.Nil(t, failed, "the request beside this one has it already")
	require.False(t, kept, "so that what is counted upstream for this one is let go")
	kept, failed = f.keep(watched{"wiki", "wiki:more"})
	require.ErrorContains(t, failed, "At most 256")
	require.False(t, kept)

	clear(f.resources)
	s.unfollow(t.Context(), f)
	kept, failed = f.keep(watched{"wiki", "wiki:0"})
	require.ErrorContains(t, failed, "has ended")
	require.False(t, kept)
}

func TestAServerThatIsSlowToBeFollowedKeepsNobodyFromAnother(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	over, ok := s.turn(t.Context(), "slow")
	require.True(t, ok)
	_, ok = s.turn(t.Context(), "quick")
	require.True(t, ok)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, ok = s.turn(gone, "slow")
	require.False(t, ok, "one asks at a time, and nobody waits for longer than they have")
	over()
	_, ok = s.turn(t.Context(), "slow")
	require.True(t, ok)
}
