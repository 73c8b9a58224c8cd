package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDaysAreCutAtTheCompanysMidnightAcrossDaylightSavingChanges(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ zone, day, from, to string }{
		{"Europe/Lisbon", "2026-03-01", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"},
		{"Europe/Lisbon", "2026-03-29", "2026-03-29T00:00:00Z", "2026-03-29T23:00:00Z"},
		{"Europe/Lisbon", "2026-10-25", "2026-10-24T23:00:00Z", "2026-10-26T00:00:00Z"},
		{"Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"}, // the clocks skip its midnight
		{"Asia/Kathmandu", "2026-01-01", "2025-12-31T18:15:00Z", "2026-01-01T18:15:00Z"},
		{"Pacific/Apia", "2011-12-30", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z"}, // a day that never was
	} {
		zone, err := time.LoadLocation(row.zone)
		require.NoError(t, err)
		from, err := bound("from", row.day, zone, 0)
		require.NoError(t, err)
		require.Equal(t, row.from, from.UTC().Format(time.RFC3339), "%s %s", row.zone, row.day)
		to, err := bound("to", row.day, zone, 1)
		require.NoError(t, err)
		require.Equal(t, row.to, to.UTC().Format(time.RFC3339), "%s %s", row.zone, row.day)
	}
	at, err := bound("to", "2026-03-01T15:00:00+02:00", time.UTC, 1)
	require.NoError(t, err)
	require.Equal(t, "2026-03-01T13:00:00Z", at.Format(time.RFC3339), "a time is itself")
	none, err := bound("to", "", time.UTC, 1)
	require.NoError(t, err)
	require.Nil(t, none)
}
