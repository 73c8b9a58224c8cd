package hostiletest

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

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
	case "twice":
		s.text(m, "first")
		s.text(m, "second")
	case "mislabelled":
		quoted, err := json.Marshal(string(m.ID))
		if err != nil {
			panic(err)
		}
		s.text(message{ID: quoted}, "whose is this?")
	case "partial":
		s.partial(m)
	case "release":
		close(s.held)
		s.text(m, "done")
	case "pid":
		s.text(m, fmt.Sprint(os.Getpid()))
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
	s.mu.Lock()
	s.answered++
	enough := s.answered == 3
	s.mu.Unlock()
	if s.modes["crash_after_three"] && enough {
		os.Exit(7)
	}
}

// partial writes half of its answer, and the rest once it is told to; nothing else can be written between.
func (s *server) partial(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"te`, m.ID)
	_ = s.out.Flush()
	effect("half")
	<-s.held
	fmt.Fprintln(s.out, `xt","text":"whole"}]}}`)
	_ = s.out.Flush()
}
