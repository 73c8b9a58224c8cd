package fleet

import (
	"bytes"
	"strings"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

// A call that waits for its caller's input waits at one node, and of a shared server every node has an instance. So a state that is
// to be sent back bears the node that gave it out, in front of what the server wrote:
//
//	mcphost:<node>~<state>
const (
	requestState = "requestState"
	stampBegin   = "mcphost:"
	stampEnd     = "~"
)

// stamp marks the state in a result, if there is one, as this node's.
func (f *Fleet) stamp(result []byte) []byte {
	return restate(result, func(state string) string { return stampBegin + f.options.Node + stampEnd + state })
}

// unstamp gives the server back what it wrote.
func unstamp(params []byte) []byte {
	return restate(params, func(state string) string {
		_, written := cutStamp(state)
		return written
	})
}

// Keeper answers the node that gave out the state in a request's parameters; empty for none.
func Keeper(params string) string {
	node := ""
	restate([]byte(params), func(state string) string {
		node, _ = cutStamp(state)
		return state
	})
	return node
}

func cutStamp(state string) (node, written string) {
	rest, stamped := strings.CutPrefix(state, stampBegin)
	if !stamped {
		return "", state
	}
	node, written, ended := strings.Cut(rest, stampEnd)
	if !ended {
		return "", state
	}
	return node, written
}

// restate changes the state in an object. One without a state, or with one that is no text, comes back as it is.
func restate(object []byte, change func(state string) string) []byte {
	if !bytes.Contains(object, []byte(requestState)) {
		return object
	}
	members, err := wire.Object(object)
	if err != nil {
		return object
	}
	state, ok := wire.Text(wire.Get(members, requestState))
	if !ok {
		return object
	}
	changed := change(state)
	if changed == state {
		return object
	}
	return wire.Build(wire.Set(members, requestState, wire.Quote(changed)))
}
