// Package toolrule is the language of a company's tool policy: rules, the conditions in them, and how both are checked.
//
// It is shared because two services must mean the same by it. Who stores the document refuses what does not compile here; who
// decides about calls compiles the same text in the same environment. The YAML form is that of the block `tool_policy`:
//
//	tool_policy:
//	  otherwise: allow
//	  rules:
//	    - name: big orders
//	      effect: ask
//	      tools: [create_order, "shop_*"]
//	      when: args.amount > 500 && tool.read_only != true
//	      reason: Orders above 500 need a person.
//	      expire_seconds: 86400
package toolrule

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// Effects of a rule.
const (
	Allow = "allow"
	Deny  = "deny"
	Ask   = "ask"
)

// Bounds of a policy.
const (
	MaxRules       = 500
	MaxPatterns    = 200
	MaxReason      = 500
	MaxConditionIn = 4096 // bytes of `when`

	// DefaultExpire holds for an `ask` that names no time; a question may wait between MinExpire and MaxExpire.
	DefaultExpire = 24 * time.Hour
	MinExpire     = time.Second
	MaxExpire     = 30 * 24 * time.Hour
)

// Policy is a list of rules, of which the first that fits a call decides about it.
type Policy struct {
	Rules []Rule `yaml:"rules"`
	// Otherwise is what holds where no rule fits: [Allow], which empty means too, or [Deny].
	Otherwise        string `yaml:"otherwise"`
	HoldChangedTools bool   `yaml:"hold_changed_tools"`
}

// Rule fits a call when everything that it names fits; what it leaves out fits all.
type Rule struct {
	// Name is unique in its policy: decisions are stored under it.
	Name   string `yaml:"name"`
	Effect string `yaml:"effect"`
	// Seats are handles and Units are ids, exact; Tools and Sources are patterns for [Match].
	Seats   []string `yaml:"seats"`
	Units   []string `yaml:"units"`
	Tools   []string `yaml:"tools"`
	Sources []string `yaml:"sources"`
	// When is a condition for [Compile].
	When   string `yaml:"when"`
	Reason string `yaml:"reason"`
	// ExpireSeconds is how long a question waits, for [Ask]; 0 means [DefaultExpire].
	ExpireSeconds int `yaml:"expire_seconds"`
}

// Expire answers how long a question of the rule waits.
func (r Rule) Expire() time.Duration {
	if r.ExpireSeconds <= 0 {
		return DefaultExpire
	}
	return time.Duration(r.ExpireSeconds) * time.Second
}

// Problem is one thing wrong with a policy. Path is relative to what was checked, such as `rules[2].when`.
type Problem struct {
	Path    string
	Message string
}

// Check answers everything wrong with a policy but references to seats and units, which only the whole company can tell.
func (p Policy) Check() []Problem {
	var problems []Problem
	add := func(path, format string, args ...any) {
		problems = append(problems, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if p.Otherwise != "" && p.Otherwise != Allow && p.Otherwise != Deny {
		add("otherwise", "must be `allow` or `deny`, not %q", p.Otherwise)
	}
	if len(p.Rules) > MaxRules {
		add("rules", "has %d rules; at most %d are taken", len(p.Rules), MaxRules)
		return problems
	}
	first := map[string]int{}
	for i, r := range p.Rules {
		key := strings.ToLower(r.Name)
		for _, problem := range r.Check() {
			add(fmt.Sprintf("rules[%d].%s", i, problem.Path), "%s", problem.Message)
		}
		if earlier, taken := first[key]; taken && key != "" {
			add(fmt.Sprintf("rules[%d].name", i), "%q is the name of rules[%d] already; decisions are stored under the name", r.Name, earlier)
			continue
		}
		first[key] = i
	}
	return problems
}

// What names and patterns look like.
var (
	nameShape   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 _.-]{0,63}$`)
	toolShape   = regexp.MustCompile(`^[A-Za-z0-9_.*/-]{1,128}$`)
	sourceShape = regexp.MustCompile(`^(\*|builtin|mcp:[A-Za-z0-9_*-]{1,64})$`)
)

// Check answers what is wrong with a rule by itself; paths are its keys.
func (r Rule) Check() []Problem {
	var problems []Problem
	add := func(path, format string, args ...any) {
		problems = append(problems, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case r.Name == "":
		add("name", "is required: decisions are stored under it")
	case !nameShape.MatchString(r.Name):
		add("name", "must be 1 to 64 letters, digits, blanks, dots, dashes and underscores, the first no sign")
	}
	switch r.Effect {
	case Allow, Deny, Ask:
	default:
		add("effect", "must be `allow`, `deny` or `ask`, not %q", r.Effect)
	}
	if n := utf8.RuneCountInString(r.Reason); n > MaxReason {
		add("reason", "has %d characters; at most %d are taken", n, MaxReason)
	}
	for _, list := range []struct {
		key    string
		values []string
	}{{"seats", r.Seats}, {"units", r.Units}, {"tools", r.Tools}, {"sources", r.Sources}} {
		if len(list.values) > MaxPatterns {
			add(list.key, "has %d members; at most %d are taken", len(list.values), MaxPatterns)
		}
	}
	for i, pattern := range r.Tools {
		if !toolShape.MatchString(pattern) {
			add(fmt.Sprintf("tools[%d]", i), "must be a tool's name, in which `*` stands for any run of characters")
		}
	}
	for i, pattern := range r.Sources {
		if !sourceShape.MatchString(pattern) {
			add(fmt.Sprintf("sources[%d]", i), "must be `builtin` or `mcp:` and a server's name, in which `*` stands for any run of characters")
		}
	}
	if r.When != "" {
		if _, err := Compile(r.When); err != nil {
			add("when", "%s", err)
		}
	}
	problems = append(problems, r.checkExpire()...)
	return problems
}

func (r Rule) checkExpire() []Problem {
	problem := func(format string, args ...any) []Problem {
		return []Problem{{Path: "expire_seconds", Message: fmt.Sprintf(format, args...)}}
	}
	switch {
	case r.ExpireSeconds == 0:
		return nil
	case r.Effect != Ask:
		return problem("is only for rules whose effect is `ask`")
	case r.ExpireSeconds < 0, r.Expire() < MinExpire, r.Expire() > MaxExpire:
		return problem("must be between %d and %d", int(MinExpire.Seconds()), int(MaxExpire.Seconds()))
	default:
		return nil
	}
}

// Match reports whether a pattern fits a whole name; `*` stands for any run of characters, the empty one too.
func Match(pattern, name string) bool {
	head, rest, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == name
	}
	if !strings.HasPrefix(name, head) {
		return false
	}
	name = name[len(head):]
	for {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(name, part)
		}
		at := strings.Index(name, part)
		if at < 0 {
			return false
		}
		name, rest = name[at+len(part):], next
	}
}
