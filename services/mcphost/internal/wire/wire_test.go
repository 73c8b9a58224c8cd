package wire

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAMessageKeepsWhatItsAuthorWrote(t *testing.T) {
	t.Parallel()
	all, err := Decode([]byte(` {"id": 9007199254740993 ,"jsonrpc":"2.0","result":{"n":9007199254740993,"f":1.50, "x":[1e400]},"more":1} `))
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "9007199254740993", string(all[0].ID))
	require.Equal(t, `{"n":9007199254740993,"f":1.50, "x":[1e400]}`, string(all[0].Result))
	require.True(t, all[0].Response())

	all, err = Decode([]byte(`[{"method":"a","id":"x"},{"method":"b"},{"id":1,"error":{"code":1}}]`))
	require.NoError(t, err)
	require.True(t, all[0].Request())
	require.Equal(t, `"x"`, string(all[0].ID))
	require.False(t, all[1].Request())
	require.Equal(t, `{"code":1}`, string(all[2].Error))

	all, err = Decode([]byte("{\"method\":\"a\",\"params\":{\"t\":\"\xff\"}}"))
	require.NoError(t, err)
	require.Equal(t, `{"t":"`+"\uFFFD"+`"}`, string(all[0].Params))

	for _, bad := range []string{"", "x", "{", "[1]", "{}", `{"id":1}`, `{"method":1}`, `{"method":"a"} {}`, `{"result":{"a":01}}`, `{"result":"` + "\n" + `"}`} {
		_, err := Decode([]byte(bad))
		require.Error(t, err, bad)
	}
}

func TestTheScannerAgreesWithTheStandardLibrary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{
			"{", "}", "[", "]", ":", ",", `"a"`, `"\u00e9"`, `"\x"`, `"`, "0", "-1", "01", "1.5e+3", "1.", "true", "nul", "null", " ", "\n", `"\"`,
		}), 0, 12).Draw(t, "parts")
		text := `{"v":` + strings.Join(parts, "") + `}`
		_, err := Object([]byte(text))
		require.Equal(t, json.Valid([]byte(text)), err == nil, text)
	})
}

func TestWhatHasTooManyPartsIsNotTakenApart(t *testing.T) {
	t.Parallel()
	batch := func(n int) []byte { return []byte("[" + strings.Repeat(`{"method":"a"},`, n-1) + `{"method":"a"}]`) }
	all, err := Decode(batch(maxBatch))
	require.NoError(t, err)
	require.Len(t, all, maxBatch)
	_, err = Decode(batch(maxBatch + 1))
	require.ErrorIs(t, err, ErrMany)
	wide := func(n int) []byte { return []byte("{" + strings.Repeat(`"a":1,`, n-1) + `"result":1}`) }
	members, err := Object(wide(maxMembers))
	require.NoError(t, err)
	require.Len(t, members, maxMembers)
	_, err = Object(wide(maxMembers + 1))
	require.ErrorIs(t, err, ErrMany)
	_, err = Elements([]byte("[1,2,3]"), 2)
	require.ErrorIs(t, err, ErrMany)
	// What is within a value is never taken apart, however much it is.
	all, err = Decode([]byte(`{"id":1,"result":` + string(wide(maxMembers+1)) + `}`))
	require.NoError(t, err)
	require.Len(t, all[0].Result, len(wide(maxMembers+1)))
}

func TestDeepNestingIsReadInOnePass(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"properties":{"p":`, 4000) + `1` + strings.Repeat(`}}`, 4000)
	members, err := Object([]byte(`{"inputSchema":` + deep + `}`))
	require.NoError(t, err)
	require.Equal(t, deep, string(Get(members, "inputSchema")))
	_, err = Object([]byte(`{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`))
	require.Error(t, err)
}

func TestMembersAreReplacedAndTheRestStays(t *testing.T) {
	t.Parallel()
	members, err := Object([]byte(`{"a": 1.0, "_meta":{"x":1}, "b\"c":"\u0041","_meta":2}`))
	require.NoError(t, err)
	require.Equal(t, `{"a":1.0,"_meta":3,"b\"c":"\u0041"}`, string(Build(Set(members, "_meta", []byte("3")))))
	require.Equal(t, "2", string(Get(members, "_meta")))
	require.Nil(t, Get(members, "nothing"))
	require.Equal(t, `{"a":1}`, string(Build(Set(nil, "a", []byte("1")))))
}

func TestAMessageIsOneLine(t *testing.T) {
	t.Parallel()
	line := Line(Call(7, "tools/call", []byte("{\n \"a\":\r\n 1}")))
	require.Equal(t, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{  \"a\":   1}}\n", string(line))
	require.Equal(t, `{"jsonrpc":"2.0","method":"x"}`, string(Notification("x", nil)))
	require.Equal(t, `{"jsonrpc":"2.0","id":"q","error":{"code":-1,"message":"no \"way\""}}`, string(Failure([]byte(`"q"`), Refusal(-1, `no "way"`))))
}

func TestEventsAreReadHoweverTheyArrive(t *testing.T) {
	t.Parallel()
	text := ": hello\r\nretry: 500\nid: 1\n\nevent: endpoint\ndata: /x\n\ndata:{\"a\":\r\ndata: 1}\nid: 2\n\ndata: cut"
	for _, reader := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
		e := NewEvents(reader, 100)
		first, err := e.Next()
		require.NoError(t, err)
		require.Equal(t, Event{Name: "endpoint", Data: []byte("/x"), ID: "1"}, first)
		require.Equal(t, 500*time.Millisecond, e.Retry())
		second, err := e.Next()
		require.NoError(t, err)
		require.Equal(t, Event{Data: []byte("{\"a\":\n1}"), ID: "2"}, second)
		_, err = e.Next()
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, "2", e.ID())
	}
	_, err := NewEvents(strings.NewReader("data: "+strings.Repeat("x", 200<<10)+"\n\n"), 64<<10).Next()
	require.ErrorContains(t, err, "more than")
}

func TestStreamsShareBuffersAndNothingElse(t *testing.T) {
	t.Parallel()
	var streams Streams
	var kept []Event
	for _, text := range []string{"data: first\nid: 1\n\ndata: cut off", "data: second\n\n", "data: third\n\n"} {
		streams.Read(strings.NewReader(text), 100, func(e *Events) {
			event, err := e.Next()
			require.NoError(t, err)
			kept = append(kept, event)
		})
	}
	require.Equal(t, []Event{{Data: []byte("first"), ID: "1"}, {Data: []byte("second")}, {Data: []byte("third")}}, kept)
}
