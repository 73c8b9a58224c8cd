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
