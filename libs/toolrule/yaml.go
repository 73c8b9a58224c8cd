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

// maxFlow bounds brackets in brackets; a policy needs two.
const maxFlow = 16

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

// plain refuses what a parser could be kept busy with: anchors that multiply, tags, and brackets without end.
func plain(text string) error {
	flow := 0
	for _, t := range lexer.Tokenize(text) {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType:
			return fmt.Errorf("line %d: anchors, aliases and tags are not read here", t.Position.Line)
		case token.SequenceStartType, token.MappingStartType:
			if flow++; flow > maxFlow {
				return fmt.Errorf("line %d: values are nested more than %d deep", t.Position.Line, maxFlow)
			}
		case token.SequenceEndType, token.MappingEndType:
			flow--
		default:
		}
	}
	return nil
}

func said(err error) string {
	if syntax, ok := errors.AsType[yaml.Error](err); ok && syntax.GetToken() != nil {
		return fmt.Sprintf("line %d: %s", syntax.GetToken().Position.Line, strings.TrimSuffix(syntax.GetMessage(), "."))
	}
	return "the policy is not YAML of the form `tool_policy`"
}
