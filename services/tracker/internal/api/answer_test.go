package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

func TestAnAnswerShowsWhatIsEmptyAndItsSparseRowsDoNot(t *testing.T) {
	t.Parallel()
	text, err := rpc.AnswerJSON(&trackerv1.ListWorkItemsResponse{
		Count: 2, Items: []*trackerv1.WorkItem{{Key: "OPS-1", Title: `<a> "quoted" ☂`, Flags: []string{"cycle"}}, {Key: "OPS-2"}},
	})
	require.NoError(t, err)
	require.Contains(t, string(text), `"items":[{"key":"OPS-1","title":"<a> \"quoted\" ☂","flags":["cycle"]},{"key":"OPS-2"}]`)
	require.Contains(t, string(text), `"count":2`)
	require.Contains(t, string(text), `"next_cursor":""`)
	require.Contains(t, string(text), `"groups":[]`)
}

func TestAnAnswerWithoutRowsSaysThatThereAreNone(t *testing.T) {
	t.Parallel()
	text, err := rpc.AnswerJSON(&trackerv1.ListWorkItemsResponse{})
	require.NoError(t, err)
	require.Contains(t, string(text), `"items":[]`)
}
