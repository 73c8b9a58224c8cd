package jsonrpc_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/jsonrpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/rawjson"
)

func TestAnIDGoesBackAsItCame(t *testing.T) {
	t.Parallel()
	for _, id := range []string{`1`, `"1"`, `9007199254740993`, `"\u0061"`, `-4`} {
		messages, batch, failed := jsonrpc.Read([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`))
		require.Nil(t, failed)
		require.False(t, batch)
		require.True(t, messages[0].IsRequest())
		require.Equal(t, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`, string(jsonrpc.Result(messages[0].ID, []byte("{}"))))
	}
}

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	t.Parallel()
	for body, code := range map[string]int{
		``: jsonrpc.ParseError, `{`: jsonrpc.ParseError, `"x"`: jsonrpc.InvalidRequest, `[]`: jsonrpc.InvalidRequest,
		`{"id":1,"method":"ping"}`:                                          jsonrpc.InvalidRequest,
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:                          jsonrpc.InvalidRequest,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:                       jsonrpc.InvalidRequest,
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:                        jsonrpc.InvalidRequest,
		`{"jsonrpc":"2.0","id":1,"Method":"ping"}`:                          jsonrpc.InvalidRequest,
		`{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}`:                jsonrpc.InvalidRequest,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`:                   jsonrpc.InvalidRequest,
		`{"jsonrpc":"2.0","result":{}}`:                                     jsonrpc.InvalidRequest,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`:              jsonrpc.InvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"a":2}}`:   jsonrpc.InvalidParams,
		`[` + strings.Repeat(`{"jsonrpc":"2.0","method":"x"},`, 64) + `{}]`: jsonrpc.InvalidRequest,
	} {
		_, _, failed := jsonrpc.Read([]byte(body))
		require.NotNil(t, failed, body)
		require.Equal(t, code, failed.Code, body)
	}
}

func TestABatchIsReadInOrder(t *testing.T) {
	t.Parallel()
	messages, batch, failed := jsonrpc.Read([]byte(`[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b","params":{"x":1}},{"jsonrpc":"2.0","id":"s","result":{"ok":true}}]`))
	require.Nil(t, failed)
	require.True(t, batch)
	require.Len(t, messages, 3)
	require.True(t, messages[0].IsRequest())
	require.False(t, messages[1].IsRequest())
	require.Equal(t, "1", string(messages[1].Params.Get("x")))
	require.True(t, messages[2].IsResponse())
}

func TestMessagesAreWritten(t *testing.T) {
	t.Parallel()
	failure := jsonrpc.Errorf(jsonrpc.HeaderMismatch, "no %q", "<x>").WithData(map[string]int{"n": 1})
	require.Equal(t, `{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"no \"<x>\"","data":{"n":1}}}`, string(jsonrpc.Failure(nil, failure)))
	require.Equal(t, `{"jsonrpc":"2.0","method":"m","params":{}}`, string(jsonrpc.Notification("m", rawjson.Object{}.Bytes())))
	require.Equal(t, `{"jsonrpc":"2.0","id":"a","method":"m","params":{}}`, string(jsonrpc.Request([]byte(`"a"`), "m", []byte("{}"))))
	require.ErrorContains(t, failure, "(-32020)")
}
