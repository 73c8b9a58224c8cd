package yamltree_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/company/internal/yamltree"
)

// Each text is refused with one sentence and a place.
func TestWhatIsNotOneBoundedDocumentIsRefused(t *testing.T) {
	t.Parallel()
	lines := func(line string, n int) string { return strings.Repeat(line, n) }
	for name, c := range map[string]struct {
		text   string
		line   int
		column int
		want   string
	}{
		"one byte over 4 MiB":         {"a: " + strings.Repeat("b", 4<<20-2), 0, 0, "4194305 bytes; at most 4194304 (4 MiB)"},
		"byte order mark":             {"\ufeffname: x\n", 1, 1, "byte order mark"},
		"utf-16":                      {"\xff\xfen\x00", 1, 1, "UTF-16"},
		"invalid utf-8":               {"name: x\nmission: caf\xe9\n", 2, 13, "not UTF-8"},
		"control character":           {"name: a\x00b\n", 1, 8, "control character"},
		"tab":                         {"a:\n\tb: 1\n", 2, 1, "tab cannot indent"},
		"tab after spaces":            {"a:\n  - b\n \t- c\n", 3, 2, "tab cannot indent"},
		"second document":             {"a: 1\n---\nb: 2\n", 2, 1, "a second document"},
		"open quote":                  {"a: \"x\nb: 2\n", 1, 4, "could not find end character"},
		"open bracket":                {"a: [1,2\nb: 3\n", 2, 1, "',' or ']'"},
		"merge key":                   {"x: &x {a: 1}\ny:\n  <<: *x\n", 3, 3, "merge keys"},
		"tag":                         {"x: !!str 1\n", 1, 4, "tags"},
		"complex key":                 {"? [a, b]\n: c\n", 2, 1, "this is not YAML"},
		"alias to nothing":            {"x: *y\n", 1, 4, "not written above"},
		"alias inside its own anchor": {"x: &x [*x]\n", 1, 8, "inside the value"},
		"alias before its anchor":     {"x: *y\ny: &y 1\n", 1, 4, "not written above"},
		"alias bomb":                  {bomb(12), 5, 0, "more than 100000 values"},
		"flow nested deep":            {strings.Repeat("[", 100_000), 1, 65, "more than 64 deep"},
		"flow mappings nested deep":   {strings.Repeat("{a: ", 100_000), 1, 0, "more than 64 deep"},
		"lists on a line nested deep": {strings.Repeat("- ", 100_000), 1, 129, "more than 64 deep"},
		"blocks nested deep":          {stairs(70), 65, 0, "more than 64 deep"},
		"values":                      {"[" + strings.Repeat("a, ", 300_000) + "]", 1, 0, "more than 100000 values"},
		"lines":                       {lines("# a\n", 50_001), 50_001, 1, "more than 50000 lines"},
		"empty lines":                 {"a: |\n" + lines("\n", 501), 502, 1, "more than 500 empty lines"},
		"keys":                        {manyKeys(2001), 2001, 1, "more than 2000 keys"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node, flaw := yamltree.Parse(c.text)
			require.Nil(t, node)
			require.NotNil(t, flaw)
			require.ErrorContains(t, flaw, c.want)
			require.Equal(t, c.line, flaw.Line, "line")
			if c.column != 0 {
				require.Equal(t, c.column, flaw.Column, "column")
			}
		})
	}
}

func bomb(levels int) string {
	var b strings.Builder
	b.WriteString("l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < levels; i++ {
		fmt.Fprintf(&b, "l%d: &l%d [", i, i)
		for range 9 {
			fmt.Fprintf(&b, "*l%d, ", i-1)
		}
		fmt.Fprintf(&b, "*l%d]\n", i-1)
	}
	return b.String()
}

func stairs(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: v\n", i)
	}
	return b.String()
}

func TestParse(t *testing.T) {
	t.Parallel()

	t.Run("every value knows its kind and place", func(t *testing.T) {
		t.Parallel()
		node, flaw := yamltree.Parse("---\n# a comment\nname: Lantern\nsize: 3\nopen: true\nrest:\nlist:\n  - 'a'\n  - |\n    b\n    c\n")
		require.Nil(t, flaw)
		require.Equal(t, yamltree.Map, node.Kind)
		var got []string
		for _, e := range node.Entries {
			got = append(got, fmt.Sprintf("%d:%d %s %s", e.Line, e.Column, e.Key, e.Value.Kind))
		}
		require.Equal(t, []string{
			"3:1 name text", "4:1 size a whole number", "5:1 open true or false", "6:1 rest nothing", "7:1 list a list",
		}, got)
		items := node.Entries[4].Value.Items
		require.Equal(t, "a", items[0].Text)
		require.Equal(t, "b\nc\n", items[1].Text)
		require.Equal(t, []int{8, 9}, []int{items[0].Line, items[1].Line})
	})

	t.Run("an alias repeats its value and points at itself", func(t *testing.T) {
		t.Parallel()
		node, flaw := yamltree.Parse("a: &rules [x, y]\nb: *rules\n")
		require.Nil(t, flaw)
		b := node.Entries[1].Value
		require.Len(t, b.Items, 2)
		require.Equal(t, "y", b.Items[1].Text)
		require.Equal(t, 2, b.Items[1].Line)
		require.Equal(t, 1, node.Entries[0].Value.Items[1].Line)
	})

	t.Run("repeated keys are kept in order", func(t *testing.T) {
		t.Parallel()
		node, flaw := yamltree.Parse("a: 1\nb: 2\na: 3\n")
		require.Nil(t, flaw)
		require.Len(t, node.Entries, 3)
	})

	t.Run("windows line ends and tabs inside text are fine", func(t *testing.T) {
		t.Parallel()
		node, flaw := yamltree.Parse("a: 1\r\nb: |\r\n  x\r\n  \ty\r\n")
		require.Nil(t, flaw)
		require.Len(t, node.Entries, 2)
	})

	t.Run("a number too large is the nearest that fits", func(t *testing.T) {
		t.Parallel()
		node, flaw := yamltree.Parse("a: 18446744073709551615\n")
		require.Nil(t, flaw)
		require.Equal(t, int64(9223372036854775807), node.Entries[0].Value.Int)
	})

	for _, text := range []string{"", "\n", "# only a comment\n", "---\n", "---\n...\n"} {
		t.Run(fmt.Sprintf("%q is an empty document", text), func(t *testing.T) {
			t.Parallel()
			node, flaw := yamltree.Parse(text)
			require.Nil(t, flaw)
			require.Equal(t, yamltree.Null, node.Kind)
		})
	}
}
