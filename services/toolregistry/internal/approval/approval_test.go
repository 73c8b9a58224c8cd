package approval_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/approval"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func question() *approval.Approval {
	return &approval.Approval{
		ID: uuid.MustParse("01939000-0000-7000-8000-000000000001"), State: approval.Waiting, Asker: approval.Asker{Seat: "ada", TurnID: "t1"},
		Tool: "create_order", CallID: "c1", OperationID: "op", Reason: "Orders need a person.", CreatedAt: noon, ExpiresAt: noon.Add(time.Hour),
	}
}

func TestOneAnswerCounts(t *testing.T) {
	t.Parallel()
	answers := map[string]func(*approval.Approval) error{
		"approve": func(a *approval.Approval) error {
			return a.Approve("operator:b", "", "n1", "id", noon.Add(2*time.Minute))
		},
		"deny":   func(a *approval.Approval) error { return a.Deny("operator:b", "", noon.Add(2*time.Minute)) },
		"cancel": func(a *approval.Approval) error { return a.Cancel("operator:b", noon.Add(2*time.Minute)) },
	}
	for first, answer := range map[string]struct {
		by    func(*approval.Approval) error
		class fault.Class
	}{
		"approved": {func(a *approval.Approval) error {
			return a.Approve("operator:a", "fine", "n1", "id", noon.Add(time.Minute))
		}, fault.AlreadyAnswered},
		"denied":    {func(a *approval.Approval) error { return a.Deny("operator:a", "no", noon.Add(time.Minute)) }, fault.AlreadyAnswered},
		"cancelled": {func(a *approval.Approval) error { return a.Cancel("operator:a", noon.Add(time.Minute)) }, fault.Conflict},
		"expired":   {func(a *approval.Approval) error { return a.Expire(noon.Add(time.Hour)) }, fault.Conflict},
	} {
		for second, late := range answers {
			a := question()
			require.NoError(t, answer.by(a))
			before := *a
			err := late(a)
			require.Equal(t, answer.class, fault.ClassOf(err), "%s, then %s", first, second)
			require.Equal(t, before, *a, "a refused answer changes nothing")
			if answer.class == fault.AlreadyAnswered {
				require.ErrorContains(t, err, first+" already, by operator:a at 2026-11-30T12:01:00Z")
			}
		}
	}
}

func TestALapsedQuestionTakesNoAnswer(t *testing.T) {
	t.Parallel()
	a := question()
	require.Error(t, a.Expire(noon.Add(time.Hour-1)))
	require.Equal(t, fault.Conflict, fault.ClassOf(a.Approve("operator:a", "", "n1", "id", noon.Add(time.Hour))))
	require.NoError(t, a.Expire(noon.Add(time.Hour)))
	require.True(t, a.Over())
}

func TestOnlyWhoHoldsARunSettlesIt(t *testing.T) {
	t.Parallel()
	a := question()
	require.NoError(t, a.Approve("operator:a", "", "n1/x", "audit", noon))
	require.False(t, a.Over(), "an approved call is not over before it was made")
	require.Error(t, a.Take("n2/y", noon.Add(approval.RunLease-1)))
	require.NoError(t, a.Renew("n1/x", noon.Add(time.Second)))
	require.Error(t, a.Take("n2/y", noon.Add(approval.RunLease)), "a runner that speaks keeps its run")
	require.NoError(t, a.Take("n2/y", noon.Add(time.Second+approval.RunLease)))
	require.Error(t, a.Renew("n1/x", noon.Add(time.Minute)))
	require.Error(t, a.Settle("n1/x", approval.Call{Status: approval.OK}))
	require.Error(t, a.Settle("n2/y", approval.Call{Status: approval.Running}))
	require.NoError(t, a.Settle("n2/y", approval.Call{Status: approval.OK, Result: "made"}))
	require.Equal(t, approval.Call{Status: approval.OK, Result: "made", AuditID: "audit"}, a.Call)
	require.True(t, a.Over())
}

func TestTheSameCallHasTheSameKey(t *testing.T) {
	t.Parallel()
	a, b := question(), question()
	b.CallID = "c2"
	require.Equal(t, a.AskKey(), b.AskKey(), "an operation is one, whoever repeats it")
	a.OperationID, b.OperationID = "", ""
	require.NotEqual(t, a.AskKey(), b.AskKey())
}

func TestTheSeatIsToldWhatBecameOfItsCall(t *testing.T) {
	t.Parallel()
	a := question()
	require.Equal(t, "This call of `create_order` was not made: it waits for a person, as approval 01939000-0000-7000-8000-000000000001, until "+
		"2026-11-30T13:00:00Z. Why it needs one: Orders need a person. You will get the decision, and the result if it is made, as mail in "+
		"this conversation. Do not make the call again and do not wait for it: go on with what does not depend on it, then submit.", a.Parked())
	require.NoError(t, a.Approve("operator:a", "fine", "n1", "id", noon))
	require.Equal(t, "The call of `create_order` was approved by operator:a and is being made. They say: fine", a.Decision())
	for status, want := range map[string]string{
		approval.OK:      "The call of `create_order` was approved by operator:a and made. They say: fine",
		approval.Refused: "The call of `create_order` was approved by operator:a, but it was refused. They say: fine",
		approval.Failed:  "The call of `create_order` was approved by operator:a, but it failed. They say: fine",
	} {
		a.Call.Status = status
		require.Equal(t, want, a.Decision())
	}
	a.Call.Status = approval.Unknown
	require.Contains(t, a.Decision(), "its outcome is unknown")
}
