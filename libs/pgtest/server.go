package pgtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/libs/pg/pgserver"
)

// server is where databases are made.
type server struct {
	dsn string
	// lifeline keeps the server's files; see reapedDir. Nil for a server that was given.
	lifeline io.Closer

	mu        sync.Mutex
	templates map[string]*template
}

// template is a migrated database that tests copy.
type template struct {
	once sync.Once
	name string
	err  error
}

// shared answers the one server of this process.
var shared = sync.OnceValues(func() (_ *server, err error) {
	s := &server{dsn: os.Getenv(databaseURLEnv), templates: map[string]*template{}}
	if s.dsn != "" {
		return s, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	var dir string
	if dir, s.lifeline, err = reapedDir(); err != nil {
		return nil, err
	}
	if err := copyCluster(ctx, dir); err != nil {
		return nil, err
	}
	running, err := pgserver.Start(ctx, pgserver.Options{DataDir: dir, Throwaway: true})
	if err != nil {
		return nil, err
	}
	s.dsn = running.DSN()
	return s, nil
})

// database makes a database for one test, as a copy of a template when one is named, and answers its address.
func (s *server) database(ctx context.Context, t testing.TB, template string) string {
	t.Helper()
	name := "bullpen_test_" + strings.ToLower(rand.Text()[:16])
	create := "create database " + name
	if template != "" {
		create += " template " + template
	}
	if err := s.exec(ctx, create); err != nil {
		t.Fatalf("make a database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
		defer cancel()
		if err := s.exec(ctx, "drop database if exists "+name+" with (force)"); err != nil {
			t.Errorf("drop the database: %v", err)
		}
	})
	return withDatabase(s.dsn, name)
}

// template answers the name of a database with the schema migrated. Its name follows from the migrations, so that on a
// lasting server every process finds the same one.
func (s *server) template(ctx context.Context, schema string, migrations fs.FS) (string, error) {
	digest, err := digest(schema, migrations)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	t := s.templates[digest]
	if t == nil {
		t = &template{name: "bullpen_template_" + digest}
		s.templates[digest] = t
	}
	s.mu.Unlock()
	t.once.Do(func() { t.err = s.migrate(ctx, t.name, schema, migrations) })
	return t.name, t.err
}

// migrate makes a template unless the server has it. It is built under another name and then renamed, so that a template
// is whole or not there.
func (s *server) migrate(ctx context.Context, name, schema string, migrations fs.FS) error {
	conn, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	// Held until the connection closes; other processes may want the same template of a lasting server.
	if _, err := conn.Exec(ctx, "select pg_advisory_lock(hashtextextended($1, 0))", name); err != nil {
		return err
	}
	var there bool
	const exists = "select exists (select from pg_database where datname = $1)"
	if err := conn.QueryRow(ctx, exists, name).Scan(&there); err != nil || there {
		return err
	}
	draft := name + "_draft"
	for _, statement := range []string{"drop database if exists " + draft, "create database " + draft} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	if err := pg.Migrate(ctx, withDatabase(s.dsn, draft), map[string]fs.FS{schema: migrations}); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "alter database "+draft+" rename to "+name)
	return err
}

func (s *server) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

// withDatabase points an address, in either of its two spellings, at another database.
func withDatabase(dsn, name string) string {
	if u, err := url.Parse(dsn); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		u.Path = "/" + name
		return u.String()
	}
	return dsn + " dbname=" + name
}

// digest tells migrations apart by what they say and where they go.
func digest(schema string, migrations fs.FS) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", schema)
	err := fs.WalkDir(migrations, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(migrations, path)
		fmt.Fprintf(h, "%q %q\n", path, body)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)[:12]), err
}
