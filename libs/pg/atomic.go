package pg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"

	"github.com/golang-migrate/migrate/v4/database"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// atomicDriver makes a migration and the note that it was made one transaction. golang-migrate itself notes "begun" before a
// migration and "made" after it, and after a kill between the two nobody can tell how far it came; here a kill leaves all of it
// or nothing, and the next start goes on.
//
// It serves one migration after another and is not safe for concurrent use, as migrate.Migrate does not ask for.
type atomicDriver struct {
	database.Driver
	db *sql.DB
	// next is the version that the migration to come leads to.
	next int
	// made says that Run has noted it.
	made bool
}

// SetVersion is called before a migration (dirty) and after it. Only a migration without a file leaves it anything to write.
func (d *atomicDriver) SetVersion(version int, dirty bool) error {
	switch {
	case dirty:
		d.next, d.made = version, false
		return nil
	case d.made && version == d.next:
		return nil
	default:
		return d.Driver.SetVersion(version, dirty)
	}
}

// Run makes the migration.
func (d *atomicDriver) Run(migration io.Reader) error {
	statements, err := io.ReadAll(migration)
	if err != nil {
		return fmt.Errorf("read migration %d: %w", d.next, err)
	}
	ctx := context.Background()
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return unreachable(err)
	}
	defer conn.Close()
	err = conn.Raw(func(raw any) error {
		return pgx.BeginFunc(ctx, raw.(*stdlib.Conn).Conn(), func(tx pgx.Tx) error {
			return d.make(ctx, tx, string(statements))
		})
	})
	d.made = err == nil
	return err
}

// openTransaction is what Postgres calls the state of a session whose transaction is under way.
const openTransaction = 'T'

func (d *atomicDriver) make(ctx context.Context, tx pgx.Tx, statements string) error {
	if _, err := tx.Exec(ctx, statements, pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("migration %d%s: %w", d.next, lineOf(err, statements), err)
	}
	if tx.Conn().PgConn().TxStatus() != openTransaction {
		return fmt.Errorf("migration %d ends the transaction that it runs in; it must contain no commit and no rollback", d.next)
	}
	note := pgx.Batch{}
	note.Queue("delete from " + versionTable)
	note.Queue("insert into "+versionTable+" (version, dirty) values ($1, false)", d.next)
	if err := tx.SendBatch(ctx, &note).Close(); err != nil {
		return fmt.Errorf("note that migration %d is made: %w", d.next, err)
	}
	return nil
}

// lineOf answers where in the statements a mistake is, if Postgres says so.
func lineOf(err error, statements string) string {
	failed, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || failed.Position <= 0 {
		return ""
	}
	line, left := 1, failed.Position
	for _, r := range statements {
		if left--; left == 0 {
			break
		}
		if r == '\n' {
			line++
		}
	}
	return fmt.Sprintf(", line %d", line)
}
