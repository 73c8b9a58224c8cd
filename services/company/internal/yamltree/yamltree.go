// Package yamltree reads one YAML document into a small tree in which every value knows its line and column.
//
// It stands between a stranger's file and a parser that was written for friends: size, depth, and the number of lines,
// keys and values are bounded before and while the tree is built, so that no file of 4 MiB, however it was made, costs more
// than seconds or brings the process down. Of YAML it takes what a configuration needs: mappings with plain keys,
// lists, scalars, comments, anchors and aliases. Tags, merge keys, complex keys and a second document are refused.
//
// It does not know what the document is about. Keys that occur twice are kept, in order, for the reader to complain of,
// because the reader knows the path.
package yamltree

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
)

// Kind is what a value is.
type Kind int

// The kinds. A value that is left out, as in `key:`, is [Null].
const (
	Null Kind = iota
	Bool
	Int
	Float
	String
	List
	Map
)

// String answers the kind as a sentence says it.
func (k Kind) String() string {
	return [...]string{"nothing", "true or false", "a whole number", "a number", "text", "a list", "a mapping"}[k]
}

// Node is a value. Exactly the fields of its kind are set.
type Node struct {
	Kind Kind
	// Text is a scalar as it was written, quotes and escapes undone.
	Text string
	// Int is an [Int]'s value; what does not fit is the nearest number that does.
	Int int64
	// True is a [Bool]'s value.
	True bool
	// Items are a [List]'s.
	Items []*Node
	// Entries are a [Map]'s, in order, repeated keys included.
	Entries []Entry
	// Line and Column are where it begins, from 1. A value that came through an alias stands where the alias stands.
	Line, Column int
}

// Entry is a key and its value.
type Entry struct {
	Key          string
	Line, Column int
	Value        *Node
}

// Flaw is why a text is not one document in the form this package reads. Line and Column are 0 when it has no place.
type Flaw struct {
	Line, Column int
	Message      string
}

// Error implements error.
func (f *Flaw) Error() string { return f.Message }

func flaw(line, column int, format string, args ...any) *Flaw {
	return &Flaw{Line: line, Column: column, Message: fmt.Sprintf(format, args...)}
}

// Parse reads a text. An empty document is a [Null] node. Only the first flaw is answered: behind it nothing can be trusted.
func Parse(text string) (*Node, *Flaw) {
	if f := checkText(text); f != nil {
		return nil, f
	}
	tokens := lexer.Tokenize(text)
	if f := checkTokens(tokens); f != nil {
		return nil, f
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxFlaw(err)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			at := doc.Body.GetToken().Position
			if doc.Start != nil {
				at = doc.Start.Position
			}
			return nil, flaw(at.Line, at.Column, "a second document begins here; the file must hold one, without `---` inside")
		}
		body = doc.Body
	}
	if body == nil {
		return &Node{Kind: Null, Line: 1, Column: 1}, nil
	}
	b := builder{anchors: map[string]ast.Node{}, left: maxNodes}
	return b.build(body, 0)
}

// syntaxFlaw words a parser's complaint. The parser's words name no value of the file.
func syntaxFlaw(err error) *Flaw {
	syntax, ok := errors.AsType[*yaml.SyntaxError](err)
	if !ok || syntax.Token == nil || syntax.Token.Position == nil {
		return flaw(0, 0, "this is not YAML")
	}
	at := syntax.Token.Position
	message := syntax.Message
	if strings.Contains(message, "\t") {
		return flaw(at.Line, at.Column, "a tab cannot indent YAML; use spaces")
	}
	return flaw(at.Line, at.Column, "this is not YAML: %s", message)
}

// builder turns the parser's nodes into ours.
type builder struct {
	anchors map[string]ast.Node
	// open holds the anchors whose value is being built, to find one that holds itself.
	open []string
	left int
}

func (b *builder) build(n ast.Node, depth int) (*Node, *Flaw) {
	line, column := position(n)
	if b.left--; b.left < 0 {
		return nil, flaw(line, column, "the file holds more than %d values, aliases followed", maxNodes)
	}
	if depth > maxDepth {
		return nil, flaw(line, column, "values are nested more than %d deep", maxDepth)
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return b.mapping(n.Values, depth, line, column)
	case *ast.MappingValueNode:
		return b.mapping([]*ast.MappingValueNode{n}, depth, line, column)
	case *ast.SequenceNode:
		return b.list(n, depth, line, column)
	case *ast.AnchorNode:
		return b.anchor(n, depth)
	case *ast.AliasNode:
		return b.alias(n, depth, line, column)
	case *ast.TagNode:
		return nil, flaw(line, column, "tags such as `!!str` are not read; put text in quotes instead")
	}
	return scalar(n, line, column)
}

func (b *builder) mapping(values []*ast.MappingValueNode, depth, line, column int) (*Node, *Flaw) {
	out := &Node{Kind: Map, Line: line, Column: column}
	for _, value := range values {
		keyLine, keyColumn := position(value.Key)
		key, f := keyText(value.Key, keyLine, keyColumn)
		if f != nil {
			return nil, f
		}
		child, f := b.build(value.Value, depth+1)
		if f != nil {
			return nil, f
		}
		if child.Line == 0 {
			child.Line, child.Column = keyLine, keyColumn
		}
		out.Entries = append(out.Entries, Entry{Key: key, Line: keyLine, Column: keyColumn, Value: child})
	}
	if len(out.Entries) > 0 {
		out.Line, out.Column = out.Entries[0].Line, out.Entries[0].Column
	}
	return out, nil
}

func keyText(key ast.MapKeyNode, line, column int) (string, *Flaw) {
	if key.IsMergeKey() {
		return "", flaw(line, column, "merge keys (`<<`) are not read; write the keys out")
	}
	switch k := key.(type) {
	case *ast.StringNode:
		return k.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
		return k.GetToken().Value, nil
	}
	return "", flaw(line, column, "a key must be plain text")
}

func (b *builder) list(n *ast.SequenceNode, depth, line, column int) (*Node, *Flaw) {
	out := &Node{Kind: List, Line: line, Column: column}
	for _, item := range n.Values {
		child, f := b.build(item, depth+1)
		if f != nil {
			return nil, f
		}
		if child.Line == 0 {
			child.Line, child.Column = line, column
		}
		out.Items = append(out.Items, child)
	}
	return out, nil
}

func (b *builder) anchor(n *ast.AnchorNode, depth int) (*Node, *Flaw) {
	name := n.Name.GetToken().Value
	b.open = append(b.open, name)
	child, f := b.build(n.Value, depth)
	b.open = b.open[:len(b.open)-1]
	b.anchors[name] = n.Value
	return child, f
}

func (b *builder) alias(n *ast.AliasNode, depth, line, column int) (*Node, *Flaw) {
	name := n.Value.GetToken().Value
	for _, open := range b.open {
		if open == name {
			return nil, flaw(line, column, "the alias stands inside the value that it repeats")
		}
	}
	target, ok := b.anchors[name]
	if !ok {
		return nil, flaw(line, column, "the alias names an anchor that is not written above it")
	}
	child, f := b.build(target, depth)
	if f != nil {
		// Where the repeated value stands is fine; that it is repeated here is not.
		return nil, flaw(line, column, "%s", f.Message)
	}
	moveTo(child, line, column)
	return child, nil
}

// moveTo makes problems in a repeated value point at the alias.
func moveTo(n *Node, line, column int) {
	n.Line, n.Column = line, column
	for _, item := range n.Items {
		moveTo(item, line, column)
	}
	for i := range n.Entries {
		n.Entries[i].Line, n.Entries[i].Column = line, column
		moveTo(n.Entries[i].Value, line, column)
	}
}

func scalar(n ast.Node, line, column int) (*Node, *Flaw) {
	out := &Node{Line: line, Column: column}
	switch n := n.(type) {
	case *ast.StringNode:
		out.Kind, out.Text = String, n.Value
	case *ast.LiteralNode:
		out.Kind, out.Text = String, n.Value.Value
	case *ast.NullNode:
		out.Kind = Null
	case *ast.BoolNode:
		out.Kind, out.True, out.Text = Bool, n.Value, n.GetToken().Value
	case *ast.IntegerNode:
		out.Kind, out.Int, out.Text = Int, wholeNumber(n.Value), n.GetToken().Value
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.Kind, out.Text = Float, n.GetToken().Value
	default:
		return nil, flaw(line, column, "this form of YAML is not read here")
	}
	return out, nil
}

func wholeNumber(value any) int64 {
	switch v := value.(type) {
	case int64:
		return v
	case uint64:
		return int64(min(v, math.MaxInt64))
	}
	return math.MaxInt64
}

func position(n ast.Node) (line, column int) {
	if n == nil {
		return 0, 0
	}
	token := n.GetToken()
	if token == nil || token.Position == nil {
		return 0, 0
	}
	return token.Position.Line, token.Position.Column
}
