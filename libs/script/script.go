// Package script is a small language for conversations whose one side is known in advance: what is said and which tools are
// called, round by round, when an opening fits a rule.
//
//	rules:
//	  - when: {contains: "not shipped", seat: ada}    # all that is given must hold; nothing given always holds
//	    rounds:
//	      - say: I file it.
//	        call: {tool: create_item, args: {title: "{{match.1}}", body: "{{opening}}"}}
//	      - calls:
//	          - {tool: reply, args: {body: "Filed as {{result.create_item.key}}."}}
//	      - finish: {summary: done}                   # a verb of the host: short for a call of one tool
//
// The first rule that fits the opening plays its rounds in order. The same scene always yields the same move, so a
// conversation that was broken off can be taken up at any round. A rule that does not fit, a round that is not there and a
// placeholder that nothing fills are errors, never silence.
//
// The language has no word of its host: which facts a rule may ask for beside contains and regex, and which verbs stand for
// which tools, is said to [Parse].
package script

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Options is what a host adds to the language.
type Options struct {
	// Facts are further keys of `when`; each must equal the scene's fact of that name.
	Facts []string
	// Verbs are further keys of a round: the tool that each one calls, with its value as the arguments.
	Verbs map[string]string
}

// Script is a parsed script. It is immutable and safe for concurrent use.
type Script struct{ rules []rule }

// Scene is where a conversation stands.
type Scene struct {
	// Opening is the text that the rules are matched against.
	Opening string
	// Facts are what is known beside it.
	Facts map[string]string
	// Round is the number of the move that is wanted, from 0.
	Round int
	// Results holds the last result of each tool.
	Results map[string]string
}

// Move is one round.
type Move struct {
	// Say may be empty.
	Say string
	// Calls may be empty.
	Calls []Call
}

// Call is one call of a tool.
type Call struct {
	Tool string
	// Args is one JSON object, placeholders filled; or any text, when the script gives the arguments as a text.
	Args string
}

type rule struct {
	contains string
	regex    *regexp.Regexp
	facts    map[string]string
	rounds   []round
}

type round struct {
	say   string
	calls []call
}

type call struct {
	tool string
	args any
}

// document is the shape as written.
type document struct {
	Rules []struct {
		Name   string            `yaml:"name"`
		When   map[string]string `yaml:"when"`
		Rounds []map[string]any  `yaml:"rounds"`
	} `yaml:"rules"`
}

// Parse reads a script. Anything that it does not know is refused as invalid, with the place.
func Parse(text []byte, o Options) (*Script, error) {
	var doc document
	if err := yaml.UnmarshalWithOptions(text, &doc, yaml.Strict()); err != nil {
		return nil, fault.New(fault.Invalid, "The script cannot be read: %s", strings.TrimSpace(yaml.FormatError(err, false, true))).
			WithCause(err)
	}
	if len(doc.Rules) == 0 {
		return nil, fault.New(fault.Invalid, "The script has no rules.").WithField("rules")
	}
	s := &Script{}
	for i, written := range doc.Rules {
		place := fmt.Sprintf("rules[%d]", i)
		r, err := parseWhen(place+".when", written.When, o)
		if err != nil {
			return nil, err
		}
		if len(written.Rounds) == 0 {
			return nil, fault.New(fault.Invalid, "%s has no rounds.", place).WithField(place + ".rounds")
		}
		for j, w := range written.Rounds {
			parsed, err := parseRound(fmt.Sprintf("%s.rounds[%d]", place, j), w, o)
			if err != nil {
				return nil, err
			}
			r.rounds = append(r.rounds, parsed)
		}
		s.rules = append(s.rules, r)
	}
	return s, nil
}

func parseWhen(place string, when map[string]string, o Options) (rule, error) {
	r := rule{facts: map[string]string{}}
	for key, value := range when {
		switch {
		case key == "contains":
			r.contains = value
		case key == "regex":
			compiled, err := regexp.Compile(value)
			if err != nil {
				return r, fault.New(fault.Invalid, "%s.regex does not compile: %s.", place, err).WithField(place + ".regex")
			}
			r.regex = compiled
		case slices.Contains(o.Facts, key):
			r.facts[key] = value
		default:
			known := append([]string{"contains", "regex"}, o.Facts...)
			return r, fault.New(fault.Invalid, "%s.%s is not known; it takes %s.", place, key, strings.Join(known, ", ")).
				WithField(place + "." + key)
		}
	}
	return r, nil
}

func parseRound(place string, written map[string]any, o Options) (round, error) {
	var r round
	for _, key := range []string{"say", "call", "calls"} {
		value, given := written[key]
		if !given {
			continue
		}
		var err error
		switch key {
		case "say":
			text, ok := value.(string)
			if !ok {
				return r, fault.New(fault.Invalid, "%s.say must be a text.", place).WithField(place + ".say")
			}
			r.say = text
		case "call":
			err = r.addCalls(place+".call", []any{value})
		case "calls":
			list, ok := value.([]any)
			if !ok {
				return r, fault.New(fault.Invalid, "%s.calls must be a list.", place).WithField(place + ".calls")
			}
			err = r.addCalls(place+".calls", list)
		}
		if err != nil {
			return r, err
		}
	}
	for key, value := range written {
		if key == "say" || key == "call" || key == "calls" {
			continue
		}
		tool, known := o.Verbs[key]
		if !known {
			return r, fault.New(fault.Invalid, "%s.%s is not known.", place, key).WithField(place + "." + key)
		}
		r.calls = append(r.calls, call{tool: tool, args: value})
	}
	return r, nil
}

func (r *round) addCalls(place string, written []any) error {
	for i, item := range written {
		at := fmt.Sprintf("%s[%d]", place, i)
		fields, ok := item.(map[string]any)
		if !ok {
			return fault.New(fault.Invalid, "%s must be an object with tool and args.", at).WithField(at)
		}
		for key := range fields {
			if key != "tool" && key != "args" {
				return fault.New(fault.Invalid, "%s.%s is not known; a call takes tool and args.", at, key).WithField(at + "." + key)
			}
		}
		tool, ok := fields["tool"].(string)
		if !ok || tool == "" {
			return fault.New(fault.Invalid, "%s.tool must name a tool.", at).WithField(at + ".tool")
		}
		args, given := fields["args"]
		if !given || args == nil {
			args = map[string]any{}
		}
		r.calls = append(r.calls, call{tool: tool, args: args})
	}
	return nil
}

// Next answers the move for a scene. It refuses with not_found when no rule fits or the rule has no such round, and with
// invalid when a placeholder cannot be filled.
func (s *Script) Next(scene Scene) (Move, error) {
	for _, r := range s.rules {
		groups, fits := r.match(scene)
		if !fits {
			continue
		}
		if scene.Round >= len(r.rounds) {
			return Move{}, fault.New(fault.NotFound, "The script ends after %d rounds; round %d was asked for.",
				len(r.rounds), scene.Round+1)
		}
		return r.rounds[scene.Round].play(filler{scene: scene, groups: groups})
	}
	return Move{}, fault.New(fault.NotFound, "No rule of the script fits what was said.")
}

func (r rule) match(scene Scene) (groups []string, fits bool) {
	if !strings.Contains(scene.Opening, r.contains) {
		return nil, false
	}
	for name, value := range r.facts {
		if scene.Facts[name] != value {
			return nil, false
		}
	}
	if r.regex == nil {
		return nil, true
	}
	groups = r.regex.FindStringSubmatch(scene.Opening)
	return groups, groups != nil
}

func (r round) play(f filler) (Move, error) {
	say, err := f.text(r.say)
	if err != nil {
		return Move{}, err
	}
	move := Move{Say: say}
	for _, c := range r.calls {
		args, err := f.value(c.args)
		if err != nil {
			return Move{}, err
		}
		text, literal := args.(string)
		if !literal {
			encoded, err := json.Marshal(args)
			if err != nil {
				return Move{}, fault.New(fault.Invalid, "The arguments of %s are no JSON.", c.tool).WithCause(err)
			}
			text = string(encoded)
		}
		move.Calls = append(move.Calls, Call{Tool: c.tool, Args: text})
	}
	return move, nil
}
