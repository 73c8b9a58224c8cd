package tracker_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// raceRounds is how often each race is run: BULLPEN_RACE_ROUNDS, or enough to see a rule break.
func raceRounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("BULLPEN_RACE_ROUNDS")
	if text == "" {
		return 2
	}
	rounds, err := strconv.Atoi(text)
	require.NoError(t, err, "BULLPEN_RACE_ROUNDS is a number")
	return rounds
}

func TestManyCallersOfOneItemLoseNothingAndEachPrizeHasOneWinner(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for round := range raceRounds(t) {
		for _, callers := range crowds {
			r := race{b: b, callers: callers, key: file(t, b, fmt.Sprintf("Contested by %d, round %d", callers, round)).GetKey()}
			r.claim(t)
			r.assign(t)
			r.write(t)
			r.settled(t)
		}
	}
}

// race is many callers at one item.
type race struct {
	b       bundle
	callers int
	key     string
	holder  string
}

// claim lets all want the item; one gets it and the others hear who.
func (r *race) claim(t *testing.T) {
	t.Helper()
	errs := together(r.callers, func(n int) error {
		_, err := r.b.client.ClaimWorkItem(token(t.Context(), fmt.Sprint("caller-", n)), &trackerv1.ClaimWorkItemRequest{Item: r.key})
		return err
	})
	require.Equal(t, 1, only(t, errs, fault.Conflict))
	for n, err := range errs {
		if err == nil {
			r.holder = fmt.Sprint("caller-", n)
		}
	}
	for _, err := range errs {
		if err != nil {
			require.Equal(t, r.holder, rpc.FromError(err).Facts["holder"])
		}
	}
	require.Equal(t, r.holder, got(t, r.b, r.key).GetClaim().GetHolder())
}

// assign lets all hand it on from what they read; one does, and the others hear which version there is now.
func (r *race) assign(t *testing.T) {
	t.Helper()
	hands := []string{"ops-lead", "designer", "ines"}
	errs := together(r.callers, func(n int) error {
		_, err := r.b.client.UpdateWorkItem(token(t.Context(), fmt.Sprint("caller-", n)), &trackerv1.UpdateWorkItemRequest{
			Item: r.key, Assignee: &hands[n%len(hands)], IfMatch: proto.Int32(1),
		})
		return err
	})
	require.Equal(t, 1, only(t, errs, fault.StaleVersion))
	for n, err := range errs {
		if err == nil {
			require.Equal(t, hands[n%len(hands)], got(t, r.b, r.key).GetAssignee())
			continue
		}
		require.Equal(t, "2", rpc.FromError(err).Facts["current_version"])
	}
}

// write lets all edit, tick, watch and comment at once, none of which is conditioned on what they read: every one stands.
func (r *race) write(t *testing.T) {
	t.Helper()
	update(operator(t.Context()), t, r.b, &trackerv1.UpdateWorkItemRequest{Item: r.key, Checklist: &trackerv1.ChecklistGesture{
		Gesture: &trackerv1.ChecklistGesture_AddList{AddList: &trackerv1.AddChecklist{Name: "All"}},
	}})
	errs := together(3*r.callers, func(n int) error {
		ctx := token(t.Context(), fmt.Sprint("caller-", n/3))
		var err error
		switch n % 3 {
		case 0:
			_, err = r.b.client.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{Item: r.key, Title: proto.String(fmt.Sprintf("%s by %d", r.key, n/3))})
		case 1:
			_, err = r.b.client.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{Item: r.key, Checklist: &trackerv1.ChecklistGesture{
				Gesture: &trackerv1.ChecklistGesture_AddItem{AddItem: &trackerv1.AddChecklistItem{List: "All", Name: fmt.Sprint("step ", n/3)}},
			}})
		default:
			_, err = r.b.client.CommentOnWorkItem(ctx, &trackerv1.CommentOnWorkItemRequest{Item: r.key, Body: fmt.Sprint("comment ", n/3)})
		}
		return err
	})
	require.Equal(t, 3*r.callers, only(t, errs))
}

// settled proves that nothing was lost and that history explains what there is.
func (r *race) settled(t *testing.T) {
	t.Helper()
	i := got(t, r.b, r.key)
	var steps, comments, expected []string
	for _, s := range i.GetChecklists()[0].GetItems() {
		steps = append(steps, s.GetName())
	}
	for n := range r.callers {
		expected = append(expected, fmt.Sprint("step ", n))
	}
	require.ElementsMatch(t, expected, steps)
	rows, err := r.b.pool.Query(t.Context(), `select body from comments where item_id = $1`, i.GetId())
	require.NoError(t, err)
	for rows.Next() {
		var body string
		require.NoError(t, rows.Scan(&body))
		comments = append(comments, body)
	}
	require.NoError(t, rows.Err())
	require.Len(t, comments, r.callers)

	told, count := map[string]string{}, 0
	version := int32(0)
	rows, err = r.b.pool.Query(t.Context(), `select kind, fields, version from history where item_id = $1 order by position`, i.GetId())
	require.NoError(t, err)
	for rows.Next() {
		var kind string
		var fields map[string]struct{ From, To string }
		var after int32
		require.NoError(t, rows.Scan(&kind, &fields, &after))
		for name, f := range fields {
			if kind != "created" {
				require.Equal(t, told[name], f.From, "%s of %s", name, kind)
			}
			told[name] = f.To
		}
		if kind != "comment" && kind != "claimed" {
			version++
		}
		require.Equal(t, version, after, kind)
		count++
	}
	require.NoError(t, rows.Err())
	require.Equal(t, i.GetVersion(), version)
	require.Equal(t, []string{i.GetTitle(), i.GetAssignee(), i.GetStatus(), fmt.Sprintf("All: 0 of %d done", r.callers)},
		[]string{told["title"], told["assignee"], told["status"], told["checklists"]})
	require.Equal(t, 1+1+1+1+3*r.callers, count, "filed, claimed, handed on, a list, and what everybody wrote")
}

func TestAsManyCallersAsItemsEachGetOneThatIsReady(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for round := range raceRounds(t) {
		for _, callers := range crowds {
			for n := range callers {
				file(t, b, fmt.Sprintf("Round %d of %d: %d", round, callers, n))
			}
			taken := make([]string, callers)
			errs := together(callers, func(n int) error {
				res, err := b.client.ClaimWorkItem(token(t.Context(), fmt.Sprint("caller-", n)), &trackerv1.ClaimWorkItemRequest{Project: "OPS"})
				taken[n] = res.GetItem().GetKey()
				return err
			})
			require.Equal(t, callers, only(t, errs))
			seen := map[string]bool{}
			for _, key := range taken {
				require.NotEmpty(t, key, "there are as many as there are callers")
				require.False(t, seen[key], key)
				seen[key] = true
			}
		}
	}
}
