package bus

import (
	"context"
	"net"
	"sync"
)

// sockets knows the open connections of one owner, so that closing does not
// have to wait for a request that is under way (a long poll, a group join).
type sockets struct {
	mu     sync.Mutex
	closed bool
	open   map[net.Conn]struct{}
}

func newSockets() *sockets { return &sockets{open: make(map[net.Conn]struct{})} }

func (s *sockets) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	s.open[conn] = struct{}{}
	return &socket{Conn: conn, owner: s}, nil
}

// closeAll cuts every connection and refuses new ones.
func (s *sockets) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for conn := range s.open {
		_ = conn.Close()
	}
	clear(s.open)
}

type socket struct {
	net.Conn
	owner *sockets
}

func (s *socket) Close() error {
	s.owner.mu.Lock()
	delete(s.owner.open, s.Conn)
	s.owner.mu.Unlock()
	return s.Conn.Close()
}
