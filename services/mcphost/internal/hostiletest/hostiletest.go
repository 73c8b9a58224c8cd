// Package hostiletest is an MCP server over standard streams that misbehaves as it is told. A test binary becomes it: call [Main]
// first thing in TestMain, and start the binary with [Variable] set.
package hostiletest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Variable holds how to misbehave: words separated by commas.
//
//	exit_on_discover     the process ends when it is asked for the newest protocol
//	wedge_on_discover    it never says anything again
//	silent_on_discover   it does not answer that, and goes on
//	modern               it answers that, and knows no handshake
//	banner               it prints lines that are no messages
//	noise                it prints them without end
//	stderr_flood         it writes 8 MiB to standard error before its first answer
//	ignore_eof           it lives on when its input ends
//	ignore_term          it does not end on TERM
//	grandchild           it leaves a child behind that holds its pipes
//	fail                 it complains and exits
//	duplicates           two of its tools have one name
//	null_schema          a tool has no schema
//	repeated_cursor      its list of tools never ends
//	pages                its list comes in pages of two
//	crowd                it has more than a thousand tools
const Variable = "HOSTILE"

// Effects is the variable that names a file to which each start and each effect appends a line.
const Effects = "HOSTILE_EFFECTS"

// Main serves and exits when [Variable] is set, and returns otherwise.
func Main() {
	modes, ok := os.LookupEnv(Variable)
	if !ok {
		return
	}
	s := &server{modes: map[string]bool{}, out: bufio.NewWriter(os.Stdout), cancelled: map[string]bool{}}
	for mode := range strings.SplitSeq(modes, ",") {
		s.modes[mode] = true
	}
	s.begin()
	s.serve()
	if s.modes["ignore_eof"] {
		select {}
	}
	os.Exit(0)
}

type server struct {
	modes map[string]bool

	mu        sync.Mutex
	out       *bufio.Writer
	extra     int // tools added since the start
	cancelled map[string]bool
}

func (s *server) begin() {
	effect("start")
	if s.modes["ignore_term"] {
		signal.Ignore(syscall.SIGTERM)
	}
	if s.modes["banner"] {
		fmt.Println("Welcome to the hostile server!\n\n  * listening\n\x1b[32mok\x1b[0m")
	}
	if s.modes["stderr_flood"] {
		line := strings.Repeat("x", 1023)
		for range 8 << 10 {
			fmt.Fprintln(os.Stderr, line)
		}
	}
	if s.modes["grandchild"] {
		cmd := exec.Command("sleep", "600")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		effect(fmt.Sprintf("grandchild %d", cmd.Process.Pid))
	}
	if s.modes["fail"] {
		fmt.Fprintf(os.Stderr, "starting\nError: the token %s is not valid\n    at connect (main.js:1:1)\n", os.Getenv("TOKEN"))
		os.Exit(3)
	}
	if s.modes["noise"] {
		for {
			fmt.Println("chatter")
		}
	}
}

func effect(line string) {
	name := os.Getenv(Effects)
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintln(f, line)
}

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
		s.answer(m, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"hostile","version":"1"}}`)
	case "notifications/initialized":
	case "notifications/cancelled":
		s.mu.Lock()
		s.cancelled["any"] = true
		s.mu.Unlock()
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

func (s *server) list(m message) {
	effect("list")
	var params struct {
		Cursor string `json:"cursor"`
	}
	_ = json.Unmarshal(m.Params, &params)
	tools := []string{
		tool("echo"), tool("env"), tool("big"), tool("hang"), tool("progress"), tool("crash"), tool("crash_after_effect"), tool("effect"),
		tool("storm"), tool("change"),
		`{"name":"rich","inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}},"annotations":{"readOnlyHint":true},"icons":[{"src":"x"}],"_meta":{"k":9007199254740993},"unknown":1.50}`,
	}
	if s.modes["duplicates"] {
		tools = append(tools, tool("echo"))
	}
	if s.modes["null_schema"] {
		tools = append(tools, `{"name":"shapeless","inputSchema":null}`, `null`, `{"description":"nameless"}`)
	}
	if s.modes["crowd"] {
		for n := range 1000 {
			tools = append(tools, tool(fmt.Sprintf("tool_%d", n)))
		}
	}
	s.mu.Lock()
	extra := s.extra
	s.mu.Unlock()
	if extra > 0 {
		tools = append(tools, tool("extra"))
	}
	switch {
	case s.modes["repeated_cursor"]:
		s.answer(m, fmt.Sprintf(`{"tools":[%s],"nextCursor":"again"}`, strings.Join(tools, ",")))
	case s.modes["pages"]:
		at := 0
		if params.Cursor != "" {
			if _, err := fmt.Sscan(params.Cursor, &at); err != nil {
				panic(err)
			}
		}
		if end := at + 2; end < len(tools) {
			s.answer(m, fmt.Sprintf(`{"tools":[%s],"nextCursor":"%d"}`, strings.Join(tools[at:end], ","), end))
			return
		}
		s.answer(m, fmt.Sprintf(`{"tools":[%s]}`, strings.Join(tools[at:], ",")))
	default:
		s.answer(m, fmt.Sprintf(`{"resultType":"complete","tools":[%s]}`, strings.Join(tools, ",")))
	}
}

func tool(name string) string {
	return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name)
}

func (s *server) call(m message) {
	var params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(m.Params, &params); err != nil {
		s.refuse(m, -32602, err.Error())
		return
	}
	switch params.Name {
	case "env":
		s.text(m, strings.Join(os.Environ(), "\n"))
	case "big":
		s.text(m, strings.Repeat("b", 32<<20))
	case "hang":
		effect("hang")
	case "progress":
		tick := time.NewTicker(20 * time.Millisecond)
		for n := 0; ; n++ {
			<-tick.C
			s.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, params.Meta.ProgressToken, n))
		}
	case "storm", "change":
		s.mu.Lock()
		if params.Name == "change" {
			s.extra++
		}
		s.mu.Unlock()
		for range 100 {
			s.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
		s.text(m, "done")
	case "crash":
		os.Exit(7)
	case "crash_after_effect":
		effect("effect")
		os.Exit(7)
	case "effect":
		effect("effect")
		s.text(m, "done")
	case "rich":
		s.answer(m, `{"content":[{"type":"text","text":"x","annotations":{"priority":0.10}}],"structuredContent":{"n":9007199254740993,"f":1.50},"_meta":{"k":12345678901234567890},"unknown":[1e400]}`)
	default:
		s.answer(m, fmt.Sprintf(`{"content":[],"structuredContent":%s}`, params.Arguments))
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
