package mcp

import (
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
