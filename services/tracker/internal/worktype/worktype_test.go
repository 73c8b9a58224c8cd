package worktype_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/worktype"
)

func revise(t *testing.T, declared []worktype.Type, wanted ...worktype.Type) []worktype.Type {
	t.Helper()
	next, err := worktype.Revise(declared, wanted)
	require.NoError(t, err)
	return next
}

func refused(t *testing.T, err error, field string) string {
	t.Helper()
	f, ok := fault.As(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, fault.Invalid, f.Class)
	require.Equal(t, field, f.Field)
	return f.Message
}

func TestTheBuiltinTypesAreThereWithoutADeclaration(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"task", "bug", "epic", "story", "spike", "chore", "milestone"}, worktype.Effective(nil).Slugs())
	slug, err := worktype.Effective(nil).Check("type", "", "")
	require.NoError(t, err)
	require.Equal(t, "task", slug)
}

func TestADeclaredSlugRenamesABuiltin(t *testing.T) {
	t.Parallel()
	declared := revise(t, nil, worktype.Type{Slug: "bug", Label: "Defect"})
	set := worktype.Effective(declared)
	require.Len(t, set, 7)
	slug, err := set.Check("type", "defect", "")
	require.NoError(t, err)
	require.Equal(t, "bug", slug)
	found, _ := set.Find("bug")
	require.True(t, found.Builtin)
	require.NotEmpty(t, found.Description, "what is not said stays")
	found, _ = worktype.Effective(revise(t, declared)).Find("bug")
	require.Equal(t, "Bug", found.Label, "left out, it is what it was")
}

func TestArchivedTypesTakeNoNewWork(t *testing.T) {
	t.Parallel()
	declared := revise(t, nil, worktype.Type{Slug: "incident", Label: "Incident"})
	declared = revise(t, declared)
	require.True(t, declared[0].Archived, "left out, it is archived")
	set := worktype.Effective(declared)
	_, err := set.Check("type", "incident", "")
	require.Contains(t, refused(t, err, "type"), "takes no new work")
	slug, err := set.Check("type", "incident", "incident")
	require.NoError(t, err, "an item keeps its own")
	require.Equal(t, "incident", slug)
	_, err = worktype.Revise(nil, []worktype.Type{{Slug: "task", Archived: true}})
	refused(t, err, "types[0].archived")
}

func TestAnUnknownTypeIsRefusedWithTheNearestOrAllOfThem(t *testing.T) {
	t.Parallel()
	_, err := worktype.Effective(nil).Check("type", "milstone", "")
	require.Contains(t, refused(t, err, "type"), "did you mean milestone?")
	_, err = worktype.Effective(nil).Check("type", "incident", "")
	require.Contains(t, refused(t, err, "type"), "task, bug, epic")
}

func TestTypesThatReadAlikeAreRefused(t *testing.T) {
	t.Parallel()
	for _, wanted := range [][]worktype.Type{
		{{Slug: "a", Label: "One"}, {Slug: "b", Label: "one"}},
		{{Slug: "defect", Label: "Bug"}},
		{{Slug: "a", Label: "b"}, {Slug: "b", Label: "c"}},
	} {
		_, err := worktype.Revise(nil, wanted)
		refused(t, err, "types")
	}
	_, err := worktype.Revise(nil, []worktype.Type{{Slug: "a"}, {Slug: "A"}})
	refused(t, err, "types[1].slug")
}

func TestSixtyFourTypesTakeWorkAtMost(t *testing.T) {
	t.Parallel()
	var wanted []worktype.Type
	for n := range worktype.MaxTypes - 7 {
		wanted = append(wanted, worktype.Type{Slug: fmt.Sprint("kind-", n)})
	}
	declared := revise(t, nil, wanted...)
	_, err := worktype.Revise(declared, append(wanted, worktype.Type{Slug: "more"}))
	require.Contains(t, refused(t, err, "types"), "65")
	revise(t, declared, append(wanted[1:], worktype.Type{Slug: "more"})...)
}
