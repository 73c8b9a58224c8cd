package store_test

import (
	"testing"

	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/services/knowledge/internal/store"
)

func TestMigrationsGoUpDownAndUpAgain(t *testing.T) {
	t.Parallel()
	pgtest.UpDownUp(t, store.Migrations())
}
