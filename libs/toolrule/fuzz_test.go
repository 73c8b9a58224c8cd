package toolrule_test

import (
	"encoding/json"
	"testing"

	"github.com/bullpenhq/bullpen/libs/toolrule"
)

// What a stranger writes is read or refused; it never brings the process down.
func FuzzParse(f *testing.F) {
	f.Add("tool_policy:\n  rules:\n    - {name: a, effect: ask, when: 'args.x > 1'}\n  otherwise: deny\n")
	f.Add("rules: [{name: a, effect: deny, tools: ['*']}]")
	f.Add("rules:\n  - name: |\n      a\n    effect: !!str deny")
	f.Fuzz(func(_ *testing.T, text string) { toolrule.Parse(text) })
}

func FuzzArguments(f *testing.F) {
	f.Add(`{"a":[1,{"b":null}],"c":1e3}`)
	f.Add(`{"a":1,"a":2}`)
	f.Fuzz(func(t *testing.T, text string) {
		if args, err := toolrule.Arguments(text); err == nil && text != "" && args != nil && len(args) > 0 && !json.Valid([]byte(text)) {
			t.Fatalf("%q was read and is no JSON", text)
		}
	})
}
