package opid_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/opid"
)

var call = opid.Call{Holder: "operator:t1", Tool: "create_work_item", Digest: []byte("digest")}

func minter(t *testing.T, now func() time.Time, letters ...string) *opid.Minter {
	t.Helper()
	var secrets []config.Secret
	for _, letter := range letters {
		secrets = append(secrets, config.Secret(strings.Repeat(letter, rpc.MinKeyBytes)))
	}
	keys, err := rpc.NewKeys(secrets...)
	require.NoError(t, err)
	return opid.New(keys, now)
}

func TestAnIDIsTakenBackForItsOwnCallAlone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	m := minter(t, func() time.Time { return now }, "a")
	id := m.Mint(call)
	require.NoError(t, m.Check(id, call))
	require.NotEqual(t, id, m.Mint(call), "two equal calls are two operations")
	for name, c := range map[string]struct {
		id   string
		call opid.Call
		says string
	}{
		"another token":      {id, opid.Call{Holder: "operator:t2", Tool: call.Tool, Digest: call.Digest}, "your token"},
		"another tool":       {id, opid.Call{Holder: call.Holder, Tool: "update_work_item", Digest: call.Digest}, "another tool"},
		"another argument":   {id, opid.Call{Holder: call.Holder, Tool: call.Tool, Digest: []byte("other")}, "other arguments"},
		"one made up":        {"call-1", call, "not one that a call"},
		"one of other keys":  {minter(t, time.Now, "b").Mint(call), call, "your token"},
		"one that is longer": {strings.Repeat("A", opid.MaxBytes+1), call, "has 129 bytes"},
		"a changed one":      {flip(id), call, "your token"},
		"an empty one":       {"", call, "not one that a call"},
		"one with a newline": {id[:40] + "\n" + id[40:], call, "not one that a call"},
	} {
		err := m.Check(c.id, c.call)
		require.ErrorContains(t, err, c.says, name)
		require.Equal(t, fault.Invalid, fault.ClassOf(err), name)
	}
}

// The last character of an id has two bits to spare, and a ledger takes each spelling for another operation.
func TestAnIDHasOneSpelling(t *testing.T) {
	t.Parallel()
	m := minter(t, time.Now, "a")
	id := m.Mint(call)
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for _, letter := range letters {
		if respelt := id[:len(id)-1] + string(letter); respelt != id {
			require.Error(t, m.Check(respelt, call), respelt)
		}
	}
}

func TestAnIDIsVisibleASCIIThatALedgerTakes(t *testing.T) {
	t.Parallel()
	require.Regexp(t, `^[A-Za-z0-9_-]{1,128}$`, minter(t, time.Now, "a").Mint(call))
}

func TestAnIDOutlivesTheRotationOfKeysButNotTheLedgers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	id := minter(t, clock, "a").Mint(call)
	rotated := minter(t, clock, "b", "a")
	now = now.Add(opid.Lifetime)
	require.NoError(t, rotated.Check(id, call))
	now = now.Add(time.Second)
	require.ErrorContains(t, rotated.Check(id, call), "older than 29 days")
}

// flip changes a character in the middle.
func flip(id string) string {
	letter := byte('A')
	if id[20] == letter {
		letter = 'B'
	}
	return id[:20] + string(letter) + id[21:]
}
