package story

import (
	"fmt"
	"io"
	"time"

	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
)

// Report is what came of the story.
type Report struct {
	// OK is true when every check held.
	OK      bool    `json:"ok"`
	Checks  []Check `json:"checks"`
	Timings Timings `json:"timings"`
	// Turns, ToolCalls, Items and Replies count what is there at the end.
	Turns     int `json:"turns"`
	ToolCalls int `json:"tool_calls"`
	Items     int `json:"items"`
	Replies   int `json:"replies"`

	// Journals are the turns, for a timeline.
	Journals []*turnv1.GetTurnResponse `json:"-"`
}

// Check is one thing that must hold.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// Timings are in milliseconds; each is the slowest of its kind.
type Timings struct {
	// AckMS is from sending a webhook to its acknowledgement.
	AckMS float64 `json:"ack_ms"`
	// AckToTurnMS is from a webhook being durable to the start of its turn.
	AckToTurnMS float64 `json:"ack_to_turn_ms"`
	// TurnMS is from the start of a turn to its end.
	TurnMS float64 `json:"turn_ms"`
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// check records one check, and says it to whoever watches.
func (p *player) check(name string, ok bool, detail string, args ...any) {
	c := Check{Name: name, OK: ok, Detail: fmt.Sprintf(detail, args...)}
	p.report.Checks = append(p.report.Checks, c)
	writeCheck(p.watch, c)
}

func writeCheck(w io.Writer, c Check) {
	mark := "ok  "
	if !c.OK {
		mark = "FAIL"
	}
	fmt.Fprintf(w, "  %s  %s: %s\n", mark, c.Name, c.Detail)
}
