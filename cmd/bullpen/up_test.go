package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/story"
	"github.com/bullpenhq/bullpen/doubles/modeldouble"
	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// TestUpOutlivesAKill breaks a turn off after its first round, and finds on the same data directory all that was there.
func TestUpOutlivesAKill(t *testing.T) {
	t.Parallel()
	vendors, held := startVendors(t), newHeldModel(t)
	s := newSuiteProcess(t, vendors, crowdDocument(program(t), held.server.URL()))

	first := s.start(t)
	ask(t, vendors, first.url, "q-0001")
	held.await(t) // the first round is journaled: the model is asked for the second
	require.NoError(t, first.command.Process.Kill())
	require.Error(t, first.command.Wait())
	held.drop()

	second := s.start(t)
	journal := second.awaitTurn(t, "q-0001")
	require.Equal(t, "delivered", journal.GetTurn().GetOutcome())
	require.Equal(t, int32(1), journal.GetTurn().GetResumes())
	require.Len(t, held.server.Bills(), len(journal.GetRounds()), "each round was paid for once")
	require.Len(t, repliesOf(vendors), 1)
	require.Equal(t, []string{"Look into q-0001"}, second.items(t))
	second.stop(t)

	third := s.start(t)
	again := third.awaitTurn(t, "q-0001")
	require.Equal(t, journal.GetTurn().GetTurnId(), again.GetTurn().GetTurnId())
	require.Equal(t, []string{"Look into q-0001"}, third.items(t))
	third.stop(t)
	require.Len(t, repliesOf(vendors), 1)
}

// TestUpDrains asks the suite to end in the middle of a turn: the turn still answers, and nothing new is taken in.
func TestUpDrains(t *testing.T) {
	t.Parallel()
	vendors, held := startVendors(t), newHeldModel(t)
	p := newSuiteProcess(t, vendors, crowdDocument(program(t), held.server.URL())).start(t)
	ask(t, vendors, p.url, "q-0001")
	held.await(t)
	require.NoError(t, p.command.Process.Signal(syscall.SIGTERM))
	until(t, "it says that it drains", func(ctx context.Context) bool { return p.status(ctx, "/readyz") == http.StatusServiceUnavailable })
	require.Equal(t, http.StatusOK, p.status(t.Context(), "/healthz"))
	held.release()
	require.NoError(t, p.command.Wait(), "exit code 0")
	require.Len(t, repliesOf(vendors), 1)
	require.NoFileExists(t, p.endpoint())
}

// heldModel is the crowd's model, which keeps the first second round of all waiting.
type heldModel struct {
	server   *modeldouble.Server
	reached  chan struct{}
	released chan struct{}
	dropped  chan struct{}
}

func newHeldModel(t *testing.T) *heldModel {
	t.Helper()
	h := &heldModel{reached: make(chan struct{}, 1), released: make(chan struct{}), dropped: make(chan struct{})}
	model, hold := &crowdModel{}, make(chan struct{}, 1)
	hold <- struct{}{}
	var err error
	h.server, err = modeldouble.Start(modeldouble.Options{Answer: func(r modeldouble.Request) (modeldouble.Answer, error) {
		if called(r, "create_work_item") {
			select {
			case <-hold:
				h.reached <- struct{}{}
				select {
				case <-h.released:
				case <-h.dropped:
					return modeldouble.Answer{}, errors.New("nobody waits for this answer")
				}
			default:
			}
		}
		return model.answer(r)
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.server.Close()) })
	return h
}

// await waits until an answer is kept waiting.
func (h *heldModel) await(t *testing.T) {
	t.Helper()
	select {
	case <-h.reached:
	case <-time.After(patience):
		require.Fail(t, "the model was never asked for a second round")
	}
}

// release lets the answer go; drop gives it up.
func (h *heldModel) release() { close(h.released) }
func (h *heldModel) drop()    { close(h.dropped) }

// suiteProcess is an installation that `bullpen up` runs on one data directory.
type suiteProcess struct {
	program, data string
	environment   []string
	document      string
}

func newSuiteProcess(t *testing.T, vendors *story.Vendors, document string) *suiteProcess {
	t.Helper()
	s := &suiteProcess{program: program(t), data: pgtest.Dir(t)}
	s.document = filepath.Join(t.TempDir(), "company.yaml")
	require.NoError(t, os.WriteFile(s.document, []byte(document), 0o600))
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "USER"} {
		s.environment = append(s.environment, name+"="+os.Getenv(name))
	}
	for name, value := range crowdEnvironment(vendors) {
		s.environment = append(s.environment, name+"="+value)
	}
	return s
}

// suiteRun is one run of it.
type suiteRun struct {
	command *exec.Cmd
	data    string
	url     string
	keys    *rpc.Keys
	record  *record
}

// start starts the suite and waits until other commands could find it.
func (s *suiteProcess) start(t *testing.T) *suiteRun {
	t.Helper()
	r := &suiteRun{data: s.data}
	r.command = exec.Command(s.program, "up", "--data", s.data, "--company", s.document, "--listen", "127.0.0.1:0", "--log-level", "warn",
		"--turn.lease-ttl", "1s")
	r.command.Env = s.environment
	r.command.Stderr = t.Output()
	_ = os.Remove(r.endpoint()) // of a run that was killed
	require.NoError(t, r.command.Start())
	t.Cleanup(func() {
		if r.command.ProcessState == nil {
			_ = r.command.Process.Kill()
			_ = r.command.Wait()
		}
	})
	var endpoint struct {
		URL string `json:"url"`
	}
	until(t, "it is ready", func(context.Context) bool {
		text, err := os.ReadFile(r.endpoint())
		return err == nil && json.Unmarshal(text, &endpoint) == nil
	})
	r.url = endpoint.URL
	text, err := os.ReadFile(filepath.Join(s.data, "keys", "principal"))
	require.NoError(t, err)
	r.keys, err = rpc.NewKeys(config.Secret(strings.TrimSpace(string(text))))
	require.NoError(t, err)
	r.record = newRecord(func(string) *connect.Client { return r.client("operator") })
	return r
}

// client answers a client that calls as a service.
func (r *suiteRun) client(service string) *connect.Client {
	return rpc.NewClient(rpc.HTTPTransport(r.url), rpc.ClientOptions{Service: service, Keys: r.keys})
}

func (r *suiteRun) endpoint() string { return filepath.Join(r.data, "endpoint.json") }

// stop asks it to end, which must go well.
func (r *suiteRun) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, r.command.Process.Signal(syscall.SIGTERM))
	require.NoError(t, r.command.Wait())
}

func (r *suiteRun) status(ctx context.Context, path string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+path, nil)
	if err != nil {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// awaitTurn waits until the turn about a question has ended.
func (r *suiteRun) awaitTurn(t *testing.T, name string) *turnv1.GetTurnResponse {
	t.Helper()
	var found *turnv1.GetTurnResponse
	until(t, "the turn about "+name+" has ended", func(ctx context.Context) bool {
		listed, err := r.record.list(ctx)
		if err != nil || len(listed) != 1 || listed[0].GetState() != "done" {
			return false
		}
		found, err = r.record.turns.GetTurn(ctx, &turnv1.GetTurnRequest{TurnId: listed[0].GetTurnId()})
		return err == nil
	})
	require.Equal(t, []string{name}, namesOf(found))
	return found
}

// items answers the titles of all work items.
func (r *suiteRun) items(t *testing.T) []string {
	t.Helper()
	var list struct {
		Items []struct{ Title string } `json:"items"`
	}
	r.record.call(t, "list_work_items", object{}, &list)
	var titles []string
	for _, item := range list.Items {
		titles = append(titles, item.Title)
	}
	return titles
}

// ask asks the first seat on GitHub.
func ask(t *testing.T, vendors *story.Vendors, webhooks, name string) {
	t.Helper()
	l := newLoad(webhooks, vendors, 0)
	require.True(t, l.send(t.Context(), l.onGitHub(question{name: name}, 1)), "%v", l.refused)
}

// repliesOf answers what the first seat has said on GitHub.
func repliesOf(vendors *story.Vendors) []string {
	var bodies []string
	for _, c := range vendors.GitHub.Comments() {
		if c.Login == crowdLogin(0) {
			bodies = append(bodies, c.Body)
		}
	}
	return bodies
}

// until waits for a condition.
func until(t *testing.T, what string, holds func(ctx context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds(ctx) {
		select {
		case <-ctx.Done():
			require.Fail(t, "it never came to pass that "+what)
		case <-ticker.C:
		}
	}
}
