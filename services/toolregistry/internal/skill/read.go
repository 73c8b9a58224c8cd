package skill

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// keyShape is what a model can repeat without a slip.
var keyShape = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,99}$`)

// variable is a place that a skill variable fills.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// front is the block of YAML.
type front struct {
	Key      string   `yaml:"key"`
	Trigger  trigger  `yaml:"trigger"`
	Phases   []string `yaml:"phases"`
	Title    string   `yaml:"title"`
	Summary  string   `yaml:"summary"`
	Required *bool    `yaml:"required"`
}

// Read admits pages, in the order of the walk. Of two pages with one key the first has it.
func Read(pages []Page, variables map[string]string) *Set {
	set := &Set{}
	owner := map[string]Page{}
	for _, page := range pages {
		s, unknown, err := read(page, variables)
		if first, taken := owner[keyOf(s)]; err == nil && taken {
			err = fmt.Errorf("the key `%s` is that of the page %q", s.Key, first.Title)
		}
		if err != nil {
			set.Refused = append(set.Refused, Refused{PageID: page.ID, Title: page.Title, Reason: err.Error()})
			continue
		}
		owner[s.Key] = page
		set.Skills = append(set.Skills, s)
		if len(unknown) > 0 {
			set.Warnings = append(set.Warnings, fmt.Sprintf("the tool skill `%s` names variables that skill_variables does not have: %s", s.Key, strings.Join(unknown, ", ")))
		}
	}
	slices.SortFunc(set.Skills, func(a, b *Skill) int { return cmp.Compare(a.Key, b.Key) })
	return set
}

func keyOf(s *Skill) string {
	if s == nil {
		return ""
	}
	return s.Key
}

// read admits one page, or says why it is no skill. unknown are variables that stand in it and have no value.
func read(page Page, variables map[string]string) (s *Skill, unknown []string, err error) {
	block, body, err := split(page.Body)
	if err != nil {
		return nil, nil, err
	}
	var f front
	if err := decode(block, &f); err != nil {
		return nil, nil, err
	}
	body = strings.TrimSpace(body)
	if f.Title == "" {
		f.Title = page.Title
	}
	if f.Phases == nil {
		f.Phases = []string{Execute, Review, Subagent}
	}
	if err := f.check(body); err != nil {
		return nil, nil, err
	}
	body = variable.ReplaceAllStringFunc(body, func(place string) string {
		name := place[2 : len(place)-1]
		value, known := variables[name]
		if known {
			return value
		}
		if !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
		return place
	})
	return &Skill{
		Key: f.Key, Title: f.Title, Summary: f.Summary, Required: f.Required == nil || *f.Required, Phases: f.Phases, Body: body,
		PageID: page.ID, trigger: f.Trigger,
	}, unknown, nil
}

// split takes a page apart.
func split(text string) (block, body string, err error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	rest, begins := strings.CutPrefix(text, "---\n")
	if !begins {
		return "", "", errors.New("it does not begin with a line of `---`, below which its key, trigger and summary stand")
	}
	block, body, closed := strings.Cut("\n"+rest, "\n---\n")
	if !closed {
		if block, closed = strings.CutSuffix("\n"+rest, "\n---"); !closed {
			return "", "", errors.New("no second line of `---` ends the block at its beginning")
		}
	}
	if len(block) > maxFront {
		return "", "", fmt.Errorf("the block at its beginning has %d bytes; at most %d are read", len(block), maxFront)
	}
	return block, body, nil
}

// decode reads the block strictly, and nothing in it that multiplies.
func decode(block string, f *front) error {
	for _, t := range lexer.Tokenize(block) {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType:
			return errors.New("anchors, aliases and tags are not read in the block at its beginning")
		default:
		}
	}
	if err := yaml.UnmarshalWithOptions([]byte(block), f, yaml.Strict()); err != nil {
		first, _, _ := strings.Cut(yaml.FormatError(err, false, false), "\n")
		return fmt.Errorf("the block at its beginning cannot be read: %s", first)
	}
	return nil
}

func (f front) check(body string) error {
	for _, text := range []struct {
		name, value string
		most        int
	}{{"title", f.Title, MaxTitle}, {"summary", f.Summary, MaxSummary}, {"text", body, MaxBody}} {
		switch {
		case strings.TrimSpace(text.value) == "":
			return fmt.Errorf("its %s is missing", text.name)
		case len(text.value) > text.most:
			return fmt.Errorf("its %s has %d bytes; at most %d are allowed", text.name, len(text.value), text.most)
		case !utf8.ValidString(text.value):
			return fmt.Errorf("its %s is not UTF-8", text.name)
		}
	}
	if !keyShape.MatchString(f.Key) {
		return errors.New("its key is missing or not 1 to 100 small letters, digits, dots, dashes and underscores")
	}
	if len(f.Phases) == 0 {
		return errors.New("its phases are an empty list, so it is for nothing; leave them out for all")
	}
	for _, phase := range f.Phases {
		if phase != Execute && phase != Review && phase != Subagent {
			return fmt.Errorf("its phase %q is not one of execute, review and subagent", phase)
		}
	}
	return f.Trigger.check(true)
}

// check demands exactly one part, and of the parts of a list that they are a tool or a server.
func (t trigger) check(top bool) error {
	parts := 0
	for _, given := range []bool{t.Tool != "", t.Server != "", t.AnyOf != nil, t.AllOf != nil} {
		if given {
			parts++
		}
	}
	switch {
	case !top && (t.AnyOf != nil || t.AllOf != nil):
		return errors.New("its trigger nests any_of or all_of; their members are `tool` or `mcp_server`")
	case parts != 1:
		return fmt.Errorf("its trigger has %d of tool, mcp_server, any_of and all_of; it needs exactly one", parts)
	case t.AnyOf != nil && len(t.AnyOf) == 0, t.AllOf != nil && len(t.AllOf) == 0:
		return errors.New("its trigger's list is empty")
	}
	for _, part := range append(slices.Clone(t.AnyOf), t.AllOf...) {
		if err := part.check(false); err != nil {
			return err
		}
	}
	return nil
}
