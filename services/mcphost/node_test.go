package mcphost_test

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1/mcphostv1connect"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// nodeVariable makes the test binary the program mcphost.
const nodeVariable = "MCPHOST_TEST_NODE"

// served is the company of the tests behind an address.
type served struct {
	companyv1connect.UnimplementedCompanyServiceHandler

	company *company
}

func (s served) GetCompany(ctx context.Context, r *companyv1.GetCompanyRequest) (*companyv1.GetCompanyResponse, error) {
	return s.company.GetCompany(ctx, r)
}

func (s served) ResolveSecrets(ctx context.Context, r *companyv1.ResolveSecretsRequest) (*companyv1.ResolveSecretsResponse, error) {
	return s.company.ResolveSecrets(ctx, r)
}

// installation is what several processes of mcphost share.
type installation struct {
	company     *company
	keys        *rpc.Keys
	environment []string
}

func deploy(t *testing.T) *installation {
	t.Helper()
	broker, err := embedded.Start(t.Context(), embedded.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	secret := strings.Repeat("k", rpc.MinKeyBytes)
	keys, err := rpc.NewKeys(config.Secret(secret))
	require.NoError(t, err)
	in := &installation{company: &company{secrets: map[string]string{}}, keys: keys}
	server := rpc.NewServer(rpc.ServerOptions{Service: "company", Log: slog.New(slog.DiscardHandler), Keys: keys})
	companyv1connect.RegisterCompanyServiceHandler(server, served{company: in.company})
	mux := http.NewServeMux()
	rpc.Mount(mux, server)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	in.environment = []string{
		nodeVariable + "=1", "BULLPEN_LISTEN=127.0.0.1:0", "BULLPEN_LOG_FORMAT=json", "BULLPEN_DATABASE_URL=" + pgtest.DSN(t),
		"BULLPEN_KAFKA_BROKERS=" + strings.Join(broker.Brokers(), ","), "BULLPEN_PRINCIPAL_KEYS=" + secret, "BULLPEN_PEER_COMPANY_URL=" + web.URL,
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
	}
	return in
}

// process is mcphost as a process of its own.
type process struct {
	mcphostv1connect.McpHostServiceClient
	cmd *exec.Cmd
	// gone answers how it ended, to everybody who asks.
	gone chan struct{}
}

// start starts a process and waits until it is ready.
func (in *installation) start(t *testing.T) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &process{cmd: exec.Command(self), gone: make(chan struct{})}
	p.cmd.Env = in.environment
	log, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	ready := make(chan string, 1)
	go func() {
		var said []string
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			said = append(said, lines.Text())
			var record struct{ Msg, URL string }
			if json.Unmarshal(lines.Bytes(), &record) == nil && record.Msg == "process ready" {
				ready <- record.URL
			}
		}
		_ = p.cmd.Wait()
		close(p.gone)
		if t.Failed() {
			t.Logf("a node said:\n%s", strings.Join(said, "\n"))
		}
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.gone
	})
	select {
	case url := <-ready:
		transport := rpc.HTTPTransport(url)
		t.Cleanup(transport.Close)
		p.McpHostServiceClient = mcphostv1connect.NewMcpHostServiceClient(
			rpc.NewClient(transport, rpc.ClientOptions{Service: "toolregistry", Keys: in.keys, Timeout: 2 * time.Minute}))
	case <-p.gone:
		t.Fatal("the node ended before it was ready")
	}
	return p
}

func (p *process) call(ctx context.Context, seat, tool string) error {
	_, err := p.CallServerTool(ctx, &mcphostv1.CallServerToolRequest{Server: "s0", Tool: tool, Seat: seat})
	return err
}

func effectsOf(t *testing.T, file, tool string) int {
	t.Helper()
	data, _ := os.ReadFile(file) // there is none at first
	n := 0
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, tool+" ") {
			n++
		}
	}
	return n
}

func TestANodeThatIsKilledLosesItsChildrenAndItsSeatsMove(t *testing.T) {
	t.Parallel()
	in, program := deploy(t), tiny(t)
	effects := filepath.Join(filepath.Dir(program), "effects")
	servers := templates(program, 1)
	servers[0].Env = map[string]string{"TINY_EFFECTS": effects}
	in.company.put(servers, seated(3, servers)...)
	a, b := in.start(t), in.start(t)
	for _, seat := range []string{"seat0", "seat1"} {
		require.NoError(t, b.call(t.Context(), seat, "echo"))
	}
	require.NoError(t, a.call(t.Context(), "seat2", "echo"))
	require.NoError(t, a.call(t.Context(), "seat0", "echo"), "handed on to the node that holds the seat")
	require.Len(t, processesOf(t, program), 3)

	read, write := make(chan error, 1), make(chan error, 1)
	go func() { read <- a.call(t.Context(), "seat0", "read") }()
	go func() { write <- a.call(t.Context(), "seat1", "write") }()
	require.Eventually(t, func() bool { return effectsOf(t, effects, "read") == 1 && effectsOf(t, effects, "write") == 1 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, b.cmd.Process.Signal(syscall.SIGKILL))
	<-b.gone
	killed := time.Now()

	require.NoError(t, <-read, "a call that only reads is made again at the other node")
	refusal(t, <-write, fault.Unavailable, fault.OutcomeUnknown)
	require.NoError(t, a.call(t.Context(), "seat0", "echo"))
	require.NoError(t, a.call(t.Context(), "seat1", "echo"))
	t.Logf("both seats were served again %s after the kill", time.Since(killed).Round(time.Millisecond))
	require.Equal(t, 2, effectsOf(t, effects, "read"))
	require.Equal(t, 1, effectsOf(t, effects, "write"), "what may have happened is not done again")
	require.Len(t, processesOf(t, program), 3, "the children of the dead node died with it")
	answer, err := a.ListServers(t.Context(), &mcphostv1.ListServersRequest{})
	require.NoError(t, err)
	nodes := map[string]bool{}
	for _, i := range answer.GetServers()[0].GetInstances() {
		nodes[i.GetNode()] = true
	}
	require.Len(t, nodes, 1, "the dead report nothing")

	require.NoError(t, a.cmd.Process.Signal(syscall.SIGTERM))
	<-a.gone
	require.Equal(t, 0, a.cmd.ProcessState.ExitCode())
	require.Empty(t, processesOf(t, program))
}

func TestANodeThatEndsHandsItsSeatsOver(t *testing.T) {
	t.Parallel()
	in, program := deploy(t), tiny(t)
	servers := templates(program, 1)
	in.company.put(servers, seated(4, servers)...)
	a, b := in.start(t), in.start(t)
	for _, seat := range in.company.current.GetSeats() {
		require.NoError(t, b.call(t.Context(), seat.GetHandle(), "echo"))
	}
	// Every seat is called over and over while its node ends.
	stop, failures := make(chan struct{}), make(chan error, 4)
	for _, seat := range in.company.current.GetSeats() {
		go func() {
			for {
				if err := a.call(t.Context(), seat.GetHandle(), "echo"); err != nil {
					failures <- err
					return
				}
				select {
				case <-stop:
					failures <- nil
					return
				default:
				}
			}
		}()
	}
	require.NoError(t, b.cmd.Process.Signal(syscall.SIGTERM))
	<-b.gone
	require.Equal(t, 0, b.cmd.ProcessState.ExitCode())
	close(stop)
	for range cap(failures) {
		require.NoError(t, <-failures, "nobody notices")
	}
	require.Len(t, processesOf(t, program), 4)
}
