package mcphost_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/hostiletest"
)

// hostileWeb serves the fixture at an address and declares it.
func hostileWeb(t *testing.T, name string, forgotten int) (*hostiletest.Web, *companyv1.McpServer) {
	t.Helper()
	web := hostiletest.NewWeb(forgotten)
	front := httptest.NewServer(web)
	t.Cleanup(front.Close)
	t.Cleanup(func() { close(web.Release) })
	return web, &companyv1.McpServer{Name: name, Transport: "http", Url: front.URL, Shared: true, StartupTimeoutSeconds: 20, RequestTimeoutSeconds: 20}
}

func TestASessionThatTheServerForgotIsOpenedAgainOnceForAll(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusBadRequest, http.StatusUnauthorized} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			web, s := hostileWeb(t, "web", status)
			w := setup(t)
			n := w.node(t, "n1")
			w.apply(t, n, []*companyv1.McpServer{s})
			require.Equal(t, "ready", n.tools(t, "", "web").GetState(), n.tools(t, "", "web").GetReason())
			_, err := n.call(t.Context(), "", "web", "effect", "{}")
			require.NoError(t, err)
			require.Equal(t, 1, web.Count("initialize"))
			web.Forget()
			const callers = 16
			failures := make(chan error, callers)
			for range callers {
				go func() {
					_, err := n.call(t.Context(), "", "web", "effect", "{}")
					failures <- err
				}()
			}
			for range callers {
				require.NoError(t, <-failures, "it was turned away before anybody looked at it, so it may be made again")
			}
			require.Equal(t, 2, web.Count("initialize"), "one more for all callers together")
			require.Equal(t, 1+callers, web.Count("effect"), "no call was made twice")
		})
	}
}

func TestAnAnswerThatIsCutOffIsUnknownAndNotAskedForAgain(t *testing.T) {
	t.Parallel()
	web, s := hostileWeb(t, "web", http.StatusNotFound)
	w := setup(t)
	n := w.node(t, "n1")
	w.apply(t, n, []*companyv1.McpServer{s})
	n.tools(t, "", "web")
	_, err := n.call(t.Context(), "", "web", "cut", "{}")
	refusal(t, err, fault.Unavailable, fault.OutcomeUnknown)
	require.Equal(t, 1, web.Count("effect"))
	answer, err := n.call(t.Context(), "", "web", "stream", `{"n":9007199254740993}`)
	require.NoError(t, err, "the session is as good as before")
	require.Contains(t, answer.GetResultJson(), `{"n":9007199254740993}`)
}

func TestBytesThatDripAreNoProgress(t *testing.T) {
	t.Parallel()
	_, s := hostileWeb(t, "web", http.StatusNotFound)
	s.RequestTimeoutSeconds = 1
	w := setup(t)
	n := w.node(t, "n1")
	w.apply(t, n, []*companyv1.McpServer{s})
	n.tools(t, "", "web")
	_, err := n.call(t.Context(), "", "web", "drip", "{}")
	require.Contains(t, refusal(t, err, fault.Unavailable, fault.OutcomeUnknown).Message, "said nothing")
}

func TestHeadersThatAreHeldBackAndBodiesThatDripEndWithTheCall(t *testing.T) {
	t.Parallel()
	web, s := hostileWeb(t, "web", http.StatusNotFound)
	w := setup(t)
	n := w.node(t, "n1")
	w.apply(t, n, []*companyv1.McpServer{s})
	n.tools(t, "", "web")
	for effects, tool := range []string{"hold", "drip"} {
		_, err := n.CallServerTool(t.Context(), &mcphostv1.CallServerToolRequest{Server: "web", Tool: tool, Timeout: durationpb.New(300 * time.Millisecond)})
		require.Contains(t, refusal(t, err, fault.Unavailable, fault.OutcomeUnknown).Message, "300ms", tool)
		require.Equal(t, effects+1, web.Count("effect"))
		require.Eventually(t, func() bool { return web.Count("left") == effects+1 }, 30*time.Second, 10*time.Millisecond, "%s: the stream is closed, which is the cancel of HTTP", tool)
		_, err = n.call(t.Context(), "", "web", "echo", "{}")
		require.NoError(t, err)
	}
	require.Equal(t, 1, web.Count("initialize"))
}
