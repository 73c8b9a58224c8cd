package nearest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/nearest"
)

func TestNames(t *testing.T) {
	t.Parallel()
	names := []string{"assignee", "status", "waiting_on", "title"}
	for _, c := range []struct{ name, written, want string }{
		{"a letter too few finds the name", "asignee", "assignee"},
		{"camel case is no distance at all", "waitingOn", "waiting_on"},
		{"an unrelated name finds nothing", "colour", ""},
		{"an empty name finds nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, ok := nearest.One(c.written, names)
			require.Equal(t, c.want, got)
			require.Equal(t, c.want != "", ok)
		})
	}
}

func TestNearestComesFirst(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"get_page", "get_pages"}, nearest.Few("get_page", []string{"get_pages", "get_page", "reply"}, 3))
}
