package file_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/file"
)

func TestAPathIsSegmentsPartedBySlashes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a.md": "a.md", "/a/b.md": "a/b.md", "ordner/zusammenfassung – März.md": "ordner/zusammenfassung – März.md", "...": "...", ".hidden": ".hidden",
	} {
		got, err := file.CleanPath("path", in)
		require.NoError(t, err, in)
		require.Equal(t, want, got)
	}
	for in, says := range map[string]string{
		"": "must name a file", "/": "must name a file", "a//b": "//", "a/./b": `"."`, "../b": `".."`, "a/..": `".."`, `a\b`: "not with",
		"a/": "must not end in /", "a\tb": "control characters", "a\x00": "control characters", "\xff": "UTF-8", strings.Repeat("a", 1025): "at most 1024",
	} {
		_, err := file.CleanPath("path", in)
		refused, ok := fault.As(err)
		require.True(t, ok, in)
		require.Equal(t, fault.Invalid, refused.Class)
		require.Equal(t, "path", refused.Field)
		require.Contains(t, refused.Message, says, in)
	}
	_, err := file.CleanPath("path", strings.Repeat("a", 1024))
	require.NoError(t, err)
}

func TestAFolderIsSegmentExact(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "/": "", "a": "a/", "a/b/": "a/b/", "/a": "a/"} {
		got, err := file.CleanFolder("folder", in)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestPagesOfATextAreWholeCharactersAndMakeUpTheText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.StringMatching(`[a-zäß€😀\n]{0,40}`).Draw(t, "text"))
		limit := rapid.IntRange(1, 9).Draw(t, "limit")
		var shown []byte
		for offset := int64(0); ; {
			raw := text[offset:min(len(text), int(offset)+limit+utf8.UTFMax-1)]
			page := file.Text(raw, offset, int64(len(text)), limit)
			require.False(t, page.Binary)
			require.True(t, utf8.Valid(page.Content))
			require.LessOrEqual(t, len(page.Content), max(limit, utf8.UTFMax))
			shown = append(shown, page.Content...)
			if page.Next == 0 {
				break
			}
			require.Greater(t, page.Next, offset)
			offset = page.Next
		}
		require.True(t, bytes.Equal(text, shown))
	})
}

func TestWhatIsNoTextIsShownAsBinary(t *testing.T) {
	t.Parallel()
	require.True(t, file.Text([]byte("a\x00b"), 0, 3, 10).Binary)
	require.True(t, file.Text([]byte("\xff\xfe"), 0, 2, 10).Binary)
	require.True(t, file.Text([]byte("caf\xc3"), 0, 4, 10).Binary, "a text that ends inside a character")
	require.False(t, file.Text([]byte("caf\xc3"), 0, 5, 10).Binary, "a part that ends inside a character")
}

func TestAVersionThatIsNotTheFilesIsRefusedWithTheCurrentOne(t *testing.T) {
	t.Parallel()
	read := int32(2)
	require.NoError(t, file.Precondition(nil, "a.md", nil))
	require.NoError(t, file.Precondition(&file.File{Version: 2}, "a.md", &read))
	err := file.Precondition(&file.File{Version: 3}, "a.md", &read)
	refused, _ := fault.As(err)
	require.Equal(t, fault.StaleVersion, refused.Class)
	require.Equal(t, "3", refused.Facts["current_version"])
	require.Equal(t, fault.StaleVersion, fault.ClassOf(file.Precondition(nil, "a.md", &read)))
}
