// Package upstream is the MCP server that calls are measured against: as small as the official SDK allows, so that what a
// benchmark times is the way to it. It speaks over its standard streams or over Streamable HTTP, in a process of its own either
// way, and answers with as many bytes as it is asked for.
package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tool is the tool that calls are made of: [Arguments] say what it answers.
const Tool = "payload"

// Arguments answers those of one call. No two calls with different serials are alike, and neither are their results, so no cache
// can answer for the server.
func Arguments(serial, bytes int) string {
	return fmt.Sprintf(`{"serial":%d,"bytes":%d}`, serial, bytes)
}

// New makes a server with [Tool] and so many others, which only fill its list.
func New(others int) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "upstream", Version: "1"}, &mcp.ServerOptions{PageSize: 1000})
	server.AddTool(&mcp.Tool{
		Name: Tool, Description: "Answers a text of so many bytes.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
		InputSchema: json.RawMessage(`{"type":"object","properties":{"serial":{"type":"integer"},"bytes":{"type":"integer"}},"required":["serial","bytes"]}`),
	}, answer)
	for n := range others {
		server.AddTool(other(n), answer)
	}
	return server
}

// other is a tool of the size that published servers give theirs.
func other(n int) *mcp.Tool {
	return &mcp.Tool{
		Name:        "search_things_" + strconv.Itoa(n),
		Description: "Searches the things of a project and answers those that fit, newest first, a page at a time. Use it before you change one.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{
			"project":{"type":"string","description":"The project's key, such as OPS."},
			"query":{"type":"string","description":"Words that must all occur in the title or the text."},
			"labels":{"type":"array","items":{"type":"string"},"description":"Only things with all of these labels."},
			"limit":{"type":"integer","minimum":1,"maximum":100,"description":"How many to answer."}},"required":["project"]}`),
	}
}

func answer(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var want struct{ Serial, Bytes int }
	if err := json.Unmarshal(r.Params.Arguments, &want); err != nil {
		return nil, err
	}
	const line = "A line of a result that somebody asked for. "
	text := strconv.Itoa(want.Serial) + " "
	if missing := want.Bytes - len(text); missing > 0 {
		text += strings.Repeat(line, missing/len(line)+1)[:missing]
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
}

// Run serves on the standard streams until the client closes them or ctx ends.
func Run(ctx context.Context, others int) error {
	return New(others).Run(ctx, &mcp.StdioTransport{})
}

// Serve serves on a free loopback port, whose address is the one line that it writes to out, until in ends or ctx does.
func Serve(ctx context.Context, others int, in io.Reader, out io.Writer) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := New(others)
	// Without sessions, so that it speaks the newest revision.
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	h := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	context.AfterFunc(ctx, func() { _ = h.Close() })
	if _, err := fmt.Fprintf(out, "http://%s\n", listener.Addr()); err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := h.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
