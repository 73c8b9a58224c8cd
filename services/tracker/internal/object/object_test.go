package object_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/services/tracker/internal/object"
	"github.com/bullpenhq/bullpen/services/tracker/internal/object/s3test"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

func TestPostgresKeepsWhatAStorePromises(t *testing.T) {
	t.Parallel()
	suite(t, store.NewChunks(pgtest.Pool(t, "tracker", store.Migrations())))
}

func TestAnS3ServerKeepsWhatAStorePromises(t *testing.T) {
	t.Parallel()
	s, err := object.NewS3(s3test.Start(t))
	require.NoError(t, err)
	suite(t, s)
}

func TestAnErrorOfTheStoreCarriesNoAddress(t *testing.T) {
	t.Parallel()
	s, err := object.NewS3(object.S3Options{Endpoint: "http://127.0.0.1:1", Bucket: "b", Region: "us-east-1", AccessKey: "the-access-key", SecretKey: "the-secret-key"})
	require.NoError(t, err)
	err = s.Delete(t.Context(), uuid.New())
	require.ErrorContains(t, err, "the object store")
	require.NotContains(t, err.Error(), "the-access-key")
	require.NotContains(t, err.Error(), "http://")
}

func suite(t *testing.T, s object.Store) {
	t.Helper()
	ctx := t.Context()
	require.NoError(t, s.Ping(ctx))

	random := make([]byte, 5<<20+17)
	_, err := rand.NewChaCha8([32]byte{7}).Read(random)
	require.NoError(t, err)
	for name, content := range map[string][]byte{"empty": {}, "one byte": {0}, "a chunk": random[:256<<10], "a chunk and a byte": random[:256<<10+1], "many chunks": random} {
		for _, size := range []int64{int64(len(content)), -1} {
			id := uuid.New()
			require.NoError(t, s.Put(ctx, id, bytes.NewReader(content), size), name)
			for _, at := range []struct {
				offset int64
				limit  int
			}{{0, 1}, {0, len(content) + 10}, {int64(len(content) / 2), 1000}, {256<<10 - 3, 7}, {int64(max(0, len(content)-5)), 100}} {
				if at.offset >= int64(len(content)) {
					continue
				}
				got, err := s.Read(ctx, id, at.offset, at.limit)
				require.NoError(t, err, name)
				want := content[at.offset:min(len(content), int(at.offset)+at.limit)]
				require.True(t, bytes.Equal(want, got), "%s: %d bytes from %d: got %d", name, at.limit, at.offset, len(got))
			}
			require.NoError(t, s.Delete(ctx, id))
			require.NoError(t, s.Delete(ctx, id), "what is gone is gone")
			if len(content) > 0 {
				_, err = s.Read(ctx, id, 0, 10)
				require.Equal(t, fault.Unavailable, fault.ClassOf(err))
				require.ErrorContains(t, err, "neither missing nor empty")
			}
		}
	}

	broken := errors.New("the sender went away")
	id := uuid.New()
	require.ErrorIs(t, s.Put(ctx, id, io.MultiReader(bytes.NewReader(random[:300<<10]), fails{broken}), -1), broken)
	require.NoError(t, s.Delete(context.WithoutCancel(ctx), id))
}

type fails struct{ err error }

func (f fails) Read([]byte) (int, error) { return 0, f.err }
