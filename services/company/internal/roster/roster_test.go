package roster_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/company/internal/document"
	"github.com/bullpenhq/bullpen/services/company/internal/roster"
)

func lantern(t *testing.T) *roster.Roster {
	t.Helper()
	company, problems := document.Parse(`
name: Lantern
roles:
  - {name: Ines Rocha, kind: human, email: ines@lantern.example, contact: {slack_user_id: U01INES, operator_id: ines}}
  - {name: Rui Rocha, handle: rui, kind: human, contact: {slack_user_id: U02RUI}}
units:
  - name: Operations
    roles:
      - {name: Ops Lead, integrations: {github: {login: lantern-ops}}}
      - {name: Ops Engineer}
      - {name: rui, handle: deputy}
`)
	require.Empty(t, problems)
	return roster.New(company)
}

func TestLookup(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][]string{
		// Whole.
		"ops-lead":                    {"ops-lead handle"},
		"OPS-LEAD":                    {"ops-lead handle"},
		"@ops-lead":                   {"ops-lead handle"},
		"Ops Lead":                    {"ops-lead name"},
		"  ines rocha ":               {"ines-rocha name"},
		"u01ines":                     {"ines-rocha contact"},
		"<@U01INES>":                  {"ines-rocha contact"},
		"<@U02RUI|rui>":               {"rui contact"},
		"INES@lantern.example":        {"ines-rocha contact"},
		"mailto:ines@lantern.example": {"ines-rocha contact"},
		"lantern-ops":                 {"ops-lead contact"},
		// A handle given whole is one seat, although another seat has it for a name.
		"rui": {"rui handle"},
		// A part.
		"engineer": {"ops-engineer handle"},
		"rocha":    {"ines-rocha handle", "rui name"},
		"ops":      {"ops-lead handle", "ops-engineer handle"},
		"u01":      {"ines-rocha contact"},
		// Close.
		"ops-laed": {"ops-lead similar"},
		"enginere": {"ops-engineer similar"},
		"pardo":    nil,
		"rochao":   {"ines-rocha similar", "rui similar"},
		// Nobody.
		"zzz": nil, "": nil, "@": nil, "x": nil,
	} {
		t.Run("finds "+query, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, m := range lantern(t).Lookup(query) {
				got = append(got, m.Seat.Handle+" "+m.By)
			}
			require.Equal(t, want, got)
		})
	}
}

func TestRoster(t *testing.T) {
	t.Parallel()
	r := lantern(t)
	require.Equal(t, []string{"ines-rocha", "rui", "ops-lead", "ops-engineer", "deputy"}, r.Handles())
	seat, ok := r.Seat("ops-lead")
	require.True(t, ok)
	require.Equal(t, "Operations", r.UnitName(seat))
	_, ok = r.Seat("Ops Lead")
	require.False(t, ok)
}
