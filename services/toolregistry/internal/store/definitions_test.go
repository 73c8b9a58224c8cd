package store_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/sighting"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/store"
)

func shows(seat, digest string) []sighting.Listing {
	return []sighting.Listing{{Server: "gh", Seat: seat, Tools: []sighting.Tool{
		{Name: "get", Digest: digest, Definition: func() string { return `{"name":"get","of":"` + digest + `"}` }},
	}}}
}

func judged(t *testing.T, s *store.Store, seat, digest string) (changed bool) {
	t.Helper()
	all, err := s.JudgeTools(t.Context(), shows(seat, digest))
	require.NoError(t, err)
	return all[sighting.Entry{Server: "gh", Seat: seat, Tool: "get", Digest: digest}]
}

func TestAChangedDefinitionIsShownUntilItIsAccepted(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	require.False(t, judged(t, s, "ada", "d1"), "the first sight is accepted")
	require.True(t, judged(t, s, "ada", "d2"))
	require.True(t, judged(t, s, "ada", "d2"))
	all, err := s.ListChangedTools(t.Context(), "gh")
	require.NoError(t, err)
	require.Equal(t, []store.ChangedTool{{
		Entry: sighting.Entry{Server: "gh", Seat: "ada", Tool: "get", Digest: "d2"},
		Known: `{"name":"get","of":"d1"}`, Current: `{"name":"get","of":"d2"}`,
	}}, all)

	require.True(t, judged(t, s, "ada", "d3"), "and changed again")
	before, err := s.Acceptances(t.Context())
	require.NoError(t, err)
	require.Equal(t, fault.StaleVersion, fault.ClassOf(s.AcceptTool(t.Context(), "gh", "get", "d2", "operator:o")))
	require.NoError(t, s.AcceptTool(t.Context(), "gh", "get", "d3", "operator:o"))
	require.NoError(t, s.AcceptTool(t.Context(), "gh", "get", "d3", "operator:o"), "again changes nothing")
	require.Equal(t, fault.NotFound, fault.ClassOf(s.AcceptTool(t.Context(), "gh", "get", "d9", "operator:o")))
	after, err := s.Acceptances(t.Context())
	require.NoError(t, err)
	require.Equal(t, before+1, after)
	require.False(t, judged(t, s, "ada", "d3"))
	require.False(t, judged(t, s, "ada", "d1"), "what was known stays known")
	require.False(t, judged(t, s, "bo", "d3"))
	all, err = s.ListChangedTools(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, all)

	require.NoError(t, s.SweepDefinitions(t.Context()))
	require.Equal(t, 2, count(t, pool, `select count(*) from definitions`), "the one that came and went is forgotten")
}

func TestOfTwoProcessesThatSeeAToolFirstOneIsRight(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	var seen sync.WaitGroup
	changed := make([]bool, 8)
	for i := range changed {
		seen.Go(func() { changed[i] = judged(t, s, "", string(rune('a'+i))) })
	}
	seen.Wait()
	known := 0
	for _, c := range changed {
		if !c {
			known++
		}
	}
	require.Equal(t, 1, known)
}

func TestWhatIsAsItWasWritesNothing(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	judged(t, s, "ada", "d1")
	judged(t, s, "ada", "d2")
	written := func() (transaction string) {
		require.NoError(t, pool.QueryRow(t.Context(), `select xmin::text from changed_definitions`).Scan(&transaction))
		return transaction
	}
	before := written()
	require.True(t, judged(t, s, "ada", "d2"))
	require.Equal(t, before, written())
}
