package main_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/doubles/modeldouble"
	knowledgev1 "github.com/bullpenhq/bullpen/gen/bullpen/knowledge/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/knowledge/v1/knowledgev1connect"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// condenseDocument is a company whose large results are condensed, and of which one seat has a model that chooses what is shown.
func condenseDocument(models string) string {
	return fmt.Sprintf(`name: Brief
tool_results: {mode: summarize, summarize_over_bytes: 1500, top_items: 1}
providers:
  llm:
    default: {type: anthropic, model: reader, base_url: %q, api_keys: ["${CROWD_MODEL_KEY}"]}
    small: {type: openai-compatible, model: chooser, base_url: %q, api_keys: ["${CROWD_MODEL_KEY}"]}
integrations:
  github: {webhook_secret: "${CROWD_GITHUB_SECRET}"}
units:
  - name: Operations
    type: team
    project: OPS
    space: OPS
    roles:
      - name: Seat 0
        handle: seat-0
        llm: {default: [default], auxiliary: [small]}
        integrations: {github: {login: %s, token: "${CROWD_GITHUB_0}"}}
`, models, models+"/v1", crowdLogin(0))
}

// briefModel is both models of the seat: one asks for a list and for what was left out of it, the other one chooses from lists.
type briefModel struct {
	mu sync.Mutex
	// asked is what the one that chooses was asked, shown what the other one had before it in its last round.
	asked []modeldouble.Request
	shown map[string]string
}

var (
	callRef  = regexp.MustCompile(`call_ref "([^"]+)"`)
	wantedAt = regexp.MustCompile(`(?m)^(\d+): .*"Page 07"`)
)

func (m *briefModel) answer(r modeldouble.Request) (modeldouble.Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Model == "chooser" {
		m.asked = append(m.asked, r)
		found := wantedAt.FindStringSubmatch(r.Messages[len(r.Messages)-1].Text)
		if found == nil {
			return modeldouble.Answer{}, fmt.Errorf("the page is not on the list: %+v", r.Messages)
		}
		return modeldouble.Answer{Text: "[" + found[1] + "]"}, nil
	}
	m.shown = resultsOf(r)
	say := func(tool string, args object) (modeldouble.Answer, error) {
		text, err := json.Marshal(args)
		return modeldouble.Answer{Calls: []modeldouble.Call{{Tool: tool, Args: string(text)}}}, err
	}
	switch {
	case !called(r, "list_pages"):
		return say("list_pages", object{"container": "OPS"})
	case !called(r, "read_tool_result"):
		found := callRef.FindStringSubmatch(m.shown["list_pages"])
		if found == nil {
			return modeldouble.Answer{}, fmt.Errorf("nothing says how the rest is read: %q", m.shown)
		}
		return say("read_tool_result", object{"call_ref": found[1]})
	case !called(r, "reply"):
		return say("reply", object{"body": "It is page 7."})
	default:
		return say("submit_work", object{"outcome": "delivered", "summary": "Answered.", "deliveries": []string{"reply"}})
	}
}

// TestACondensedResultReachesTheModelAndLeadsToTheRest has a model at an address be shown a large list by the member that another
// model of its seat chose, and read the whole by the reference that it was shown.
func TestACondensedResultReachesTheModelAndLeadsToTheRest(t *testing.T) {
	t.Parallel()
	brief := &briefModel{}
	double, err := modeldouble.Start(modeldouble.Options{Answer: brief.answer})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, double.Close()) })
	vendors := startVendors(t)
	p := newSuiteProcess(t, vendors, condenseDocument(double.URL())).start(t)
	pages := knowledgev1connect.NewKnowledgeServiceClient(p.client("console"))
	operator := rpc.As(t.Context(), &rpc.Principal{Kind: rpc.KindOperator, Id: "tests", DisplayName: "tests"})
	for i := range 20 {
		_, err := pages.WritePage(operator, &knowledgev1.WritePageRequest{
			Title: fmt.Sprintf("Page %02d", i), Body: "Nothing.", Container: "OPS", Labels: []string{strings.Repeat("x", 60)},
		})
		require.NoError(t, err)
	}

	ask(t, vendors, p.url, "q-0001")
	turn := p.awaitTurns(t, 1)[0]
	require.Equal(t, "delivered", turn.GetTurn().GetOutcome(), lastCall(turn))
	whole := turn.GetRounds()[0].GetCalls()[0].GetResult()
	require.Greater(t, len(whole), 1500)
	require.Contains(t, whole, "Page 19", "the journal has all of it")

	brief.mu.Lock()
	defer brief.mu.Unlock()
	label, rest, _ := strings.Cut(brief.shown["list_pages"], "\n")
	require.Contains(t, label, "[Condensed: 1 of 20 members of `pages` shown")
	require.Less(t, len(rest), len(whole)/4)
	var shown, all struct{ Pages []json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(rest), &shown))
	require.NoError(t, json.Unmarshal([]byte(whole), &all))
	require.Len(t, shown.Pages, 1)
	require.Contains(t, string(shown.Pages[0]), `"Page 07"`)
	require.Contains(t, all.Pages, shown.Pages[0], "a member is shown whole, as it was written")
	var read struct{ Text string }
	require.NoError(t, json.Unmarshal([]byte(brief.shown["read_tool_result"]), &read))
	require.Equal(t, whole, read.Text, "what was left out is read by the reference")

	require.Len(t, brief.asked, 1, "it is asked once for the turn, however many rounds follow")
	require.Empty(t, brief.asked[0].Tools)
	require.Contains(t, brief.asked[0].System, "q-0001", "it chooses for the task")
	p.stop(t)
}
