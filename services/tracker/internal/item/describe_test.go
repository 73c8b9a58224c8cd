package item_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

func TestASetIsCutAtAWholeMemberAndTheRestIsCounted(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a, b", item.Members([]string{"a", "b"}))
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.SliceOf(rapid.StringMatching("[a-z]{1,200}")).Draw(t, "members")
		told := item.Members(members)
		require.LessOrEqual(t, len(told), 600+len(", +000 more"))
		shown := strings.Split(told, ", ")
		if last := shown[len(shown)-1]; strings.HasPrefix(last, "+") {
			shown = shown[:len(shown)-1]
			require.Equal(t, fmt.Sprintf("+%d more", len(members)-len(shown)), last)
		}
		if told != "" {
			require.Equal(t, members[:len(shown)], shown)
		}
	})
}

func TestEveryFieldIsDescribedInItsStoredForm(t *testing.T) {
	t.Parallel()
	i := filed(t, human)
	due, err := item.ParseMoment("due", "2026-03-02")
	require.NoError(t, err)
	begin, err := item.ParseMoment("start", "2026-03-01T10:00:00+01:00")
	require.NoError(t, err)
	c, _, err := i.Apply(item.Update{
		Type: ptr("bug"), Due: &due, Start: &begin, EstimateMinutes: ptr(ptr(int32(90))), Points: ptr(ptr(2.5)), Labels: &[]string{"a", "b"},
		RoutingUnit: ptr("design"), Collaborators: &item.SetChange{Add: []string{"qa"}}, Body: ptr(strings.Repeat("x", 1000)), Title: ptr("New"),
		Fields: &item.Values{All: map[string]any{"f1": true}, Described: item.Field{To: "urgent=true"}},
	}, human, start)
	require.NoError(t, err)
	require.Equal(t, map[string]item.Field{
		"type": {From: "task", To: "bug"}, "due": {To: "2026-03-02"}, "due_all_day": {To: "true"}, "start": {To: "2026-03-01T09:00:00Z"},
		"estimate": {To: "90"}, "points": {To: "2.5"}, "tags": {To: "a, b"}, "routing_unit": {To: "design"}, "collaborators": {To: "qa"},
		"body": {From: "0 bytes", To: "1000 bytes"}, "title": {From: "Renew the certificate", To: "New"}, "fields": {To: "urgent=true"},
	}, c.Fields)
	require.Equal(t, c.Version, i.BodyVersion)
	require.Equal(t, "ines", i.BodyAuthor)
	var none *item.Moment
	c, _, err = i.Apply(item.Update{Due: &none, EstimateMinutes: ptr((*int32)(nil)), Labels: &[]string{}}, human, start)
	require.NoError(t, err)
	require.Equal(t, map[string]item.Field{"due": {From: "2026-03-02"}, "due_all_day": {From: "true"}, "estimate": {From: "90"}, "tags": {From: "a, b"}}, c.Fields)
	_, changed, err := i.Apply(item.Update{Points: ptr(ptr(2.5)), Labels: &[]string{}}, human, start)
	require.NoError(t, err)
	require.False(t, changed)
}
