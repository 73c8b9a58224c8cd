package label_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/label"
)

func declare(t require.TestingT, texts ...string) []label.Label {
	labels := make([]label.Label, 0, len(texts))
	for _, text := range texts {
		slug, read, ok := strings.Cut(text, "=")
		if !ok {
			read = slug
		}
		l, err := label.New("tags_add[0].slug", slug, read)
		require.NoError(t, err)
		labels = append(labels, l)
	}
	return labels
}

func refused(t *testing.T, err error, field string) string {
	t.Helper()
	f, ok := fault.As(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, fault.Invalid, f.Class)
	require.Equal(t, field, f.Field)
	return f.Message
}

func TestASlugIsNormalised(t *testing.T) {
	t.Parallel()
	for text, slug := range map[string]string{
		"Back End": "back-end", "  back__end ": "back-end", "#Urgent!": "urgent", "C++ & Go": "c-go", "不具合": "不具合", "Ação 2": "ação-2", "🔥": "", "--": "", "": "",
		"مهم جدا": "مهم-جدا",
	} {
		require.Equal(t, slug, label.Slug(text), text)
	}
}

func TestNormalisingASlugAgainChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		slug := label.Slug(rapid.String().Draw(t, "text"))
		require.Equal(t, slug, label.Slug(slug))
	})
}

func TestAnUndeclaredLabelIsRefusedWithTheNearestMatch(t *testing.T) {
	t.Parallel()
	declared := declare(t, "backend", "frontend")
	_, err := label.Check(declared, nil, []string{"bakend"}, false)
	require.Contains(t, refused(t, err, "labels"), "did you mean backend?")
	_, err = label.Check(declared, nil, []string{"design"}, false)
	require.Contains(t, refused(t, err, "labels"), "there are backend, frontend")
	_, err = label.Check(nil, nil, []string{"design"}, false)
	require.Contains(t, refused(t, err, "labels"), "it has none yet")
}

func TestALabelIsNamedBySlugOrByWhatItReads(t *testing.T) {
	t.Parallel()
	declared := declare(t, "be=Back End", "urgent")
	c, err := label.Check(declared, nil, []string{"Back end", "URGENT", "be", "#urgent"}, false)
	require.NoError(t, err)
	require.Equal(t, []string{"be", "urgent"}, c.Slugs, "each once, in the order wanted")
	require.Empty(t, c.Create)
}

func TestMissingLabelsAreDeclaredOnlyWhenAskedTo(t *testing.T) {
	t.Parallel()
	c, err := label.Check(declare(t, "backend"), nil, []string{"backend", "Needs Design", "needs-design"}, true)
	require.NoError(t, err)
	require.Equal(t, []string{"backend", "needs-design"}, c.Slugs)
	require.Len(t, c.Create, 1)
	require.Equal(t, "Needs Design", c.Create[0].Label)
	_, err = label.Check(nil, nil, []string{"🔥🔥"}, true)
	require.Contains(t, refused(t, err, "labels"), "neither letters nor digits")
	_, err = label.Check(nil, nil, []string{strings.Repeat("x", label.MaxBytes+1)}, true)
	require.Contains(t, refused(t, err, "labels"), "64 bytes")
	_, err = label.Check(nil, nil, []string{strings.Repeat("x", label.MaxBytes)}, true)
	require.NoError(t, err)
}

func TestASlugWithinATypoOfAnotherIsAcceptedWithAWarning(t *testing.T) {
	t.Parallel()
	c, err := label.Check(declare(t, "backend"), nil, []string{"bakcend"}, true)
	require.NoError(t, err)
	require.Equal(t, []string{"bakcend"}, c.Slugs)
	require.Contains(t, c.Warnings[0], "nearly backend")
}

func TestALabelCollidingWithAnotherLabelOrSlugIsRefused(t *testing.T) {
	t.Parallel()
	declared := declare(t, "be=Back End", "server")
	for _, text := range []string{"x=back end", "back-end=Something", "y=Server", "y=BE"} {
		_, err := label.Edit{Add: declare(t, text)}.Apply(declared)
		require.Contains(t, refused(t, err, "tags_add[0].slug"), "would be taken for", text)
	}
	_, err := label.Edit{Rename: []label.Rename{{Slug: "server", Label: "Back-End"}}}.Apply(declared)
	require.Contains(t, refused(t, err, "tags_rename[0].slug"), "would be taken for be")
}

func TestDeclaringWhatIsThereIsNoMistake(t *testing.T) {
	t.Parallel()
	declared := declare(t, "be=Back End")
	out, err := label.Edit{Add: declare(t, "be=Back End", "be=Other", "new", "new")}.Apply(declared)
	require.NoError(t, err)
	require.Len(t, out.Added, 1)
	require.Len(t, out.Warnings, 1)
	require.Contains(t, out.Warnings[0], "tags_rename")
	require.Empty(t, out.Changed)
}

func TestArchivingALabelIsOneWayAndItemsKeepIt(t *testing.T) {
	t.Parallel()
	declared := declare(t, "old", "new")
	out, err := label.Edit{Archive: []string{"old"}}.Apply(declared)
	require.NoError(t, err)
	require.Len(t, out.Changed, 1)
	declared[0] = out.Changed[0]
	require.True(t, declared[0].Archived)
	_, err = label.Edit{Add: declare(t, "old")}.Apply(declared)
	require.Contains(t, refused(t, err, "tags_add[0].slug"), "stays so")
	_, err = label.Check(declared, nil, []string{"old"}, true)
	require.Contains(t, refused(t, err, "labels"), "archived")
	c, err := label.Check(declared, []string{"old"}, []string{"old", "new"}, false)
	require.NoError(t, err)
	require.Equal(t, []string{"old", "new"}, c.Slugs)
	out, err = label.Edit{Archive: []string{"old"}}.Apply(declared)
	require.NoError(t, err)
	require.Empty(t, out.Changed, "again is no change")
}

func TestARenameKeepsTheSlug(t *testing.T) {
	t.Parallel()
	out, err := label.Edit{Add: declare(t, "fresh"), Rename: []label.Rename{{Slug: "be", Label: "Server side"}, {Slug: "fresh", Label: "Just in"}}}.
		Apply(declare(t, "be"))
	require.NoError(t, err)
	require.Equal(t, "be", out.Changed[0].Slug)
	require.Equal(t, "Server side", out.Changed[0].Label)
	require.Equal(t, "Just in", out.Added[0].Label)
	_, err = label.Edit{Rename: []label.Rename{{Slug: "bee", Label: "x"}}}.Apply(declare(t, "been"))
	require.Contains(t, refused(t, err, "tags_rename[0].slug"), "there is no label")
	_, err = label.Edit{Archive: []string{"nope"}}.Apply(nil)
	refused(t, err, "tags_archive[0]")
}

func TestAnItemHasFortyLabelsAtMostAndAProjectFiveHundredAndTwelve(t *testing.T) {
	t.Parallel()
	var wanted, texts []string
	for n := range label.MaxPerItem + 1 {
		wanted = append(wanted, fmt.Sprintf("label %03d", n))
	}
	_, err := label.Check(nil, nil, wanted, true)
	require.Contains(t, refused(t, err, "labels"), "40 at most")
	_, err = label.Check(nil, nil, wanted[:label.MaxPerItem], true)
	require.NoError(t, err)
	for n := range label.MaxPerProject {
		texts = append(texts, fmt.Sprintf("t%d", n))
	}
	declared := declare(t, texts...)
	_, err = label.Check(declared, nil, []string{"one more"}, true)
	require.Contains(t, refused(t, err, "labels_create_missing"), "512")
	_, err = label.Check(declared, nil, []string{"t1"}, true)
	require.NoError(t, err)
	_, err = label.Edit{Add: declare(t, "one more")}.Apply(declared)
	require.Contains(t, refused(t, err, "tags_add"), "513")
}

func TestAColourIsSixHexDigits(t *testing.T) {
	t.Parallel()
	l := declare(t, "a")[0]
	require.NoError(t, l.Paint("color", "#1f6FEB"))
	require.NoError(t, l.Paint("color", ""))
	refused(t, l.Paint("color", "red"), "color")
	refused(t, l.Paint("color", "#fff"), "color")
}

func TestNoTwoLabelsOfAProjectEverReadAlike(t *testing.T) {
	t.Parallel()
	words := rapid.SampledFrom([]string{"a", "A", "b", "a b", "A-B", "ab", "B", "c"})
	rapid.Check(t, func(t *rapid.T) {
		var declared []label.Label
		for range rapid.IntRange(1, 12).Draw(t, "edits") {
			l, err := label.New("x", words.Draw(t, "slug"), words.Draw(t, "label"))
			require.NoError(t, err)
			e := label.Edit{Add: []label.Label{l}}
			if len(declared) > 0 && rapid.Bool().Draw(t, "rename") {
				e = label.Edit{Rename: []label.Rename{{Slug: declared[0].Slug, Label: words.Draw(t, "text")}}}
			}
			out, err := e.Apply(declared)
			if err != nil {
				continue
			}
			for _, changed := range out.Changed {
				for n := range declared {
					if declared[n].Slug == changed.Slug {
						declared[n] = changed
					}
				}
			}
			declared = append(declared, out.Added...)
		}
		owner := map[string]string{}
		for _, l := range declared {
			for _, name := range []string{l.Slug, l.Name()} {
				if before, ok := owner[name]; ok {
					require.Equal(t, before, l.Slug, name)
				}
				owner[name] = l.Slug
			}
		}
	})
}
