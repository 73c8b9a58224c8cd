package hostiletest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

func (s *server) serve() {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		s.take(m)
	}
}

func (s *server) take(m message) {
	switch m.Method {
	case "server/discover":
		s.discover(m)
	case "initialize":
		if s.modes["modern"] {
			s.refuse(m, -32601, "no handshake here")
			return
		}
		s.answer(m, `{"protocolVersion":"`+s.revision+`","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"hostile","version":"1"}}`)
	case "notifications/initialized":
	case "notifications/cancelled":
		effect("cancelled")
	case "tools/list":
		s.list(m)
	case "tools/call":
		go s.call(m)
	case "subscriptions/listen":
	default:
		if len(m.ID) > 0 {
			s.refuse(m, -32601, "unknown method")
		}
	}
}

func (s *server) discover(m message) {
	switch {
	case s.modes["exit_on_discover"]:
		os.Exit(1)
	case s.modes["wedge_on_discover"]:
		select {}
	case s.modes["silent_on_discover"]:
	case s.modes["modern"]:
		s.answer(m, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private"}`)
	default:
		s.refuse(m, -32601, "unknown method")
	}
}

func (s *server) text(m message, text string) {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	s.answer(m, fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, data))
}

func (s *server) answer(m message, result string) {
	s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
}

func (s *server) refuse(m message, code int, text string) {
	s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, text))
}

func (s *server) write(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.out, line)
	if err := s.out.Flush(); err != nil {
		os.Exit(0) // nobody listens any more
	}
}
