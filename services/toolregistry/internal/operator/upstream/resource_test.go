package upstream_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/upstream"
)

func TestWhichURIsATemplateCanHaveMade(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		template, uri string
		fits          bool
	}{
		{"wiki:{page}", "wiki:home", true},
		{"wiki:{page}", "wiki:a/b", false},
		{"wiki:{+path}", "wiki:a/b?c", true},
		{"file:///{dir}/x.{ext}", "file:///a/x.txt", true},
		{"file:///{dir}/x.{ext}", "file:///a/xytxt", false},
		{"a:b{?q,r}", "a:b?q=1&r=2", true},
		{"a:b{?q}", "a:b", true},
		{"a:b", "a:b", true},
		{"a:b", "a:bc", false},
		{"a:{b", "a:{b", true},
	} {
		require.Equal(t, c.fits, upstream.Fits(c.template, c.uri), "%s %s", c.template, c.uri)
	}
}
