package slack

import (
	"encoding/json"
	"regexp"
	"slices"
)

// Mentions answers the users that a message calls, each once: in its text, as
// <@U…> or <@U…|name>, and in its blocks. Groups and broadcasts call nobody in
// person.
func Mentions(text string, blocks json.RawMessage) []string {
	var found []string
	add := func(id string) {
		if !slices.Contains(found, id) {
			found = append(found, id)
		}
	}
	for _, m := range regexp.MustCompile(`<@([UW][A-Z0-9]{1,31})(?:\|[^>]*)?>`).FindAllStringSubmatch(text, -1) {
		add(m[1])
	}
	if len(blocks) > 0 {
		var list []block
		if json.Unmarshal(blocks, &list) == nil {
			inBlocks(list, add)
		}
	}
	return found
}

// block is a block or an element of one; both nest.
type block struct {
	Type     string          `json:"type"`
	UserID   string          `json:"user_id"`
	Elements json.RawMessage `json:"elements"`
}

// inBlocks follows elements to their depth, which the JSON decoder bounds.
func inBlocks(blocks []block, add func(string)) {
	for _, b := range blocks {
		if b.Type == "user" && b.UserID != "" {
			add(b.UserID)
		}
		var inner []block
		if len(b.Elements) > 0 && json.Unmarshal(b.Elements, &inner) == nil {
			inBlocks(inner, add)
		}
	}
}
