package model

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

// maxWireName is both vendors' limit.
const maxWireName = 64

var wireName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// names maps canonical tool names, which may hold dots and be long, to names that vendors take, and back.
type names struct{ canonical, wire map[string]string }

func namesOf(tools []Tool) names {
	n := names{canonical: make(map[string]string, len(tools)), wire: make(map[string]string, len(tools))}
	for _, tool := range tools {
		wire := tool.Wire
		if wire == "" {
			wire = toWire(tool.Name)
		}
		n.canonical[wire], n.wire[tool.Name] = tool.Name, wire
	}
	return n
}

// toWire answers the name of a tool, or of what a model took for one, that nobody gave a wire name. A name that vendors take stays
// as it is; another one is made of what is left of it and a digest of the whole, so it is the same in every turn.
func toWire(name string) string {
	if wireName.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	suffix := "_" + hex.EncodeToString(sum[:5])
	safe := []byte(name)
	for i, c := range safe {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
		if !letter {
			safe[i] = '_'
		}
	}
	return string(safe[:min(len(safe), maxWireName-len(suffix))]) + suffix
}

// toWire answers the name that a vendor knows a tool by.
func (n names) toWire(name string) string {
	if wire, given := n.wire[name]; given {
		return wire
	}
	return toWire(name)
}

// fromWire answers the canonical name; a name that was not offered is answered as it is, and found unknown later.
func (n names) fromWire(name string) string {
	if canonical, offered := n.canonical[name]; offered {
		return canonical
	}
	return name
}
