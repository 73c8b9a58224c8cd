package rpc_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// tokenBook knows one token, and none while it is closed.
type tokenBook struct{ closed bool }

func (b tokenBook) VerifyToken(_ context.Context, token string) (*rpc.Principal, error) {
	switch {
	case b.closed:
		return nil, fault.New(fault.Unavailable, "closed")
	case token != "good":
		return nil, fault.New(fault.Forbidden, "unknown token")
	default:
		return &rpc.Principal{Kind: rpc.KindOperator, Id: "t1"}, nil
	}
}

func keysOf(t *testing.T, letters ...string) *rpc.Keys {
	t.Helper()
	var secrets []config.Secret
	for _, letter := range letters {
		secrets = append(secrets, config.Secret(strings.Repeat(letter, rpc.MinKeyBytes)))
	}
	keys, err := rpc.NewKeys(secrets...)
	require.NoError(t, err)
	return keys
}

func TestACallerOfPlainHTTPIsKnownByTheSameHeadersAsACall(t *testing.T) {
	t.Parallel()
	keys := keysOf(t, "a")
	signed := keys.Sign(&rpc.Principal{Kind: rpc.KindPerson, Id: "ines"}, 0)
	for name, c := range map[string]struct {
		header http.Header
		closed bool
		id     string
		class  fault.Class
		says   string
	}{
		"a token":             {header: http.Header{"Authorization": {"Bearer good"}}, id: "t1"},
		"a signed principal":  {header: http.Header{"Bullpen-Principal": {signed}}, id: "ines"},
		"nobody":              {header: http.Header{}, class: fault.Forbidden, says: "says nothing of who makes it"},
		"a wrong token":       {header: http.Header{"Authorization": {"Bearer bad"}}, class: fault.Forbidden, says: "not valid"},
		"two headers":         {header: http.Header{"Authorization": {"Bearer good", "Bearer good"}}, class: fault.Forbidden, says: "more than one caller"},
		"a closed token book": {header: http.Header{"Authorization": {"Bearer good"}}, closed: true, class: fault.Unavailable, says: "cannot be checked"},
	} {
		p, err := rpc.NewCallers(keys, tokenBook{closed: c.closed}, time.Now).Identify(t.Context(), c.header)
		require.Equal(t, c.class, classOf(err), name)
		require.Equal(t, c.id, p.GetId(), name)
		if c.says == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.says, name)
	}
}

// classOf answers no class where nothing failed.
func classOf(err error) fault.Class {
	if err == nil {
		return ""
	}
	return fault.ClassOf(err)
}

func TestAMACConfirmsItsOwnDataForItsOwnPurposeUnderAnyKey(t *testing.T) {
	t.Parallel()
	old := keysOf(t, "a")
	mac := old.MAC("one", []byte("data"))
	rotated := keysOf(t, "b", "a")
	require.True(t, rotated.Confirms("one", []byte("data"), mac))
	require.False(t, rotated.Confirms("two", []byte("data"), mac))
	require.False(t, rotated.Confirms("one", []byte("date"), mac))
	require.False(t, keysOf(t, "b").Confirms("one", []byte("data"), mac))
	require.False(t, rotated.Confirms("one", []byte("data"), nil))
}
