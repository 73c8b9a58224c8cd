package splice_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/company/internal/splice"
	"github.com/bullpenhq/bullpen/services/company/internal/yamltree"
)

const key = "mcp_servers"

func object(t *testing.T, text string) splice.Object {
	t.Helper()
	o, err := splice.ParseObject(text)
	require.NoError(t, err)
	return o
}

func TestAnEntryIsEditedAndTheRestStays(t *testing.T) {
	t.Parallel()
	const entry = `{"name": "new", "command": "x", "env": {"K": "${K}"}}`
	for name, c := range map[string]struct{ before, appended, replaced string }{
		"a block list between other keys": {
			"# top\nname: Co  # us\n\nmcp_servers:\n  # first\n  - name: a   # the one\n    command: 'a'\n\n  # second\n  - {name: b, command: b}\n\n# below\nroles: [{name: Ada}]\n",
			"# top\nname: Co  # us\n\nmcp_servers:\n  # first\n  - name: a   # the one\n    command: 'a'\n\n  # second\n  - {name: b, command: b}\n  - name: new\n    command: x\n    env:\n      K: ${K}\n\n# below\nroles: [{name: Ada}]\n",
			"# top\nname: Co  # us\n\nmcp_servers:\n  # first\n  - name: new\n    command: x\n    env:\n      K: ${K}\n\n  # second\n  - {name: b, command: b}\n\n# below\nroles: [{name: Ada}]\n",
		},
		"a block list that is not indented": {
			"name: Co\nmcp_servers:\n- name: a\n  args:\n  - x\n  - y\nroles:\n- name: Ada\n",
			"name: Co\nmcp_servers:\n- name: a\n  args:\n  - x\n  - y\n- name: new\n  command: x\n  env:\n    K: ${K}\nroles:\n- name: Ada\n",
			"name: Co\nmcp_servers:\n- name: new\n  command: x\n  env:\n    K: ${K}\nroles:\n- name: Ada\n",
		},
		"the last thing in a file without a newline": {
			"name: Co\nmcp_servers:\n  -\n    name: a\n    command: |-\n      # no comment\n      x",
			"name: Co\nmcp_servers:\n  -\n    name: a\n    command: |-\n      # no comment\n      x\n  - name: new\n    command: x\n    env:\n      K: ${K}\n",
			"name: Co\nmcp_servers:\n  - name: new\n    command: x\n    env:\n      K: ${K}\n",
		},
		"a flow list": {
			"name: Co\nmcp_servers: [{name: 'a]''', command: \"}\\\"\"}, {name: b}]  # two\n",
			"name: Co\nmcp_servers: [{name: 'a]''', command: \"}\\\"\"}, {name: b}, " + entry + "]  # two\n",
			"name: Co\nmcp_servers: [" + entry + ", {name: b}]  # two\n",
		},
		"a flow list over lines": {
			"mcp_servers: [\n  {name: it's, args: [a, b]},  # ] not here\n  {name: b},\n]\nname: Co\n",
			"mcp_servers: [\n  {name: it's, args: [a, b]},  # ] not here\n  {name: b}, " + entry + ",\n]\nname: Co\n",
			"mcp_servers: [\n  " + entry + ",  # ] not here\n  {name: b},\n]\nname: Co\n",
		},
		"an empty list":  {"name: Co\nmcp_servers: []\n", "name: Co\nmcp_servers: [" + entry + "]\n", ""},
		"an empty value": {"mcp_servers: # none\nname: Co\n", "mcp_servers: # none\n  - name: new\n    command: x\n    env:\n      K: ${K}\nname: Co\n", ""},
		"no list":        {"name: Co", "name: Co\nmcp_servers:\n  - name: new\n    command: x\n    env:\n      K: ${K}\n", ""},
		"everything in braces": {
			"{name: Co, mcp_servers: [{name: a}], roles: []}",
			"{name: Co, mcp_servers: [{name: a}, " + entry + "], roles: []}",
			"{name: Co, mcp_servers: [" + entry + "], roles: []}",
		},
		"lines of another system": {
			"name: Co\r\nmcp_servers:\r\n  - name: a\r\n\r\nroles: []\r\n",
			"name: Co\r\nmcp_servers:\r\n  - name: a\r\n  - name: new\n    command: x\n    env:\n      K: ${K}\n\r\nroles: []\r\n",
			"name: Co\r\nmcp_servers:\r\n  - name: new\n    command: x\n    env:\n      K: ${K}\n\r\nroles: []\r\n",
		},
		"letters that are longer than a byte": {
			"name: Zoë\nmcp_servers: [{name: ü, x: 日本}]\n",
			"name: Zoë\nmcp_servers: [{name: ü, x: 日本}, " + entry + "]\n",
			"name: Zoë\nmcp_servers: [" + entry + "]\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := splice.Append(c.before, key, object(t, entry))
			require.NoError(t, err)
			require.Equal(t, c.appended, got)
			got, err = splice.Replace(c.before, key, 0, object(t, entry))
			if c.replaced == "" {
				require.ErrorIs(t, err, splice.ErrForm, "there is none to replace")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.replaced, got)
		})
	}
}

// A value that a style would read otherwise must arrive all the same, or be refused: never as something else.
func TestEveryValueArrivesAsItWasGiven(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		`"yes"`, `"null"`, `"1"`, `"1e3"`, `"- a"`, `"a: b"`, `"# c"`, `"a #b"`, `""`, `" "`, `"a\nb\n"`, `"\n\na"`, `"a\n\n  b\n\n\n"`, `"trailing "`,
		`"'"`, `"\""`, `"\\"`, `"@x"`, `"*x"`, `"&x"`, `"!x"`, `"%x"`, `"{a}"`, `"[a"`, `"${A}"`, `"Bearer ${T}"`, `"日本 é"`, `"---"`, `"..."`, `"~"`,
		`"2026-11-30"`, `"0x1f"`, `"\t"`, `"a\tb"`, `true`, `12`, `1.50`, `-0.5`, `[]`, `{}`, `["a", {"b": [1, "2"]}]`, `{"a b": "c", "1": "d", "true": "e"}`,
	} {
		entry := object(t, `{"name": "a", "v": `+value+`, "w": "last"}`)
		for _, before := range []string{"name: Co\nmcp_servers:\n  - name: z\nmission: m\n", "name: Co\nmcp_servers: []\nmission: m\n"} {
			text, err := splice.Append(before, key, entry)
			if err != nil {
				require.ErrorIs(t, err, splice.ErrForm, value)
				continue
			}
			all, err := splice.List(text, key)
			require.NoError(t, err)
			require.Equal(t, entry.JSON(), all[len(all)-1].JSON(), text)
			require.True(t, strings.HasSuffix(text, "mission: m\n"))
		}
	}
}

func TestWhatCannotBeEditedByItselfIsRefused(t *testing.T) {
	t.Parallel()
	entry := object(t, `{"name": "new"}`)
	for name, text := range map[string]string{
		"an anchor that is used below":                    "mcp_servers:\n  - &a {name: a}\n  - *a\n",
		"a list that is no list":                          "mcp_servers: {a: b}\n",
		"a broken text":                                   "mcp_servers: [\n",
		"a list of text for a root":                       "- a\n",
		"lines that end in nothing but a carriage return": "name: Co\rmcp_servers:\r- name: a\r",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := splice.Replace(text, key, 0, entry)
			require.ErrorIs(t, err, splice.ErrForm)
		})
	}
	_, err := splice.Append("{name: Co}\n", key, entry)
	require.ErrorIs(t, err, splice.ErrForm, "a document in braces has no line to add")
	_, err = splice.Append("mcp_servers: null\n", key, entry)
	require.ErrorIs(t, err, splice.ErrForm, "a null that is written out")
}

func TestTheExampleCompanyTakesAServer(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.FromSlash("../../../../deploy/company.example.yaml"))
	require.NoError(t, err)
	all, err := splice.List(string(text), key)
	require.NoError(t, err)
	got, err := splice.Append(string(text), key, object(t, `{"name": "new", "command": "x"}`))
	require.NoError(t, err)
	require.Equal(t, string(text), strings.Replace(got, "  - name: new\n    command: x\n", "", 1))
	for i, entry := range all {
		got, err := splice.Replace(string(text), key, i, entry)
		require.NoError(t, err)
		before, flaw := splice.List(got, key)
		require.NoError(t, flaw)
		require.Equal(t, all, before)
	}
}

func TestAnObjectIsReadStrictly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[]`:                        "must be a JSON object",
		`"x"`:                       "must be a JSON object",
		`{"a": 1, "a": 2}`:          "has a key twice in one object",
		`{"a": {"b": 1, "b": "s"}}`: "has a key twice in one object",
		`{"a": 1} {}`:               "has something behind its end",
		`{"a": `:                    "is not JSON",
		``:                          "is not JSON",
		`{"a": ` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `}`: "is nested more than 16 deep",
	} {
		_, err := splice.ParseObject(text)
		require.EqualError(t, err, want, text)
	}
	require.Equal(t, `{"b": "<&>", "a": [1.50, null, true]}`, object(t, `{"b":"<&>","a":[1.50,null,true]}`).JSON())
}

func TestTextsAreChangedByPath(t *testing.T) {
	t.Parallel()
	o := object(t, `{"env": {"A": "x"}, "args": ["p", 1], "name": "n"}`)
	got := o.Texts(func(path, text string) string { return path + "=" + text })
	require.Equal(t, `{"env": {"A": "env.A=x"}, "args": ["args.0=p", 1], "name": "name=n"}`, got.JSON())
	require.Equal(t, `{"env": {"A": "x"}, "args": ["p", 1]}`, o.Without("name").JSON())
}

func FuzzAppend(f *testing.F) {
	for _, text := range []string{
		"name: Co\nmcp_servers:\n  - name: a\n", "mcp_servers: [{name: a}, b]\n", "mcp_servers:\n- - a\n- |\n  x\n", "{mcp_servers: []}", "a: [\n'", "mcp_servers:\n -\n", "\r0:",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		before, flaw := yamltree.Parse(text)
		entry := splice.Object{{Key: "name", Value: "new"}}
		for _, edit := range []func() (string, error){
			func() (string, error) { return splice.Append(text, key, entry) },
			func() (string, error) { return splice.Replace(text, key, 0, entry) },
		} {
			got, err := edit()
			if err != nil {
				continue
			}
			after, wrong := yamltree.Parse(got)
			if flaw != nil || wrong != nil || len(after.Entries) < len(before.Entries) {
				t.Fatalf("%q became %q", text, got)
			}
		}
	})
}
