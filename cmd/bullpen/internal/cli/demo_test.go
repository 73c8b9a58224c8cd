package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/cli/clitest"
)

// demoObject is what scripts read of `bullpen demo --json`.
type demoObject struct {
	OK     *bool `json:"ok"`
	Checks []struct {
		Name   string `json:"name"`
		OK     bool   `json:"ok"`
		Detail string `json:"detail"`
	} `json:"checks"`
	Timings   map[string]float64 `json:"timings"`
	Turns     *int               `json:"turns"`
	ToolCalls *int               `json:"tool_calls"`
	Items     *int               `json:"items"`
	Replies   *int               `json:"replies"`
}

func demo(t *testing.T, out string) demoObject {
	t.Helper()
	require.NotContains(t, out, "null")
	var object demoObject
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&object), out)
	require.False(t, decoder.More())
	return object
}

func TestTheDemoEndsWithOneObject(t *testing.T) {
	t.Parallel()
	r := clitest.Run(clitest.Without, "demo", "--json")
	object := demo(t, r.Out)
	require.Zero(t, r.Code, r.Out+r.Err)
	require.True(t, *object.OK)
	require.Len(t, object.Checks, 12)
	for _, check := range object.Checks {
		require.True(t, check.OK, check.Name)
		require.NotEmpty(t, check.Detail, check.Name)
	}
	for _, timing := range []string{"ack_ms", "ack_to_turn_ms", "turn_ms"} {
		require.Positive(t, object.Timings[timing], timing)
	}
	require.Equal(t, []int{2, 10, 1, 2}, []int{*object.Turns, *object.ToolCalls, *object.Items, *object.Replies})
}

func TestADemoThatCannotRunEndsWithTheSameObject(t *testing.T) {
	t.Parallel()
	r := clitest.Run(clitest.Without, "demo", "--json", "--log-level", "loud")
	require.Contains(t, failed(t, r), "the demo could not be run to its end")
	object := demo(t, r.Out)
	require.False(t, *object.OK)
	require.Len(t, object.Checks, 1)
	require.Contains(t, object.Checks[0].Detail, "loud")
}
