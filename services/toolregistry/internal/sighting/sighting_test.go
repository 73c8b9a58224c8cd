package sighting_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/sighting"
)

func list(server, seat string, tools ...string) sighting.Listing {
	l := sighting.Listing{Server: server, Seat: seat}
	for i := 0; i < len(tools); i += 2 {
		l.Tools = append(l.Tools, sighting.Tool{Name: tools[i], Digest: tools[i+1]})
	}
	return l
}

func entries(sights []sighting.Sight) []sighting.Entry {
	var all []sighting.Entry
	for _, s := range sights {
		all = append(all, s.Entry)
	}
	return all
}

type entry = sighting.Entry

func TestTheFirstSightIsKnown(t *testing.T) {
	t.Parallel()
	v := sighting.Judge([]sighting.Listing{list("gh", "ada", "get", "d1", "put", "d2", "get", "d3")}, nil, nil)
	require.Equal(t, []entry{{"gh", "ada", "get", "d1"}, {"gh", "ada", "put", "d2"}}, entries(v.Learn))
	require.Empty(t, v.Changed)
}

func TestAnotherDefinitionIsChangedUntilItReturns(t *testing.T) {
	t.Parallel()
	known := []entry{{"gh", "ada", "get", "d1"}}
	now := []sighting.Listing{list("gh", "ada", "get", "d2")}
	v := sighting.Judge(now, known, nil)
	require.Equal(t, map[entry]bool{{"gh", "ada", "get", "d2"}: true}, v.Changed)
	require.Equal(t, []entry{{"gh", "ada", "get", "d2"}}, entries(v.Note))

	noted := []entry{{"gh", "ada", "get", "d2"}}
	require.True(t, sighting.Judge(now, known, noted).Settled(), "nothing is written twice")
	v = sighting.Judge([]sighting.Listing{list("gh", "ada", "get", "d3")}, known, noted)
	require.Equal(t, []entry{{"gh", "ada", "get", "d3"}}, entries(v.Note))
	v = sighting.Judge([]sighting.Listing{list("gh", "ada", "get", "d1")}, known, noted)
	require.Empty(t, v.Changed)
	require.Equal(t, noted, v.Forget)
	v = sighting.Judge([]sighting.Listing{list("gh", "ada")}, known, noted)
	require.Equal(t, noted, v.Forget, "a tool that is gone is not changed")
	require.True(t, sighting.Judge([]sighting.Listing{list("wiki", "")}, known, noted).Settled(), "who is not heard of stays as it was")
}

func TestSeatsMayBeShownDifferentThings(t *testing.T) {
	t.Parallel()
	known := []entry{{"gh", "ada", "get", "d1"}}
	v := sighting.Judge([]sighting.Listing{list("gh", "bo", "get", "d2")}, known, nil)
	require.Equal(t, []entry{{"gh", "bo", "get", "d2"}}, entries(v.Learn))
	known = append(known, entry{"gh", "bo", "get", "d2"})
	v = sighting.Judge([]sighting.Listing{list("gh", "ada", "get", "d2")}, known, nil)
	require.NotEmpty(t, v.Changed, "what bo is shown first is not known for ada")
	known = append(known, entry{"gh", "", "get", "d2"})
	require.Empty(t, sighting.Judge([]sighting.Listing{list("gh", "ada", "get", "d2")}, known, nil).Changed, "what an operator accepts is")
}
