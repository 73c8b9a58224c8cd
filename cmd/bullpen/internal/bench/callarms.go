package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"connectrpc.com/connect/v2"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/bench/upstream"
	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1/mcphostv1connect"
	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// UpstreamCommand is the hidden command with which this program becomes the MCP server that calls are measured against.
const UpstreamCommand = "bench-upstream"

// arm is one way to an upstream. call makes one call and fails when it was not answered as it should be.
type arm struct {
	name string
	call func(ctx context.Context, serial, bytes int) error
}

// direct is the first arm of all: that which the others are compared with.
const direct = "direct"

// transports are the ways in which an upstream is spoken to; each is a server of the company.
func transports() []string { return []string{"stdio", "http"} }

// web is an upstream at an address, in a process of its own.
type web struct {
	command *exec.Cmd
	url     string
	hangUp  func() error
}

func serveWeb(ctx context.Context, executable string) (*web, error) {
	w := &web{command: exec.CommandContext(ctx, executable, UpstreamCommand, "--http")}
	w.command.Stderr = os.Stderr
	in, err := w.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	w.hangUp = in.Close
	out, err := w.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.command.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the upstream did not say its address: %w", err), w.close())
	}
	w.url = strings.TrimSpace(line)
	return w, nil
}

func (w *web) close() error { return errors.Join(w.hangUp(), w.command.Wait()) }

// connect opens a conversation with an upstream as the SDK does it without us.
func connectDirectly(ctx context.Context, executable, transport, url string) (*mcp.ClientSession, error) {
	var t mcp.Transport = &mcp.CommandTransport{Command: exec.Command(executable, UpstreamCommand)}
	if transport == "http" {
		t = &mcp.StreamableClientTransport{Endpoint: url}
	}
	return mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, t, nil)
}

// sessionArm is the SDK's client.
func sessionArm(name string, session *mcp.ClientSession, tool string) arm {
	return arm{name, func(ctx context.Context, serial, bytes int) error {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(upstream.Arguments(serial, bytes))})
		if err != nil {
			return err
		}
		if len(result.Content) == 0 {
			return errors.New("the answer is empty")
		}
		text, ok := result.Content[0].(*mcp.TextContent)
		if !ok {
			return errors.New("the answer is no text")
		}
		return right(text.Text, serial, bytes)
	}}
}

// hostArm calls mcphost alone.
func hostArm(r *resident, server string) arm {
	host := mcphostv1connect.NewMcpHostServiceClient(r.client("toolregistry"))
	return arm{"host", func(ctx context.Context, serial, bytes int) error {
		answer, err := host.CallServerTool(ctx, &mcphostv1.CallServerToolRequest{
			Server: server, Tool: upstream.Tool, Seat: seat, ArgumentsJson: upstream.Arguments(serial, bytes),
		})
		if err != nil {
			return err
		}
		return holds(answer.GetResultJson(), serial, bytes)
	}}
}

// registryArm calls through the one door, as a turn does; turn calls the registry as the turn service.
func registryArm(turn *connect.Client, server string) arm {
	registry := toolregistryv1connect.NewToolRegistryServiceClient(turn)
	return arm{"host + registry", func(ctx context.Context, serial, bytes int) error {
		answer, err := registry.CallTool(inTurn(ctx, seat), &toolregistryv1.CallToolRequest{
			Tool: server + "_" + upstream.Tool, ArgumentsJson: upstream.Arguments(serial, bytes),
		})
		if err != nil {
			return err
		}
		return right(answer.GetText(), serial, bytes)
	}}
}

// operatorArm calls as an assistant of an operator does: over HTTP, with a token, at the suite's own MCP server.
func operatorArm(ctx context.Context, r *resident, server string) (a arm, hangUp func() error, err error) {
	company := companyv1connect.NewCompanyServiceClient(r.client("bench"))
	made, err := company.CreateToken(rpc.As(ctx, &rpc.Principal{Kind: rpc.KindOperator, Id: "bench", DisplayName: "bench"}), &companyv1.CreateTokenRequest{Name: "bench", Days: 1})
	if err != nil {
		return arm{}, nil, err
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: r.suite.URL() + "/operator/mcp", HTTPClient: &http.Client{Transport: bearer(made.GetToken())},
	}, nil)
	if err != nil {
		return arm{}, nil, fmt.Errorf("/operator/mcp: %w", err)
	}
	a = sessionArm("/operator/mcp", session, server+"_"+upstream.Tool)
	return a, session.Close, nil
}

// bearer is a token that goes with every request.
type bearer string

// RoundTrip implements [http.RoundTripper].
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// inTurn makes a call one of a seat's turn.
func inTurn(ctx context.Context, handle string) context.Context {
	return rpc.As(ctx, &rpc.Principal{Kind: rpc.KindSeat, Id: handle, Seat: handle, Turn: &toolv1.TurnClaims{TurnId: "bench", WorkKey: "bench"}})
}

// right proves that a text is the one that was asked for.
func right(text string, serial, bytes int) error {
	if len(text) != bytes || !strings.HasPrefix(text, fmt.Sprintf("%d ", serial)) {
		return fmt.Errorf("call %d was answered with %d bytes that are not its own", serial, len(text))
	}
	return nil
}

// holds proves that a result carries the text that was asked for.
func holds(result string, serial, bytes int) error {
	if len(result) < bytes || !strings.Contains(result[:min(len(result), 200)], fmt.Sprintf(`"%d `, serial)) {
		return fmt.Errorf("call %d was answered with %d bytes that are not its own", serial, len(result))
	}
	return nil
}
