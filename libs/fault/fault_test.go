package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
)

func TestFault(t *testing.T) {
	t.Parallel()

	t.Run("an unclaimed error is the service's own failure", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, fault.Unavailable, fault.ClassOf(io.ErrUnexpectedEOF))
		require.Equal(t, fault.Class(""), fault.ClassOf(nil))
	})

	t.Run("a wrapped fault keeps its class", func(t *testing.T) {
		t.Parallel()
		err := fmt.Errorf("load the item: %w", fault.New(fault.NotFound, "no item %q", "OPS-1"))
		require.Equal(t, fault.NotFound, fault.ClassOf(err))
		f, ok := fault.As(err)
		require.True(t, ok)
		require.Equal(t, `no item "OPS-1"`, f.Message)
	})

	t.Run("the outermost fault wins", func(t *testing.T) {
		t.Parallel()
		inner := fault.New(fault.NotFound, "no such project")
		outer := fault.New(fault.Invalid, "the item names a project that does not exist").WithCause(inner)
		require.Equal(t, fault.Invalid, fault.ClassOf(outer))
	})

	t.Run("the with methods answer copies", func(t *testing.T) {
		t.Parallel()
		base := fault.New(fault.StaleVersion, "the item has changed").WithFact("current_version", "3")
		other := base.WithFact("changed_by", "ada").WithField("if_match").WithReason("VERSION_MISMATCH").
			WithOutcome(fault.OutcomeUnknown).WithOperation("op-1").WithCause(io.EOF)

		require.Equal(t, map[string]string{"current_version": "3"}, base.Facts)
		require.Empty(t, base.Field)
		require.Empty(t, base.Reason)
		require.Empty(t, base.Outcome)
		require.Empty(t, base.Operation)
		require.NoError(t, errors.Unwrap(base))

		require.Equal(t, map[string]string{"current_version": "3", "changed_by": "ada"}, other.Facts)
		require.Equal(t, "if_match", other.Field)
		require.Equal(t, "VERSION_MISMATCH", other.Reason)
		require.Equal(t, fault.OutcomeUnknown, other.Outcome)
		require.Equal(t, "op-1", other.Operation)
		require.ErrorIs(t, other, io.EOF)
	})

	t.Run("the cause is for the log and never part of the message", func(t *testing.T) {
		t.Parallel()
		err := fault.New(fault.Unavailable, "the database is away").WithCause(errors.New("password=hunter2"))
		require.NotContains(t, err.Message, "hunter2")
		require.Contains(t, err.Error(), "hunter2")
	})
}

func TestClasses(t *testing.T) {
	t.Parallel()
	seen := map[fault.Class]bool{}
	for _, c := range fault.Classes() {
		require.True(t, c.Valid(), c)
		require.False(t, seen[c], "%s is listed twice", c)
		seen[c] = true
	}
	require.Len(t, seen, 14)
	require.False(t, fault.Class("internal").Valid())
}
