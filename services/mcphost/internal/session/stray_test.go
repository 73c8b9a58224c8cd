package session

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/child"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

// late is a server that asks a question for its first call when that has been given up and another one is open. It tells the other
// call what became of the question, answers the first one after all, and asks in a third one.
const late = `
idOf() { printf '%s' "$1" | sed 's/.*"id":\([0-9]*\),.*/\1/'; }
question='{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who?"}}'
read -r m; echo '{"jsonrpc":"2.0","id":'"$(idOf "$m")"',"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"late","version":"1"}}}'
read -r initialized
read -r first
read -r cancelled
read -r second
echo "$question"
read -r answer
case "$answer" in *'"error"'*) fate=refused;; *) fate=answered;; esac
echo '{"jsonrpc":"2.0","id":'"$(idOf "$first")"',"result":{}}'
echo '{"jsonrpc":"2.0","id":'"$(idOf "$second")"',"result":{"content":[{"type":"text","text":"'$fate'"}]}}'
read -r third
echo "$question"
cat > /dev/null`

func TestALateQuestionOfACallThatWasGivenUpReachesNobodyElse(t *testing.T) {
	t.Parallel()
	launcher := child.NewLauncher()
	t.Cleanup(launcher.Close)
	o := options(t)
	o.Protocol = "legacy"
	o.Start = func() (*child.Process, error) {
		return child.Start(child.Options{
			Path: "sh", Args: []string{"-c", late}, Env: child.Environment(os.Getenv, nil), Log: slog.New(slog.DiscardHandler), Launcher: launcher,
		})
	}
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Call(ctx, "first", []byte(`{}`), time.Minute)
		ended <- err
	}()
	require.Eventually(t, func() bool {
		ids := underWay(s)
		return len(ids) == 1 && s.open(ids[0]).sent.Load()
	}, 30*time.Second, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)

	asked := Request{Method: "tools/call", Params: []byte(`{"name":"x","arguments":{}}`), Capabilities: []byte(`{"elicitation":{}}`)}
	reply, _ := send(t, s, asked)
	require.Equal(t, "refused", text(t, reply))
	reply, _ = send(t, s, asked)
	require.Contains(t, string(reply.Result), "input_required", "the server is done with the first call, so the question is the third one's")
}

func TestACallThatWasGivenUpCountsForAMinute(t *testing.T) {
	t.Parallel()
	given := strays{}
	now := time.Now()
	given.add(1, now)
	require.True(t, given.any(now.Add(strayTime-1)))
	require.False(t, given.any(now.Add(strayTime)))
	require.Empty(t, given)
}

func TestACancellationFollowsItsRequestOnAConnectionOfItsOwn(t *testing.T) {
	t.Parallel()
	arrived, givenUp, cancelled := make(chan struct{}), make(chan struct{}), make(chan struct{})
	order := make(chan string, 1)
	o := options(t)
	o.Protocol = "legacy"
	o.HTTP = &HTTP{URL: serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		switch m.Method {
		case methodInitialize:
			result(w, wire.Message{ID: m.ID}, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
		case methodCall:
			close(arrived)
			<-givenUp
			w.Header().Set("Content-Type", typeEvents)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-cancelled:
			case <-r.Context().Done():
			}
			select {
			case <-cancelled:
				order <- "cancelled while it was open"
			default:
				order <- "hung up"
			}
		case notificationCancelled:
			close(cancelled)
		default:
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}))}
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err = s.Call(ctx, "x", []byte(`{}`), time.Minute)
	require.ErrorIs(t, err, context.Canceled)
	close(givenUp)
	require.Equal(t, "cancelled while it was open", <-order)
}
