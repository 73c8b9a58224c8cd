package timeline_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/timeline"
	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestATurnIsDrawnAsItsGoldenFile(t *testing.T) {
	t.Parallel()
	journals, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, journals)
	for _, journal := range journals {
		t.Run(filepath.Base(journal), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(journal)
			require.NoError(t, err)
			response := &turnv1.GetTurnResponse{}
			require.NoError(t, protojson.Unmarshal(raw, response))
			var drawn strings.Builder
			require.NoError(t, timeline.Write(&drawn, response, time.UTC))
			golden := strings.TrimSuffix(journal, ".json") + ".golden.txt"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(drawn.String()), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), drawn.String())
		})
	}
}

func TestAnAnswerThatIsQueuedHasNotReachedAnybody(t *testing.T) {
	t.Parallel()
	call := &turnv1.Call{Tool: "reply", State: "done", Outcome: "pending", Delivered: "github"}
	var drawn strings.Builder
	require.NoError(t, timeline.Write(&drawn, &turnv1.GetTurnResponse{
		Turn: &turnv1.Turn{TurnId: "t", Seat: "baker"}, Rounds: []*turnv1.Round{{Number: 1, Calls: []*turnv1.Call{call}}},
	}, time.UTC))
	require.Contains(t, drawn.String(), "pending, on its way to github")
	require.NotContains(t, drawn.String(), "reached")
}

func TestACallThatWaitsForAPersonTookNoTimeAndReachedNoServer(t *testing.T) {
	t.Parallel()
	at := timestamppb.Now()
	call := &turnv1.Call{Tool: "merge", Source: "mcp:code", State: "parked", StartTime: at, EndTime: at, Result: proto.String("It waits.")}
	var drawn strings.Builder
	require.NoError(t, timeline.Write(&drawn, &turnv1.GetTurnResponse{
		Turn: &turnv1.Turn{TurnId: "t", Seat: "baker"}, Rounds: []*turnv1.Round{{Number: 1, Calls: []*turnv1.Call{call}}},
	}, time.UTC))
	require.Regexp(t, `(?m)not made: it waits for a person$`, drawn.String())
}

const readme = "../../../../README.md"

var drawnInReadme = regexp.MustCompile("(?ms)(^<!-- drawn: demo -->\n```\n)(.*?)(^```$)")

func TestTheReadmeShowsATurnOfTheDemoAsItIsDrawnNow(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(readme)
	require.NoError(t, err)
	drawn, err := os.ReadFile("testdata/demo.golden.txt")
	require.NoError(t, err)
	shown := drawnInReadme.FindSubmatch(page)
	require.NotNil(t, shown, "the README has lost its timeline")
	if *update {
		page = drawnInReadme.ReplaceAll(page, slices.Concat([]byte("${1}"), drawn, []byte("${3}")))
		require.NoError(t, os.WriteFile(readme, page, 0o644))
		return
	}
	require.Equal(t, string(drawn), string(shown[2]), "run the test with -update")
}
