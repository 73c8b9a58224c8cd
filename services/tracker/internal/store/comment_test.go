package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

func TestTheLatest16WhoSpokeInAThreadHearThatItGoesOn(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "tracker", store.Migrations())
	var last store.Event
	encode := func(e store.Event) (outbox.Message, error) {
		last = e
		return outbox.Message{Topic: "t", Key: "k", EventID: uuid.New(), Type: "t"}, nil
	}
	s, err := store.Open(t.Context(), pool, encode, func() {})
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `insert into projects (key, name, epoch) values ('OPS', 'Operations', 1)`)
	require.NoError(t, err)
	id := uuid.New()
	_, err = pool.Exec(t.Context(), `insert into items (id, project, number, type, title, status, status_group, reporter, reporter_kind, created_at, updated_at, status_entered_at)
		values ($1, 'OPS', 1, 'task', 'Talk', 'todo', 0, 'dev', 'agent', now(), now(), now())`, id)
	require.NoError(t, err)
	for n := range 20 {
		by := item.Actor{Name: fmt.Sprintf("seat-%02d", n%18), Kind: "agent", Seat: fmt.Sprintf("seat-%02d", n%18)}
		a := store.Act{By: by, At: time.Now().Truncate(time.Microsecond), Org: &org.Org{}}
		c := &store.Comment{ID: uuid.Must(uuid.NewV7()), Author: by, Body: "hello", CreatedAt: a.At}
		post := store.Post{Name: id.String(), Comment: c, Act: a}
		err := s.InsertComment(t.Context(), ops.Operation{Tool: "comment_on_work_item"}, &emptypb.Empty{}, post, func(*item.Item, ops.Position) {})
		require.NoError(t, err)
	}
	require.Len(t, last.Facts.Thread, 16)
	require.Equal(t, []string{"seat-00", "seat-17", "seat-16"}, last.Facts.Thread[:3])
	require.Equal(t, []string{"seat-04", "seat-03"}, last.Facts.Thread[14:])
}
