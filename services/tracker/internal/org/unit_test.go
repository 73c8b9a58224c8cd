package org_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
)

func chart() *org.Org {
	return &org.Org{
		Units: []org.Unit{
			{ID: "company", Name: "Company", Lead: "ceo"},
			{ID: "engineering", Name: "Engineering", Parent: "company", Lead: "cto"},
			{ID: "platform-team", Name: "Platform Team", Parent: "engineering", Lead: "cto"},
			{ID: "lone", Name: "Engineering Friends"},
		},
		Projects: []org.Project{{Key: "PLAT", Name: "Platform", Unit: "platform-team"}},
	}
}

func TestAUnitIsNamedByIDOrNameInAnyCase(t *testing.T) {
	t.Parallel()
	for text, id := range map[string]string{
		"platform-team": "platform-team", "PLATFORM-TEAM": "platform-team", "platform team": "platform-team", " Platform Team ": "platform-team",
		"engineering": "engineering",
	} {
		u, ok := chart().Unit(text)
		require.True(t, ok, text)
		require.Equal(t, id, u.ID)
	}
	for _, text := range []string{"", "platform", "engineering,"} {
		_, ok := chart().Unit(text)
		require.False(t, ok, text)
	}
}

func TestAnUnknownUnitIsRefusedWithThoseThereAre(t *testing.T) {
	t.Parallel()
	f, ok := fault.As(chart().NoUnit("unit", "sales"))
	require.True(t, ok)
	require.Equal(t, fault.Invalid, f.Class)
	require.Equal(t, "unit", f.Field)
	require.Contains(t, f.Message, "company, engineering, platform-team, lone")
}

func TestTheLeadOfAUnitOrOfAnyUnitAboveItIsItsLead(t *testing.T) {
	t.Parallel()
	require.True(t, chart().Leads("cto", "platform-team"))
	require.True(t, chart().Leads("ceo", "platform-team"), "a lead further up")
	require.False(t, chart().Leads("cto", "company"), "not a unit above")
	require.False(t, chart().Leads("ceo", "lone"))
	require.False(t, chart().Leads("", "lone"), "nobody leads nothing")
	require.False(t, chart().Leads("cto", "gone"))
	require.Equal(t, "cto", chart().LeadOf("platform-team"))
	require.Empty(t, chart().LeadOf("gone"))
}

func TestACircleInTheChartEnds(t *testing.T) {
	t.Parallel()
	o := &org.Org{Units: []org.Unit{{ID: "a", Parent: "b", Lead: "x"}, {ID: "b", Parent: "a", Lead: "y"}}}
	require.False(t, o.Leads("z", "a"))
}

func TestAProjectIsNamedByItsKeyInAnyCase(t *testing.T) {
	t.Parallel()
	p, ok := chart().Project("plat")
	require.True(t, ok)
	require.Equal(t, "PLAT", p.Key)
	_, ok = chart().Project("NOPE")
	require.False(t, ok)
}
