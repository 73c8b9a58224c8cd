package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxTools and maxToolBytes bound what one server may bring: everything that lists tools carries it.
	maxTools, maxToolBytes = 1000, 4 << 20
	maxPages               = 1000
)

// ErrUnchanged says that the server's own word on how long its list may be kept still holds.
var ErrUnchanged = errors.New("the tools are those of before")

// Tool is a tool as the server wrote it in `tools/list`.
type Tool struct {
	Name string
	JSON json.RawMessage
}

// Tools lists the server's tools, all pages, in its order. A tool without a name, and the second of two with one name, are left
// out and logged: the others are not to blame.
func (s *Session) Tools(ctx context.Context) ([]Tool, error) {
	l := listing{session: s, names: map[string]bool{}}
	cursor, seen := "", map[string]bool{"": true}
	for range maxPages {
		next, err := l.page(ctx, cursor)
		if err != nil {
			return nil, err
		}
		if next == nil {
			return l.tools, nil
		}
		if seen[*next] {
			s.options.Log.Warn("server repeats a page of its tools; the list ends there", "tools", len(l.tools))
			return l.tools, nil
		}
		cursor = *next
		seen[cursor] = true
	}
	return nil, fmt.Errorf("its list of tools has more than %d pages", maxPages)
}

type listing struct {
	session *Session
	names   map[string]bool
	tools   []Tool
	bytes   int
}

func (l *listing) page(ctx context.Context, cursor string) (next *string, err error) {
	e := &exchange{}
	defer l.session.records.forget("", e)
	// The SDK's reading of the tools is stricter than it needs to be: one bad schema would cost all of them.
	_, err = l.session.client.ListTools(withExchange(ctx, e), &mcp.ListToolsParams{Cursor: cursor})
	result, refusal := e.answer()
	switch {
	case refusal != nil && refusal.Code == jsonrpc.CodeMethodNotFound:
		return nil, nil // it has no tools
	case refusal != nil:
		return nil, fmt.Errorf("it refused to list its tools: %s", refusal.Message)
	case result == nil && err != nil:
		return nil, fmt.Errorf("its tools could not be listed: %w", err)
	case result == nil:
		return nil, ErrUnchanged
	}
	var page struct {
		Tools      []json.RawMessage `json:"tools"`
		NextCursor *string           `json:"nextCursor"`
	}
	if err := json.Unmarshal(result, &page); err != nil {
		return nil, errors.New("its list of tools is no list of tools")
	}
	for _, raw := range page.Tools {
		if err := l.add(raw); err != nil {
			return nil, err
		}
	}
	return page.NextCursor, nil
}

func (l *listing) add(raw json.RawMessage) error {
	var tool struct {
		Name string `json:"name"`
	}
	log := l.session.options.Log
	if err := json.Unmarshal(raw, &tool); err != nil || tool.Name == "" {
		log.Warn("server lists a tool without a name; it is left out", "position", len(l.tools))
		return nil
	}
	if l.names[tool.Name] {
		log.Warn("server lists two tools of one name; the second is left out", "tool", tool.Name)
		return nil
	}
	l.names[tool.Name] = true
	l.tools = append(l.tools, Tool{Name: tool.Name, JSON: raw})
	l.bytes += len(raw)
	if len(l.tools) > maxTools || l.bytes > maxToolBytes {
		return fmt.Errorf("it lists more than %d tools or %d MiB of them", maxTools, maxToolBytes>>20)
	}
	return nil
}
