package revision_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/company/internal/revision"
)

func TestPut(t *testing.T) {
	t.Parallel()
	first := revision.Put{Document: "name: A", By: "operator:1", At: time.Unix(1, 0)}.Next(revision.Revision{})
	other := uuid.Must(uuid.NewV7())

	for name, c := range map[string]struct {
		put       revision.Put
		active    revision.Revision
		unchanged bool
		refused   bool
	}{
		"the first needs no parent":                       {put: revision.Put{Document: "b"}},
		"the first may demand that none is active":        {put: revision.Put{Document: "b", IfMatch: true}},
		"the first has no parent to name":                 {put: revision.Put{Document: "b", Parent: other}, refused: true},
		"the active one may be replaced by name":          {put: revision.Put{Document: "b", Parent: first.ID, IfMatch: true}, active: first},
		"whatever is active may be replaced":              {put: revision.Put{Document: "b"}, active: first},
		"another parent is stale":                         {put: revision.Put{Document: "b", Parent: other, IfMatch: true}, active: first, refused: true},
		"another parent is stale although nobody matches": {put: revision.Put{Document: "b", Parent: other}, active: first, refused: true},
		"none may be active and one is":                   {put: revision.Put{Document: "b", IfMatch: true}, active: first, refused: true},
		"the same document is unchanged":                  {put: revision.Put{Document: "name: A", Parent: other, IfMatch: true}, active: first, unchanged: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unchanged, err := c.put.Against(c.active)
			require.Equal(t, c.unchanged, unchanged)
			if !c.refused {
				require.NoError(t, err)
				return
			}
			f, ok := fault.As(err)
			require.True(t, ok)
			require.Equal(t, fault.StaleVersion, f.Class)
			require.Equal(t, revision.ReasonAdvanced, f.Reason)
			if c.active.Active {
				require.Equal(t, first.ID.String(), f.Facts[revision.FactCurrent])
				require.Equal(t, "1", f.Facts["current_epoch"])
			}
		})
	}

	t.Run("each activation is one epoch further and names its parent", func(t *testing.T) {
		t.Parallel()
		second := revision.Put{Document: "name: B"}.Next(first)
		require.Equal(t, int32(2), second.Epoch)
		require.Equal(t, first.ID, second.ParentID)
		require.True(t, second.Active)
	})

	t.Run("an inert revision was never active", func(t *testing.T) {
		t.Parallel()
		inert := revision.Put{Document: "name: B", Parent: first.ID}.Inert()
		require.Zero(t, inert.Epoch)
		require.False(t, inert.Active)
		require.True(t, inert.ActivatedAt.IsZero())
	})
}
