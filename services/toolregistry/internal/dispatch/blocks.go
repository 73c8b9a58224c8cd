package dispatch

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// block is a piece of content of a `tools/call` result.
type block struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Data     string          `json:"data"`
	MimeType string          `json:"mimeType"`
	URI      string          `json:"uri"`
	Name     string          `json:"name"`
	Resource json.RawMessage `json:"resource"`
}

// resource is what an embedded block holds: a text, or bytes.
type resource struct {
	URI      string  `json:"uri"`
	MimeType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     string  `json:"blob"`
}

// Text answers what a model reads of a `tools/call` result: texts word for word, a line for everything that is not text, and
// the structured content where there is no text to say the same.
func Text(result string) string {
	var r struct {
		Content    []block         `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal([]byte(result), &r); err != nil {
		return result
	}
	var parts []string
	hasText := false
	for _, b := range r.Content {
		text, isText := b.read()
		parts = append(parts, text)
		hasText = hasText || isText
	}
	if !hasText && len(r.Structured) > 0 && string(r.Structured) != "null" {
		parts = append(parts, string(r.Structured))
	}
	return strings.Join(parts, "\n")
}

// read answers the block's text, or a line that describes it.
func (b block) read() (text string, isText bool) {
	switch b.Type {
	case "text":
		return b.Text, true
	case "image", "audio":
		return fmt.Sprintf("[%s: %s, %s]", b.Type, orUnknown(b.MimeType), size(b.Data)), false
	case "resource_link":
		return fmt.Sprintf("[link: %s%s]", b.URI, inParentheses(b.Name)), false
	case "resource":
		var r resource
		if err := json.Unmarshal(b.Resource, &r); err != nil {
			return "[resource that cannot be read]", false
		}
		if r.Text != nil {
			return *r.Text, true
		}
		return fmt.Sprintf("[resource: %s, %s, %s]", r.URI, orUnknown(r.MimeType), size(r.Blob)), false
	default:
		return fmt.Sprintf("[content of the unknown type %q]", b.Type), false
	}
}

func orUnknown(mime string) string {
	if mime == "" {
		return "of unknown type"
	}
	return mime
}

func inParentheses(name string) string {
	if name == "" {
		return ""
	}
	return " (" + name + ")"
}

// size answers how many bytes a base64 text stands for.
func size(encoded string) string {
	return fmt.Sprintf("%d bytes", base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(encoded, "="))))
}
