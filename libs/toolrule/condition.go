package toolrule

import (
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// maxCost bounds one evaluation, in CEL's units: some thousand steps, or a look through a text of some megabytes.
const maxCost = 1_000_000

// Facts are what a condition is about.
type Facts struct {
	// Seat, Unit and Kind are `seat.handle`, `seat.unit` (the id, empty at the root) and `seat.kind`.
	Seat, Unit, Kind string
	// Tool, Source and Delivers are `tool.name`, `tool.source` and `tool.delivers`.
	Tool, Source, Delivers string
	// The hints are `tool.read_only` and so on; nil is null: the tool claims nothing.
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
	// Args is `args`, as [Arguments] reads them; nil when they are not known yet.
	Args map[string]any
}

// Truth is what a condition says of facts.
type Truth int

// The truths.
const (
	False Truth = iota
	True
	// Depends: it is up to arguments that are not known.
	Depends
)

// Condition is a compiled `when`. Safe for concurrent use.
type Condition struct {
	program cel.Program
}

// environment declares exactly the names that a condition may use, each a variable of its own: one that is mistyped does not
// compile.
func environment() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("seat.handle", cel.StringType),
		cel.Variable("seat.unit", cel.StringType),
		cel.Variable("seat.kind", cel.StringType),
		cel.Variable("tool.name", cel.StringType),
		cel.Variable("tool.source", cel.StringType),
		cel.Variable("tool.delivers", cel.StringType),
		cel.Variable("tool.read_only", cel.DynType),
		cel.Variable("tool.destructive", cel.DynType),
		cel.Variable("tool.idempotent", cel.DynType),
		cel.Variable("tool.open_world", cel.DynType),
		cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(MaxConditionIn),
		cel.ParserRecursionLimit(64),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateComprehensionNestingLimit(2)),
	)
}

// Language compiles conditions. Safe for concurrent use. Its first condition costs about a millisecond, later ones a tenth of it.
type Language struct{ env *cel.Env }

// NewLanguage makes a language.
func NewLanguage() (*Language, error) {
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("make the environment of conditions: %w", err)
	}
	return &Language{env: env}, nil
}

// Compile reads one condition; see [Language.Compile].
func Compile(when string) (*Condition, error) {
	language, err := NewLanguage()
	if err != nil {
		return nil, err
	}
	return language.Compile(when)
}

// Compile reads a condition. Its errors are one sentence for the person who wrote it, with the place when there is one.
func (l *Language) Compile(when string) (*Condition, error) {
	if len(when) > MaxConditionIn {
		return nil, fmt.Errorf("the condition has %d bytes; at most %d are taken", len(when), MaxConditionIn)
	}
	checked, issues := l.env.Compile(when)
	if issues.Err() != nil {
		return nil, l.readable(when, issues)
	}
	if out := checked.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("the condition answers %s; it must answer true or false", out)
	}
	program, err := l.env.Program(checked, cel.EvalOptions(cel.OptOptimize, cel.OptPartialEval), cel.CostLimit(maxCost))
	if err != nil {
		return nil, fmt.Errorf("the condition cannot be run: %w", err)
	}
	return &Condition{program: program}, nil
}

// readable says what is wrong with a condition first.
func (l *Language) readable(when string, issues *cel.Issues) error {
	first := issues.Errors()[0]
	text := strings.TrimSuffix(first.Message, ".")
	if name, undeclared := strings.CutPrefix(text, "undeclared reference to '"); undeclared {
		name, _, _ = strings.Cut(name, "'")
		text = unknown(name, l.memberOf(when, first.ExprID))
	}
	return fmt.Errorf("line %d, column %d of the condition: %s", first.Location.Line(), first.Location.Column()+1, text)
}

// memberOf answers which member of an expression is selected; empty for none.
func (l *Language) memberOf(when string, id int64) string {
	parsed, issues := l.env.Parse(when)
	if issues.Err() != nil {
		return ""
	}
	member := ""
	ast.PostOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.SelectKind && e.AsSelect().Operand().ID() == id {
			member = e.AsSelect().FieldName()
		}
	}))
	return member
}

// unknown says what there is in place of a name that is not known, or of a member of it; member may be empty.
func unknown(name, member string) string {
	var there string
	switch name {
	case "seat":
		there = "`handle`, `unit` and `kind`"
	case "tool":
		there = "`name`, `source`, `read_only`, `destructive`, `idempotent`, `open_world` and `delivers`"
	default:
		return fmt.Sprintf("`%s` is not known; there are seat.handle, seat.unit, seat.kind, tool.name, tool.source, tool.read_only, "+
			"tool.destructive, tool.idempotent, tool.open_world, tool.delivers and args", name)
	}
	if member == "" {
		return fmt.Sprintf("`%s` is no value by itself; it has %s", name, there)
	}
	return fmt.Sprintf("`%s` has no `%s`; it has %s", name, member, there)
}

// Holds evaluates the condition. An error says that it has no value for these facts: an argument is missing, a type does not
// fit, or it costs too much. What that means is the rule's affair.
func (c *Condition) Holds(f Facts) (Truth, error) {
	vars := map[string]any{
		"seat.handle": f.Seat, "seat.unit": f.Unit, "seat.kind": f.Kind,
		"tool.name": f.Tool, "tool.source": f.Source, "tool.delivers": f.Delivers,
		"tool.read_only": hint(f.ReadOnly), "tool.destructive": hint(f.Destructive),
		"tool.idempotent": hint(f.Idempotent), "tool.open_world": hint(f.OpenWorld),
	}
	var input any = vars
	if f.Args != nil {
		vars["args"] = f.Args
	} else {
		partial, err := cel.PartialVars(vars, cel.AttributePattern("args"))
		if err != nil {
			return False, fmt.Errorf("set the unknown arguments aside: %w", err)
		}
		input = partial
	}
	value, _, err := c.program.Eval(input)
	if err != nil {
		return False, errors.New(strings.TrimSuffix(err.Error(), "."))
	}
	switch {
	case types.IsUnknown(value):
		return Depends, nil
	case value == types.True:
		return True, nil
	case value == types.False:
		return False, nil
	default:
		return False, fmt.Errorf("it answers %s where true or false is wanted", value.Type().TypeName())
	}
}

func hint(claimed *bool) ref.Val {
	if claimed == nil {
		return types.NullValue
	}
	return types.Bool(*claimed)
}
