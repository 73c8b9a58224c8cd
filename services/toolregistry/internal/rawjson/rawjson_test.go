package rawjson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/rawjson"
)

func TestAChangeLeavesEveryOtherByte(t *testing.T) {
	t.Parallel()
	object, err := rawjson.Parse([]byte(`{ "z" : 9007199254740993, "a":{"b" :1.0e2, "b":2}, "name":"x\u00e9" }`))
	require.NoError(t, err)
	changed := object.With("name", rawjson.Quote("<y>")).With("new", json.RawMessage("true")).Without("missing")
	require.Equal(t, `{"z":9007199254740993,"a":{"b" :1.0e2, "b":2},"name":"<y>","new":true}`, string(changed.Bytes()))
	require.Equal(t, `{"a":{"b" :1.0e2, "b":2},"name":"x\u00e9"}`, string(object.Without("z").Bytes()), "the first object is as it was")
}

func TestAMemberIsAnsweredAsWhatItIs(t *testing.T) {
	t.Parallel()
	object, err := rawjson.Parse([]byte(`{"s":"text","n":1,"null":null,"o":{"in":true}}`))
	require.NoError(t, err)
	text, ok := object.Text("s")
	require.True(t, ok)
	require.Equal(t, "text", text)
	_, ok = object.Text("n")
	require.False(t, ok)
	require.True(t, object.Has("null"))
	require.False(t, object.Has("S"), "names have a case")
	inner, ok := object.Object("o")
	require.True(t, ok)
	require.Equal(t, "true", string(inner.Get("in")))
	_, ok = object.Object("null")
	require.False(t, ok)
}

func TestOnlyOneObjectWithEveryNameOnceIsRead(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		`[]`: "not one JSON object", ``: "not one JSON object", `{"a":1,"a":2}`: "twice", `{"a":1}{}`: "more after", `{"a":}`: "not JSON", `{"a":1`: "not JSON",
	} {
		_, err := rawjson.Parse([]byte(text))
		require.ErrorContains(t, err, says, text)
	}
}

// TestAnObjectOfManyMembersIsReadInOnePass reads as many members as fit a body that is taken. Searching all for each that comes
// would outlast the test.
func TestAnObjectOfManyMembersIsReadInOnePass(t *testing.T) {
	t.Parallel()
	const members = 400_000
	var text bytes.Buffer
	text.WriteString("{")
	for i := range members {
		fmt.Fprintf(&text, `"m%d":1,`, i)
	}
	_, err := rawjson.Parse([]byte(text.String() + `"m0":1}`))
	require.ErrorContains(t, err, `"m0" twice`)
}

func TestANameThatStandsTwiceIsFoundWhereverItStands(t *testing.T) {
	t.Parallel()
	for first := range 100 {
		object := rawjson.Object{}
		for i := range 100 {
			object = object.With(fmt.Sprintf("m%d", i), json.RawMessage("1"))
		}
		parsed, err := rawjson.Parse(object.Bytes())
		require.NoError(t, err)
		require.Equal(t, object, parsed)
		_, err = rawjson.Parse(append(object, rawjson.Member{Name: fmt.Sprintf("m%d", first), Value: json.RawMessage("1")}).Bytes())
		require.ErrorContains(t, err, fmt.Sprintf(`"m%d" twice`, first))
	}
}

func TestADocumentBecomesOneLine(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{"a":1,"b":"c d"}`, string(rawjson.Line([]byte("{\n \"a\": 1,\r\n \"b\":\"c d\"}"))))
	require.Equal(t, `{"a" : 1}`, string(rawjson.Line([]byte(`{"a" : 1}`))))
	require.Equal(t, "x\ny", string(rawjson.Line([]byte("x\ny"))))
}
