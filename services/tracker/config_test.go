package tracker_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/tracker"
)

func TestNoticesAreKeptFor30To3650DaysAndFor365WhenNobodySaysSo(t *testing.T) {
	t.Parallel()
	for days, fits := range map[string]bool{"": true, "30": true, "3650": true, "29": false, "3651": false, "0": false, "-1": false} {
		c := &tracker.Config{}
		fs := flag.NewFlagSet("test", flag.ContinueOnError)
		c.RegisterFlags("tracker.", fs)
		var args []string
		if days != "" {
			args = []string{"-tracker.notice-days", days}
		}
		require.NoError(t, fs.Parse(args))
		if err := c.Validate(); fits {
			require.NoError(t, err, days)
		} else {
			require.ErrorContains(t, err, "-tracker.notice-days (BULLPEN_TRACKER_NOTICE_DAYS) must be 30 to 3650", days)
		}
		if days == "" {
			require.Equal(t, 365, c.NoticeDays)
		}
	}
}
