package follow_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/follow"
)

func TestThereIsNoValueBeforeTheFirstLoad(t *testing.T) {
	t.Parallel()
	f := follow.New(follow.Options[int]{Load: func(context.Context) (int, error) { return 1, nil }})
	_, ok := f.Current()
	require.False(t, ok)
	require.NoError(t, f.Refresh(t.Context()))
	value, ok := f.Current()
	require.True(t, ok)
	require.Equal(t, 1, value)
}

func TestAFailedLoadKeepsTheLastGoodValue(t *testing.T) {
	t.Parallel()
	broken := errors.New("owner is down")
	var fail atomic.Bool
	f := follow.New(follow.Options[string]{Load: func(context.Context) (string, error) {
		if fail.Load() {
			return "", broken
		}
		return "good", nil
	}})
	require.NoError(t, f.Refresh(t.Context()))
	fail.Store(true)
	require.ErrorIs(t, f.Refresh(t.Context()), broken)
	value, ok := f.Current()
	require.True(t, ok)
	require.Equal(t, "good", value)
}

func TestThePollNoticesAChangeThatNobodyAnnounced(t *testing.T) {
	t.Parallel()
	var owner atomic.Int64
	f := follow.New(follow.Options[int64]{
		Load: func(context.Context) (int64, error) { return owner.Load(), nil },
		Poll: time.Millisecond,
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	owner.Store(7)
	for {
		changed := f.Changed()
		if value, ok := f.Current(); ok && value == 7 {
			break
		}
		<-changed
	}
	cancel()
	require.NoError(t, <-ended)
}
