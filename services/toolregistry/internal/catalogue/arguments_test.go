package catalogue_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

func TestMistakesGetASentence(t *testing.T) {
	t.Parallel()
	create := tool(t, "create_work_item")
	for _, c := range []struct{ name, arguments, field, sentence string }{
		{"a misspelt name is suggested", `{"title":"x","asignee":"bo"}`, "asignee", "unknown argument `asignee`; did you mean `assignee`?"},
		{"camel case is another name", `{"title":"x","estimateMinutes":5}`, "estimateMinutes", "did you mean `estimate_minutes`?"},
		{"a foreign name gets the list", `{"colour":1}`, "colour", "unknown argument `colour`; it takes `title`, `body`"},
		{"a fraction is not whole", `{"estimate_minutes":5.5}`, "estimate_minutes", "`estimate_minutes` must be a whole number, not 5.5"},
		{"a word is not whole", `{"estimate_minutes":"five"}`, "estimate_minutes", "must be a whole number, not the string \"five\""},
		{"a number may be out of range", `{"estimate_minutes":9000000000}`, "estimate_minutes", "is out of range"},
		{"a limit is the contract's", `{"title":"x","estimate_minutes":0}`, "estimate_minutes", "`estimate_minutes` must be greater than or equal to 1"},
		{"a string is not a number", `{"title":5}`, "title", "`title` must be a string, not 5"},
		{"a required argument is missed", `{}`, "title", "`title`"},
		{"a closed set is listed", `{"title":"x","priority":"mega"}`, "priority", "urgent"},
		{"NUL is refused", `{"title":"a\u0000b"}`, "title", "must not hold the character NUL"},
		{"a list is not an object", `[1]`, "", "must be one JSON object, not a list"},
		{"null is not an object", `null`, "", "must be one JSON object, not null"},
		{"text after the object is refused", `{"title":"x"} and`, "", "there is more text after it"},
		{"half an object is refused", `{"title":"x"`, "", "ends in the middle"},
		{"prose is refused", `title is x`, "", "not JSON"},
		{"a name given twice is refused", `{"title":"x","title":"y"}`, "title", "`title` is given twice"},
		{"half a surrogate pair is refused", `{"title":"\ud800"}`, "", "surrogate"},
		{"invalid UTF-8 is refused", "{\"title\":\"\xff\"}", "", "UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := create.Decode(c.arguments)
			f, ok := fault.As(err)
			require.True(t, ok, "%v", err)
			require.Equal(t, fault.Invalid, f.Class)
			require.Contains(t, f.Message, c.sentence)
			require.Equal(t, c.field, f.Field)
		})
	}
}

func TestListsAndBooleansAreChecked(t *testing.T) {
	t.Parallel()
	list := tool(t, "list_work_items")
	for arguments, sentence := range map[string]string{
		`{"status":"todo"}`:        "`status` must be a list, not the string \"todo\"",
		`{"status":["todo",null]}`: "`status[1]` must be a string, not null",
		`{"open_only":"true"}`:     "`open_only` must be true or false, not the string \"true\"",
		`{"status":["todoo"]}`:     "`status[0]` must be one of `",
	} {
		_, err := list.Decode(arguments)
		require.ErrorContains(t, err, sentence)
	}
}

func TestMerciesAreKept(t *testing.T) {
	t.Parallel()
	create := tool(t, "create_work_item")
	for _, minutes := range []string{`5`, `"5"`, `5.0`, `5e0`} {
		m, err := create.Decode(`{"title":"x","assignee":null,"estimate_minutes":` + minutes + `}`)
		require.NoError(t, err, minutes)
		require.Equal(t, int32(5), m.(*trackerv1.CreateWorkItemRequest).GetEstimateMinutes())
	}
	_, err := tool(t, "list_projects").Decode("")
	require.NoError(t, err, "no text is no arguments")
}

// FuzzArguments holds the walker to protojson: what it lets through, protojson reads, and what protojson reads, it lets
// through, camelCase and NUL apart.
func FuzzArguments(f *testing.F) {
	tools := load(f).Tools()
	for i, seed := range []string{
		`{}`, `{"title":"x","estimate_minutes":"5e0"}`, `{"status":["todo"],"limit":1.0}`, `{"title":null}`, `[]`, `{"a":{"b":[1,"2",null,true]}}`,
		`{"title":"\ud83d\ude00"}`, `{"title":"x","title":"y"}`, `{"estimate_minutes":1e999}`, `{"estimateMinutes":1}`, `{"query":"x"}`,
	} {
		f.Add(i, seed)
	}
	f.Fuzz(func(t *testing.T, index int, text string) {
		tool := tools[uint(index)%uint(len(tools))]
		_, err := tool.Decode(text)
		trimmed := text
		if strings.TrimSpace(text) == "" {
			trimmed = "{}"
		}
		plain := protojson.Unmarshal([]byte(trimmed), tool.Input.New().Interface())
		if err == nil {
			require.NoError(t, plain)
			return
		}
		refused, ok := fault.As(err)
		require.True(t, ok, "%v", err)
		require.Equal(t, fault.Invalid, refused.Class)
		// protojson reads numbers such as `0e`, which are none.
		if plain == nil && json.Valid([]byte(trimmed)) && !stricter(refused) {
			t.Fatalf("protojson takes %q, the walker says: %s", text, refused.Message)
		}
	})
}

// stricter reports refusals that are meant to go beyond protojson: of names it reads, of NUL, and of the contract's limits.
func stricter(refused *fault.Error) bool {
	return refused.Reason == "UNKNOWN_ARGUMENT" || strings.Contains(refused.Message, "NUL") ||
		!strings.Contains(refused.Message, "cannot be read") && refused.Reason == "" && !strings.Contains(refused.Message, ", not ")
}

func BenchmarkDecode(b *testing.B) {
	create := tool(b, "create_work_item")
	for b.Loop() {
		if _, err := create.Decode(`{"title":"Renew the certificate","body":"It ends on Friday.","project":"OPS","priority":"high","estimate_minutes":30}`); err != nil {
			b.Fatal(err)
		}
	}
}
