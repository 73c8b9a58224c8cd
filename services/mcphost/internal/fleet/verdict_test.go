package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAProgramThatCannotStartIsTriedByOneForAll(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	v := newVerdicts(func() time.Time { return now })
	ada, bo := spec{transport: stdio, command: "gh", variables: map[string]string{"TOKEN": "a"}}, spec{transport: stdio, command: "gh", variables: map[string]string{"TOKEN": "b"}}
	require.Equal(t, ada.program(), bo.program(), "credentials make no other program")
	elsewhere := spec{transport: stdio, command: "gh", variables: map[string]string{"PATH": "/opt"}}
	require.NotEqual(t, ada.program(), elsewhere.program(), "a search path may")

	require.Empty(t, v.against(ada.program()))
	v.condemn(ada.program(), "it is not there")
	require.Equal(t, "it is not there", v.against(bo.program()))
	require.Empty(t, v.against(elsewhere.program()))
	now = now.Add(verdictLife)
	require.Empty(t, v.against(bo.program()), "one tries again")
	require.Equal(t, "it is not there", v.against(ada.program()), "and the others wait for it")
	v.acquit(bo.program())
	require.Empty(t, v.against(ada.program()))
}

func TestOneInstanceOfAProgramThatFailsGoesOnTryingForAll(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	v := newVerdicts(func() time.Time { return now })
	program := spec{command: "gh"}.program()
	ada, bo := &instance{}, &instance{}
	for range suspicion {
		require.False(t, v.holdsBack(program, ada))
		v.failed(program)
	}
	require.False(t, v.holdsBack(program, ada), "the first who comes back")
	require.True(t, v.holdsBack(program, bo))
	require.False(t, v.holdsBack(program, ada))
	require.Empty(t, v.against(program), "who never tried may")
	v.leave(program, ada)
	require.False(t, v.holdsBack(program, bo), "somebody else takes over")
	require.True(t, v.holdsBack(program, ada))
	now = now.Add(scoutLife)
	require.False(t, v.holdsBack(program, ada), "also from one that stays away")
	v.acquit(program)
	require.False(t, v.holdsBack(program, bo))
}
