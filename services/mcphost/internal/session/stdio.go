package session

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/child"
)

// stdio is the SDK's transport over a process.
type stdio struct {
	process *child.Process
	records *recorder
}

// Connect implements [mcp.Transport].
func (t *stdio) Connect(context.Context) (mcp.Connection, error) {
	c := &stdioConn{process: t.process, records: t.records, incoming: make(chan jsonrpc.Message), closed: make(chan struct{}), ended: make(chan struct{})}
	go c.read()
	return c, nil
}

type stdioConn struct {
	process  *child.Process
	records  *recorder
	incoming chan jsonrpc.Message
	ended    chan struct{} // the process says nothing more
	closed   chan struct{}
	once     sync.Once

	mu    sync.Mutex
	probe *probe
}

// probe is the first question, while it is open.
type probe struct {
	id    jsonrpc.ID
	timer *time.Timer
}

// read hands on what the process says, until it ends. It goes on after Close, so that the process can end.
func (c *stdioConn) read() {
	defer close(c.ended)
	for {
		line, err := c.process.Next()
		if err != nil {
			return
		}
		messages, err := decode(line)
		if err != nil {
			c.process.Noise(line)
			continue
		}
		for _, m := range messages {
			c.observe(m)
			c.deliver(m)
		}
	}
}

// decode reads a message, or a batch of them, which one revision of the protocol had.
func decode(line []byte) ([]jsonrpc.Message, error) {
	lines := []json.RawMessage{line}
	if line[0] == '[' {
		if err := json.Unmarshal(line, &lines); err != nil {
			return nil, err
		}
	}
	messages := make([]jsonrpc.Message, 0, len(lines))
	for _, l := range lines {
		m, err := jsonrpc.DecodeMessage(l)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

func (c *stdioConn) observe(m jsonrpc.Message) {
	r, ok := m.(*jsonrpc.Response)
	if !ok {
		return
	}
	c.mu.Lock()
	if c.probe != nil && c.probe.id == r.ID {
		c.probe.timer.Stop()
		c.probe = nil
	}
	c.mu.Unlock()
	var refusal *jsonrpc.Error
	if r.Error != nil && !errors.As(r.Error, &refusal) {
		refusal = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: r.Error.Error()}
	}
	c.records.response(r.ID, r.Result, refusal)
}

func (c *stdioConn) deliver(m jsonrpc.Message) {
	select {
	case c.incoming <- m:
	case <-c.closed:
	}
}

// Read implements [mcp.Connection].
func (c *stdioConn) Read(context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.incoming:
		return m, nil
	case <-c.ended:
		return nil, io.EOF
	case <-c.closed:
		return nil, io.EOF
	}
}

// Write implements [mcp.Connection].
func (c *stdioConn) Write(ctx context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	request, ok := m.(*jsonrpc.Request)
	if ok {
		c.records.request(ctx, request.ID)
		if request.Method == methodDiscover {
			c.watch(request.ID)
		}
	}
	err = c.process.Write(append(data, '\n'))
	if ok && errors.Is(err, child.ErrNotWritten) {
		c.records.unsent(request.ID)
	}
	return err
}

// watch answers the probe in the server's place when it says nothing: the SDK then goes on to the old handshake.
func (c *stdioConn) watch(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &probe{id: id}
	p.timer = time.AfterFunc(probeTime, func() {
		c.mu.Lock()
		open := c.probe == p
		c.probe = nil
		c.mu.Unlock()
		if open {
			c.deliver(&jsonrpc.Response{ID: id, Error: silence()})
		}
	})
	c.probe = p
}

const methodDiscover = "server/discover"

// silence stands for the answer that a server did not give to the probe.
func silence() *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no answer"}
}

// Close implements [mcp.Connection]. The process is its owner's to end.
func (c *stdioConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.probe != nil {
			c.probe.timer.Stop()
			c.probe = nil
		}
	})
	return nil
}

// SessionID implements [mcp.Connection]: a process is one session.
func (c *stdioConn) SessionID() string { return "" }
