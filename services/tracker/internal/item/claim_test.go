package item_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

var other = item.Actor{Name: "dev", Kind: "agent", Seat: "dev"}

func claim(i *item.Item, by item.Actor, at time.Time) error {
	_, _, err := i.Claimed(by, at.Add(time.Hour), at)
	return err
}

func conflict(t *testing.T, err error, reason string) fault.Error {
	t.Helper()
	f, ok := fault.As(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, fault.Conflict, f.Class)
	require.Equal(t, reason, f.Reason)
	return *f
}

func TestAClaimKeepsOthersOutUntilItLapses(t *testing.T) {
	t.Parallel()
	i := filed(t, human)
	version := i.Version
	require.NoError(t, claim(i, agent, start))
	f := conflict(t, claim(i, other, start.Add(59*time.Minute)), item.ReasonClaimed)
	require.Equal(t, "ops", f.Facts["holder"])
	require.Equal(t, "2026-03-01T10:00:00Z", f.Facts["until"])
	require.Contains(t, f.Message, "2026-03-01T10:00:00Z")
	require.NoError(t, claim(i, other, start.Add(time.Hour)))
	require.Equal(t, "dev", i.Claim.Holder)
	require.Equal(t, version, i.Version)
	require.Empty(t, i.Assignee)
}

func TestATokenThatIsCalledLikeASeatHoldsNothingOfTheSeats(t *testing.T) {
	t.Parallel()
	i := filed(t, human)
	require.NoError(t, claim(i, agent, start))
	conflict(t, claim(i, item.Actor{Name: "ops", Kind: "operator"}, start), item.ReasonClaimed)
}

func TestAClaimIsRenewedByClaimingAgainAndByEveryWriteOfItsHolder(t *testing.T) {
	t.Parallel()
	i := filed(t, human)
	require.NoError(t, claim(i, agent, start))
	require.NoError(t, claim(i, agent, start.Add(30*time.Minute)))
	require.Equal(t, start.Add(90*time.Minute), i.Claim.Until)
	_, changed, err := i.Claimed(agent, start.Add(90*time.Minute), start.Add(30*time.Minute))
	require.NoError(t, err)
	require.False(t, changed)
	_, _, err = i.Apply(item.Update{Title: ptr("x")}, other, start.Add(80*time.Minute))
	require.NoError(t, err)
	require.Equal(t, start.Add(90*time.Minute), i.Claim.Until, "another's write renews nothing")
	_, _, err = i.Apply(item.Update{Title: ptr("y")}, agent, start.Add(80*time.Minute))
	require.NoError(t, err)
	require.Equal(t, start.Add(80*time.Minute+item.Renewal), i.Claim.Until)
	i.Remark(agent, start.Add(100*time.Minute))
	require.Equal(t, start.Add(100*time.Minute+item.Renewal), i.Claim.Until)
	lapsed := i.Claim.Until
	i.Remark(agent, lapsed)
	require.Equal(t, lapsed, i.Claim.Until, "what has lapsed is not renewed by a write")
}

func TestWhatIsFinishedOrSomebodyElsesIsNotClaimed(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"done", "cancelled", "closed"} {
		i := filed(t, human)
		require.NoError(t, claim(i, agent, start))
		_, _, err := i.Apply(item.Update{Status: &status}, agent, start)
		require.NoError(t, err)
		require.Nil(t, i.Claim, "finishing gives the claim back")
		conflict(t, claim(i, agent, start), item.ReasonFinished)
	}
	i := filed(t, human)
	i.Assignee = "dev"
	f := conflict(t, claim(i, agent, start), item.ReasonAssigned)
	require.Equal(t, "dev", f.Facts["assignee"])
	require.NoError(t, claim(i, other, start))
}

func TestAClaimIsGivenBackByItsHolderOrAPerson(t *testing.T) {
	t.Parallel()
	i := filed(t, human)
	_, changed, err := i.Released(agent, start)
	require.NoError(t, err)
	require.False(t, changed)
	for _, by := range []item.Actor{agent, human} {
		require.NoError(t, claim(i, agent, start))
		_, _, err = i.Released(other, start)
		conflict(t, err, item.ReasonClaimed)
		c, changed, err := i.Released(by, start)
		require.NoError(t, err)
		require.True(t, changed)
		require.Equal(t, "released", c.Kind)
		require.Equal(t, i.Version, c.Version)
		require.Nil(t, i.Claim)
	}
}
