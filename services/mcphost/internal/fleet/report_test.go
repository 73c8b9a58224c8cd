package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/server"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

func TestFactsThatWaitTogetherBecomeOneThatLosesNothing(t *testing.T) {
	t.Parallel()
	joined := store.Fact{}
	for _, f := range []store.Fact{
		{StateChanged: true},
		{Digest: "d"},
		{PromptsChanged: true},
		{Resources: []string{"a"}},
		{ResourcesChanged: true},
		{Resources: []string{"b", "a"}},
		{PromptsChanged: true, Report: store.Report{State: server.Ready}},
	} {
		joined = join(joined, f)
	}
	require.Equal(t, store.Fact{
		Report: store.Report{State: server.Ready}, StateChanged: true, Digest: "d", Resources: []string{"a", "b"}, PromptsChanged: true, ResourcesChanged: true,
	}, joined)
}
