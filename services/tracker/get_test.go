package tracker_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

func read(t *testing.T, b bundle, req *trackerv1.GetWorkItemRequest) *trackerv1.GetWorkItemResponse {
	t.Helper()
	res, err := b.client.GetWorkItem(operator(t.Context()), req)
	require.NoError(t, err)
	return res
}

func TestADescriptionIsCutAt4KiBAndACommentAt2KiBAtAWholeCharacter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := strings.Repeat("é", 4096)
	created, err := b.client.CreateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.CreateWorkItemRequest{Title: "Long", Body: body})
	require.NoError(t, err)
	key := created.GetKey()
	texts := []string{strings.Repeat("é", 1024), strings.Repeat("x", 2048), strings.Repeat("é", 1025), strings.Repeat("x", 2049), strings.Repeat("😀", 8192)}
	var ids []string
	for _, text := range texts {
		ids = append(ids, say(operator(t.Context()), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: text}).GetCommentId())
	}
	got := read(t, b, &trackerv1.GetWorkItemRequest{Item: key})
	require.Equal(t, int32(8192), got.GetItem().GetBodyBytes())
	shown := got.GetItem().GetBody()
	require.True(t, strings.HasSuffix(shown, "é…") && len(shown) <= 4096 && utf8.ValidString(shown))
	for n, c := range got.GetComments() {
		require.Equal(t, int32(len(texts[n])), c.GetBodyBytes())
		if len(texts[n]) <= 2048 {
			require.Equal(t, texts[n], c.GetBody())
			continue
		}
		require.True(t, strings.HasSuffix(c.GetBody(), "…") && len(c.GetBody()) <= 2048 && len(c.GetBody()) > 2040 && utf8.ValidString(c.GetBody()), "%d", n)
		require.True(t, strings.HasPrefix(texts[n], strings.TrimSuffix(c.GetBody(), "…")))
	}
	one := read(t, b, &trackerv1.GetWorkItemRequest{Item: key, Comment: ids[4]})
	require.Equal(t, texts[4], one.GetComments()[0].GetBody(), "one comment comes whole")
}

func TestACommentOrTheBodyAnswersAloneUnlessIncludeIsGiven(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := strings.Repeat("x", 65536)
	created, err := b.client.CreateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.CreateWorkItemRequest{Title: "Parts", Body: body})
	require.NoError(t, err)
	key := created.GetKey()
	comment := say(operator(t.Context()), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "first"}).GetCommentId()
	say(operator(t.Context()), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: "second"})

	alone := read(t, b, &trackerv1.GetWorkItemRequest{Item: key, Body: true})
	require.Equal(t, body, alone.GetItem().GetBody(), "the largest description can be read")
	require.Empty(t, alone.GetComments())
	require.Empty(t, alone.GetHistory())
	one := read(t, b, &trackerv1.GetWorkItemRequest{Item: key, Comment: comment})
	require.Len(t, one.GetComments(), 1)
	require.Empty(t, one.GetHistory())
	both := read(t, b, &trackerv1.GetWorkItemRequest{Item: key, Comment: comment, Body: true})
	require.Len(t, both.GetComments(), 1)
	require.Less(t, len(both.GetItem().GetBody()), 5000, "of both, the comment wins")
	more := read(t, b, &trackerv1.GetWorkItemRequest{Item: key, Body: true, Include: []string{"comments"}})
	require.Len(t, more.GetComments(), 2)
	require.Len(t, more.GetItem().GetBody(), 65536)
	require.Empty(t, more.GetHistory())
	only := read(t, b, &trackerv1.GetWorkItemRequest{Item: key, Include: []string{"history"}})
	require.Len(t, only.GetHistory(), 3)
	require.Empty(t, only.GetComments())
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key, other := file(t, b, "Here").GetKey(), file(t, b, "There").GetKey()
	elsewhere := say(operator(t.Context()), t, b, &trackerv1.CommentOnWorkItemRequest{Item: other, Body: "x"}).GetCommentId()
	get := func(req *trackerv1.GetWorkItemRequest) error {
		_, err := b.client.GetWorkItem(operator(t.Context()), req)
		return err
	}
	for _, name := range []string{"OPS-99", uuid.NewString(), "nonsense", "OPS-0", "OPS-99999999999", "-1", "😀-1"} {
		refusal(t, get(&trackerv1.GetWorkItemRequest{Item: name}), fault.NotFound, "item")
	}
	refusal(t, get(&trackerv1.GetWorkItemRequest{Item: key, Comment: elsewhere}), fault.NotFound, "comment")
	refusal(t, get(&trackerv1.GetWorkItemRequest{Item: key, Comment: uuid.NewString()}), fault.NotFound, "comment")
	refusal(t, get(&trackerv1.GetWorkItemRequest{Item: key, Comment: "first"}), fault.Invalid, "comment")
	refusal(t, get(&trackerv1.GetWorkItemRequest{Item: key, CommentsCursor: "first"}), fault.Invalid, "comments_cursor")
	refusal(t, get(&trackerv1.GetWorkItemRequest{Item: key, Include: []string{"files"}}), fault.Invalid, "include[0]")
	for n := range 21 {
		say(operator(t.Context()), t, b, &trackerv1.CommentOnWorkItemRequest{Item: key, Body: fmt.Sprint(n)})
	}
	cursor := read(t, b, &trackerv1.GetWorkItemRequest{Item: key}).GetNextCommentsCursor()
	require.NotEmpty(t, cursor)
	require.Equal(t, "CURSOR_MISMATCH", refusal(t, get(&trackerv1.GetWorkItemRequest{Item: other, CommentsCursor: cursor}), fault.Invalid, "comments_cursor").Reason)
	require.Len(t, read(t, b, &trackerv1.GetWorkItemRequest{Item: key, CommentsCursor: cursor}).GetComments(), 1)
}

func TestHistoryShowsTheNewest50Changes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := file(t, b, "Busy").GetKey()
	for n := range 51 {
		_, err := b.client.UpdateWorkItem(operator(t.Context()), &trackerv1.UpdateWorkItemRequest{Item: key, Title: proto.String(fmt.Sprint("Busy ", n))})
		require.NoError(t, err)
	}
	got := read(t, b, &trackerv1.GetWorkItemRequest{Item: key, Include: []string{"history"}})
	require.Len(t, got.GetHistory(), 50)
	require.Equal(t, int32(52), got.GetHistory()[0].GetVersion())
	require.Equal(t, int32(3), got.GetHistory()[49].GetVersion())
}

func TestAnItemNamesItsUnitsItsBudgetAndItsSubtasks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parent := file(t, b, "Whole")
	part, err := b.client.CreateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.CreateWorkItemRequest{Title: "Part", Parent: parent.GetKey()})
	require.NoError(t, err)
	got := read(t, b, &trackerv1.GetWorkItemRequest{Item: parent.GetKey()})
	require.Equal(t, int32(8), got.GetReassignmentBudget())
	require.Equal(t, []string{part.GetKey()}, got.GetSubtasks())
	require.Equal(t, int32(1), got.GetItem().GetSubtaskCount())
	require.Equal(t, "operations", got.GetUnits().GetFiled().GetKey())
	require.Equal(t, "Operations", got.GetUnits().GetRouting().GetName())
	require.True(t, got.GetUnits().GetRouting().GetResolved())
	below := read(t, b, &trackerv1.GetWorkItemRequest{Item: part.GetKey()})
	require.Equal(t, parent.GetId(), below.GetItem().GetParent())
	require.Contains(t, fmt.Sprint(below.GetKeys()), parent.GetKey(), "the item it is part of is named")
}
