package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/hasp-dev/hasp"
)

// Table is a fence in a table of its own, one row for each resource, for data that has no
// room for a column. It must be in the database of the data, since it holds within one
// transaction with the writes. Migrate makes it.
//
// A row stays when its lock is long forgotten. It is safe to delete once no holder from
// that time can be alive: 64 × microseconds since 1970 is about the token of a grant at that time.
type Table struct {
	Dialect Dialect
	// Name, with its schema if need be. Defaults to "hasp_fences".
	Name string
}

// Raise raises the fence of each key the lease holds, by its full name with the client's
// prefix, and keeps them until the transaction ends; otherwise as [Column.Raise].
func (t Table) Raise(ctx context.Context, tx *sql.Tx, lease *hasp.Lease) error {
	token, err := Token(lease)
	if err != nil {
		return err
	}
	for _, key := range lease.Ref().Keys { // sorted: two leases meet in the same order
		if err := t.Admit(ctx, tx, token, key); err != nil {
			return err
		}
	}
	return nil
}

// Admit raises the fence of one resource to a token that came from elsewhere, as with a
// request. A resource is the key that was locked, or what you call it everywhere.
func (t Table) Admit(ctx context.Context, tx *sql.Tx, token int64, resource string) error {
	if err := errors.Join(t.check(), checkResource(resource), checkToken(token), checkTx(tx)); err != nil {
		return err
	}
	return t.row(token, resource).in(ctx, tx)
}

// Migrate makes the table where it is missing. Many processes may do so at once.
func (t Table) Migrate(ctx context.Context, db *sql.DB) error {
	text, err := t.SchemaSQL()
	if err != nil {
		return err
	}
	if db == nil {
		return invalidf("the *sql.DB is nil")
	}
	if err := t.migrate(ctx, db, text); err != nil {
		return fmt.Errorf("fence: table %s: %w", t.name(), err)
	}
	return nil
}

func (t Table) migrate(ctx context.Context, db *sql.DB, text string) error {
	if t.Dialect != PostgreSQL {
		_, err := db.ExecContext(ctx, text)
		return err
	}
	// Two that make the same table at once: PostgreSQL fails one of them, so they queue.
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do
	for _, statement := range []string{"SELECT pg_advisory_xact_lock(7233183901389713253)", text} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// SchemaSQL answers the statement that Migrate runs.
func (t Table) SchemaSQL() (string, error) {
	if err := t.check(); err != nil {
		return "", err
	}
	resource, end := "BYTEA", ""
	switch t.Dialect {
	case PostgreSQL:
	case MySQL:
		resource, end = fmt.Sprintf("VARBINARY(%d)", maxResource), " ENGINE = InnoDB"
	case SQLite:
		resource, end = "BLOB", " WITHOUT ROWID"
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (resource %s NOT NULL PRIMARY KEY, token BIGINT NOT NULL)%s",
		t.Dialect.quote(t.name()), resource, end), nil
}

func (t Table) check() error {
	return errors.Join(t.Dialect.check(), checkName("Table.Name", t.name(), 1))
}

func (t Table) name() string {
	if t.Name == "" {
		return "hasp_fences"
	}
	return t.Name
}

func (t Table) row(token int64, resource string) row {
	d, table, key := t.Dialect, t.Dialect.quote(t.name()), []byte(resource)
	r := row{
		resource: resource,
		token:    token,
		counts:   d != MySQL,
		raise: query{
			text: "INSERT INTO " + table + " AS f (resource, token) VALUES (" + d.marker(1) + ", " + d.marker(2) + ")" +
				" ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE f.token <= excluded.token",
			args: []any{key, token},
		},
		read: query{text: "SELECT token FROM " + table + " WHERE resource = " + d.marker(1) + d.locking(), args: []any{key}},
	}
	if d == MySQL {
		r.raise.text = "INSERT INTO " + table + " (resource, token) VALUES (?, ?) ON DUPLICATE KEY UPDATE token = GREATEST(token, ?)"
		r.raise.args = append(r.raise.args, token)
	}
	return r
}
