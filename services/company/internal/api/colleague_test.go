package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

func TestLookupColleague(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	b.put(lantern, "")
	ask := func(t *testing.T, query string) (*companyv1.LookupColleagueResponse, error) {
		t.Helper()
		return b.company.LookupColleague(operator(t), &companyv1.LookupColleagueRequest{Query: query})
	}

	t.Run("answers the one who fits, with how to reach them", func(t *testing.T) {
		t.Parallel()
		out, err := ask(t, "u01")
		require.NoError(t, err)
		c := out.GetColleague()
		require.Equal(t, []string{"ines-rocha", "Ines Rocha", "human", "", "contact"},
			[]string{c.GetHandle(), c.GetName(), c.GetKind(), c.GetUnit(), c.GetMatched()})
		require.Equal(t, map[string]string{"slack_user_id": "U01", "email": "ines@lantern.example"}, c.GetContacts())
		require.Contains(t, c.GetHow(), "mention them")
		require.Contains(t, c.GetHow(), "Weekdays until five")

		out, err = ask(t, "lantern-ops")
		require.NoError(t, err)
		require.Equal(t, "Operations", out.GetColleague().GetUnit())
		require.Contains(t, out.GetColleague().GetHow(), "@ops-lead")
	})

	t.Run("answers all candidates and guesses nobody", func(t *testing.T) {
		t.Parallel()
		out, err := ask(t, "ops")
		require.NoError(t, err)
		require.Nil(t, out.GetColleague())
		require.Len(t, out.GetCandidates(), 2)
	})

	t.Run("lists every handle when nobody fits", func(t *testing.T) {
		t.Parallel()
		_, err := ask(t, "zzzzzz")
		f := refused(t, err, fault.NotFound)
		require.Contains(t, f.Message, "ines-rocha, ops-lead, ops-engineer")
		require.Equal(t, "query", f.Field)
	})
}
