package mcphost_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

func TestHalfALineIsWaitedForAndTheWholeOneIsTheAnswer(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "s", "")
	w.apply(t, n, []*companyv1.McpServer{s})
	n.tools(t, "", "s")
	answered := make(chan string, 1)
	go func() {
		answer, err := n.call(t.Context(), "", "s", "partial", "{}")
		if err != nil {
			answered <- err.Error()
			return
		}
		answered <- answer.GetResultJson()
	}()
	require.Eventually(t, func() bool { return count(t, effects, "half") == 1 }, 30*time.Second, 5*time.Millisecond)
	_, err := n.call(t.Context(), "", "s", "release", "{}")
	require.NoError(t, err)
	require.Equal(t, `{"content":[{"type":"text","text":"whole"}]}`, <-answered)
}

func TestHalfALineThatIsNeverFinishedCostsItsOwnCall(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "s", "")
	w.apply(t, n, []*companyv1.McpServer{s})
	n.tools(t, "", "s")
	_, err := n.CallServerTool(t.Context(), &mcphostv1.CallServerToolRequest{Server: "s", Tool: "partial", Timeout: durationpb.New(300 * time.Millisecond)})
	refusal(t, err, fault.Unavailable, fault.OutcomeUnknown)
	_, err = n.call(t.Context(), "", "s", "release", "{}")
	require.NoError(t, err, "what comes too late is nobody's, and what comes after it is read")
	require.Equal(t, 1, count(t, effects, "start"))
}

func TestTheFirstOfTwoAnswersCounts(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "s", "")
	w.apply(t, n, []*companyv1.McpServer{s})
	n.tools(t, "", "s")
	for range 20 {
		answer, err := n.call(t.Context(), "", "s", "twice", "{}")
		require.NoError(t, err)
		require.Equal(t, "first", text(t, answer.GetResultJson()))
	}
	require.Equal(t, 1, count(t, effects, "start"))
}

func TestAnAnswerToAnIDOfAnotherTypeIsNobodys(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "s", "")
	w.apply(t, n, []*companyv1.McpServer{s})
	n.tools(t, "", "s")
	_, err := n.CallServerTool(t.Context(), &mcphostv1.CallServerToolRequest{Server: "s", Tool: "mislabelled", Timeout: durationpb.New(500 * time.Millisecond)})
	refusal(t, err, fault.Unavailable, fault.OutcomeUnknown)
	_, err = n.call(t.Context(), "", "s", "echo", "{}")
	require.NoError(t, err)
	require.Equal(t, 1, count(t, effects, "start"))
}

func TestAListThatIsNeverAnsweredFailsItsServerInTime(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	s, effects := hostile(t, "s", "mute_list")
	s.StartupTimeoutSeconds = 1
	w.apply(t, n, []*companyv1.McpServer{s})
	require.Eventually(t, func() bool {
		tools := n.tools(t, "", "s")
		return tools.GetState() == "failed" && strings.Contains(tools.GetReason(), "did not list its tools in time")
	}, 60*time.Second, 10*time.Millisecond)
	require.Positive(t, count(t, effects, "list"))
}

func TestSchemasArriveAsTheyAreAndNothingIsFetchedForThem(t *testing.T) {
	t.Parallel()
	var fetched atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fetched.Add(1) }))
	t.Cleanup(elsewhere.Close)
	w := setup(t)
	n := w.node(t, "n1")
	s, _ := hostile(t, "s", "shapes")
	s.Env["HOSTILE_REF"] = elsewhere.URL + "/schema.json"
	w.apply(t, n, []*companyv1.McpServer{s})
	tools := n.tools(t, "", "s").GetToolsJson()
	require.Contains(t, tools, `{"name":"any_of","inputSchema":{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}]}}`)
	require.Contains(t, tools, `{"name":"recursive","inputSchema":{"type":"object","properties":{"child":{"$ref":"#"}}}}`)
	require.Contains(t, tools, `{"name":"remote","inputSchema":{"type":"object","properties":{"x":{"$ref":"`+elsewhere.URL+`/schema.json"}}}}`)
	for _, tool := range []string{"any_of", "recursive", "remote"} {
		_, err := n.call(t.Context(), "", "s", tool, `{"child":{"child":{}}}`)
		require.NoError(t, err, "whether it can be used is the registry's to say")
	}
	require.Zero(t, fetched.Load())
}

func TestServersOfEveryRevisionServe(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	var servers []*companyv1.McpServer
	revisions := []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}
	for _, revision := range revisions {
		s, _ := hostile(t, "s-"+revision, "version="+revision)
		servers = append(servers, s)
	}
	w.apply(t, n, servers)
	for _, revision := range revisions {
		tools := n.tools(t, "", "s-"+revision)
		require.Equal(t, "ready", tools.GetState(), "%s: %s", revision, tools.GetReason())
		_, err := n.call(t.Context(), "", "s-"+revision, "echo", "{}")
		require.NoError(t, err, revision)
	}
	require.Eventually(t, func() bool {
		answer, err := n.ListServers(t.Context(), &mcphostv1.ListServersRequest{})
		require.NoError(t, err)
		for i, revision := range revisions {
			instances := answer.GetServers()[i].GetInstances()
			if len(instances) != 1 || instances[0].GetProtocolVersion() != revision {
				return false
			}
		}
		return true
	}, 30*time.Second, 10*time.Millisecond)
}

func TestTheEmptyTextIsACursorLikeAnother(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	plain, _ := hostile(t, "plain", "")
	s, effects := hostile(t, "s", "empty_cursor")
	w.apply(t, n, []*companyv1.McpServer{plain, s})
	require.Equal(t, n.tools(t, "", "plain").GetToolsJson(), n.tools(t, "", "s").GetToolsJson())
	require.Equal(t, 2, count(t, effects, "list"))
}

func TestFiveThousandToolsAreServedAndAListWithoutMeasureIsRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	n := w.node(t, "n1")
	crowd, _ := hostile(t, "crowd", "crowd")
	multitude, _ := hostile(t, "multitude", "multitude")
	w.apply(t, n, []*companyv1.McpServer{crowd, multitude})
	many := n.tools(t, "", "crowd")
	require.Equal(t, "ready", many.GetState(), many.GetReason())
	require.Len(t, many.GetToolsJson(), 5000)
	_, err := n.call(t.Context(), "", "crowd", "tool_4999", "{}")
	require.NoError(t, err)
	too := n.tools(t, "", "multitude")
	require.Equal(t, "failed", too.GetState())
	require.Contains(t, too.GetReason(), "it lists more than")
}
