package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/store"
)

func TestCallsAreFoundByWhatTheyHold(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	var all []*call.Record
	for i := range 4500 {
		r := record("ada", "t1", fmt.Sprint("c", i), noon.Add(time.Duration(i)*time.Second))
		switch i {
		case 10:
			r.Arguments = `{"title":"Zertifikat ERNEUERN 100%"}`
		case 2600:
			r.Result, r.Source, r.Status = `{"said":"erneuern, 100 mal"}`, "mcp:gh", call.Failed
		case 4400:
			r.Result, r.Seat = `{"said":"Erneuern"}`, "bo"
		}
		all = append(all, r)
	}
	for begin := 0; begin < len(all); begin += 500 {
		require.NoError(t, s.InsertCalls(t.Context(), all[begin:begin+500]))
	}
	find := func(f store.Filter) (found []string) {
		var after store.After
		for {
			page, next, err := s.SearchCalls(t.Context(), f, after, 2)
			require.NoError(t, err)
			for _, r := range page {
				found = append(found, r.CallID)
			}
			if next == nil {
				return found
			}
			after = *next
		}
	}
	require.Equal(t, []string{"c4400", "c2600", "c10"}, find(store.Filter{Text: "erneuern"}), "over several windows, newest first")
	require.Equal(t, []string{"c10"}, find(store.Filter{Text: "100%"}), "a sign is a sign")
	require.Equal(t, []string{"c4400"}, find(store.Filter{Text: "erneuern", Seat: "bo"}))
	require.Equal(t, []string{"c2600"}, find(store.Filter{Text: "ERNEUERN", Source: "mcp:gh", Status: call.Failed}))
	require.Equal(t, []string{"c2600"}, find(store.Filter{Text: "erneuern", Since: noon.Add(2600 * time.Second), Until: noon.Add(4400 * time.Second)}))
	require.Empty(t, find(store.Filter{Text: "nowhere"}))
}

// Arguments and results are kept as they were written, and JSON may be written in several ways.
func TestATextIsFoundHoweverItsJSONIsWritten(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	for i, result := range []string{`{"text":"say \"hi\" to Jürgen 🙂 in C:\\tmp\nnow"}`, `{"text":"say \"hi\" to J\u00fcrgen \ud83d\ude42 in C:\\tmp\nnow"}`} {
		r := record("ada", "t1", fmt.Sprint("c", i), noon)
		r.Result = result
		require.NoError(t, s.InsertCalls(t.Context(), []*call.Record{r}))
	}
	for _, text := range []string{`say "hi"`, "Jürgen", "🙂", `C:\tmp`, "tmp\nnow", `"hi" to Jürgen 🙂 in C:\tmp`} {
		found, _, err := s.SearchCalls(t.Context(), store.Filter{Text: text}, store.After{}, 10)
		require.NoError(t, err)
		require.Len(t, found, 2, text)
	}
	found, _, err := s.SearchCalls(t.Context(), store.Filter{Text: `\"hi\"`}, store.After{}, 10)
	require.NoError(t, err)
	require.Len(t, found, 2, "and as it is kept")
}

func TestOneCallIsReadWhole(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	r := record("ada", "t1", "c1", noon)
	require.NoError(t, s.InsertCalls(t.Context(), []*call.Record{r}))
	got, err := s.GetCall(t.Context(), r.ID)
	require.NoError(t, err)
	require.Equal(t, r.Arguments, got.Arguments)
	_, err = s.GetCall(t.Context(), uuid.New())
	require.Equal(t, fault.NotFound, fault.ClassOf(err))
}
