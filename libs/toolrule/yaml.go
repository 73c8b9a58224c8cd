package toolrule

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// MaxBytes is the largest block that [Parse] reads.
const MaxBytes = 256 << 10

// Bounds that no policy comes near.
const (
	maxLines, maxBlankLines = 10_000, 100
	maxLevels               = 16
	maxKeys                 = 30
	// maxMarks are the dashes and question marks that a line may begin blocks with.
	maxMarks = 32
)

// Parse reads the block `tool_policy` of a company document, with its key above it or without, and checks it. Everything wrong
// is answered; the policy is to be used only when nothing is.
func Parse(text string) (Policy, []Problem) {
	if len(text) > MaxBytes {
		return Policy{}, []Problem{{Message: fmt.Sprintf("the policy has %d bytes; at most %d are read", len(text), MaxBytes)}}
	}
	if err := plain(text); err != nil {
		return Policy{}, []Problem{{Message: err.Error()}}
	}
	var block struct {
		ToolPolicy Policy `yaml:"tool_policy"`
	}
	var target any = &block.ToolPolicy
	if strings.HasPrefix(firstLine(text), "tool_policy:") {
		target = &block
	}
	if err := yaml.UnmarshalWithOptions([]byte(text), target, yaml.Strict()); err != nil {
		return Policy{}, []Problem{{Message: said(err)}}
	}
	policy := block.ToolPolicy
	return policy, policy.Check()
}

// firstLine answers the first line that says something.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "#") && trimmed != "---" {
			return line
		}
	}
	return ""
}

// plain refuses what a parser could be kept busy with, whose time grows with the square of some texts: more lines, keys and levels
// than a policy can have, anchors that multiply, and tags.
func plain(text string) error {
	number, blank := 0, 0
	for line := range strings.Lines(text) {
		if number++; number > maxLines {
			return fmt.Errorf("line %d: at most %d lines are read", number, maxLines)
		}
		if strings.TrimSpace(line) != "" {
			blank = 0
		} else if blank++; blank > maxBlankLines {
			return fmt.Errorf("line %d: at most %d empty lines in a row are read", number, maxBlankLines)
		}
		if nested := strings.Count(line, "- ") + strings.Count(line, "? "); nested > maxMarks && len(strings.Trim(line, "-? \t\r\n")) < nested {
			return fmt.Errorf("line %d: values are nested more than %d deep", number, maxLevels)
		}
	}
	var blocks blocks
	flow := 0
	tokens := lexer.Tokenize(text)
	for i, t := range tokens {
		var deep bool
		switch t.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType:
			return fmt.Errorf("line %d: anchors, aliases and tags are not read here", t.Position.Line)
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType:
			deep = blocks.open(t.Position.Column, 0)
		case token.MappingValueType:
			if flow == 0 && i > 0 {
				deep = blocks.open(tokens[i-1].Position.Column, 1)
			}
		default:
		}
		if deep || flow > maxLevels {
			return fmt.Errorf("line %d: values are nested more than %d deep, or one has more than %d keys", t.Position.Line, maxLevels, maxKeys)
		}
	}
	return nil
}

// blocks are the columns at which the lists and mappings that a line is in begin, with the keys of each so far.
type blocks []struct{ column, keys int }

// open enters a block, or goes on with it, and reports whether that is more than a policy can have.
func (b *blocks) open(column, keys int) (deep bool) {
	for len(*b) > 0 && (*b)[len(*b)-1].column > column {
		*b = (*b)[:len(*b)-1]
	}
	if len(*b) == 0 || (*b)[len(*b)-1].column < column {
		*b = append(*b, struct{ column, keys int }{column: column})
	}
	top := &(*b)[len(*b)-1]
	if keys > 0 {
		top.keys++
	} else {
		top.keys = 0 // the next member of a list has keys of its own
	}
	return len(*b) > maxLevels || top.keys > maxKeys
}

func said(err error) string {
	if syntax, ok := errors.AsType[yaml.Error](err); ok && syntax.GetToken() != nil {
		return fmt.Sprintf("line %d: %s", syntax.GetToken().Position.Line, strings.TrimSuffix(syntax.GetMessage(), "."))
	}
	return "the policy is not YAML of the form `tool_policy`"
}
