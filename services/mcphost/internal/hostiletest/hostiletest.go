// Package hostiletest is an MCP server that misbehaves as it is told, over standard streams and over HTTP.
//
// Over standard streams it is a process: a test binary becomes it. Call [Main] first thing in TestMain, and start the binary with
// [Variable] set. Over HTTP it is a [Web], which a test serves.
package hostiletest

import (
	"bufio"
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
//	crowd                it has five thousand tools
//	multitude            it has twenty thousand
//	empty_cursor         its list comes in two pages, and the cursor of the second is the empty text
//	mute_list            it never answers what its tools are
//	shapes               its tools have schemas that a strict reader refuses, and one that leads to an address (HOSTILE_REF)
//	crash_after_three    it ends after it has answered three calls
//	wrapper              it is only the launcher of the real server, which lives on when the launcher dies
//	slow_start           it says nothing for two seconds
//	version=<revision>   it speaks an older revision of the protocol
const Variable = "HOSTILE"

// Effects is the variable that names a file to which each start and each effect appends a line.
const Effects = "HOSTILE_EFFECTS"

// Main serves and exits when [Variable] is set, and returns otherwise.
func Main() {
	modes, ok := os.LookupEnv(Variable)
	if !ok {
		return
	}
	s := &server{revision: "2025-06-18", held: make(chan struct{}), modes: map[string]bool{}, out: bufio.NewWriter(os.Stdout)}
	for mode := range strings.SplitSeq(modes, ",") {
		s.modes[mode] = true
		if revision, ok := strings.CutPrefix(mode, "version="); ok {
			s.revision = revision
		}
	}
	s.begin()
	s.serve()
	if s.modes["ignore_eof"] {
		select {}
	}
	os.Exit(0)
}

type server struct {
	modes    map[string]bool
	revision string
	held     chan struct{} // closed when the rest of a half answer may follow

	mu       sync.Mutex
	out      *bufio.Writer
	extra    int // tools added since the start
	answered int // calls
}

func (s *server) begin() {
	if s.modes["wrapper"] {
		s.wrap()
	}
	effect("start")
	if s.modes["slow_start"] {
		<-time.After(2 * time.Second)
	}
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

// wrap runs the real server as a child with the same streams, as npx and uvx do, and never passes anything on to it.
func (s *server) wrap() {
	delete(s.modes, "wrapper")
	var modes []string
	for mode := range s.modes {
		modes = append(modes, mode)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), Variable+"="+strings.Join(modes, ","))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	effect(fmt.Sprintf("grandchild %d", cmd.Process.Pid))
	_ = cmd.Wait()
	os.Exit(0)
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
