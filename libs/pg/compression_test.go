package pg

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestWithoutLZ4(t *testing.T) {
	t.Parallel()
	files := withoutLZ4{fstest.MapFS{"migrations/000001_a.up.sql": {Data: []byte(
		"create table a (body bytea compression lz4 not null,\n\tother jsonb\n\tCOMPRESSION LZ4, compression text);")}}}
	body, err := fs.ReadFile(files, "migrations/000001_a.up.sql")
	require.NoError(t, err)
	require.Equal(t, "create table a (body bytea not null,\n\tother jsonb, compression text);", string(body))

	top, err := newest(files)
	require.NoError(t, err)
	require.EqualValues(t, 1, top)
}
