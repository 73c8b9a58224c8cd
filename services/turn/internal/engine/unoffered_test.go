package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

func TestTheRegistrySaysWhyATurnWasNotGivenATool(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refusal     error
		class, says string
	}{
		"denied":       {fault.New(fault.Forbidden, "The company's policy does not let you make this call. Ask ines."), "forbidden", "Ask ines."},
		"unknown":      {fault.New(fault.NotFound, "There is no tool `merge`. Did you mean `reply`?"), "not_found", "Did you mean `reply`?"},
		"out of reach": {fault.New(fault.Unavailable, "later"), "not_found", "There is no tool `merge`."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := skilled(t, tools(), nil, calls("merge", `{"id":1}`), giveUp)
			asked := make(chan *toolregistryv1.CallToolRequest, 1)
			b.registry.before = func(_ context.Context, r *toolregistryv1.CallToolRequest) error {
				asked <- r
				return c.refusal
			}
			b.post(t, letter("ada", "slack:1", "hello"))
			b.start(t, "n1", nil)
			turn := b.ended(t, 1)[0]
			require.Equal(t, []string{"merge failed " + c.class, "submit_work done"}, states(b.journal(t, turn.ID)))
			require.Contains(t, b.journal(t, turn.ID).Calls()[0].Result.Text, c.says)
			request := <-asked
			require.True(t, request.GetNotOffered(), "nothing may be run")
			require.Equal(t, `{"id":1}`, request.GetArgumentsJson())
			require.Empty(t, b.registry.did())
		})
	}
}
