package sqllease

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/hasp-dev/hasp/driver"
)

// SchemaSQL answers the statements that make the tables, for people who run their
// migrations by other means. They may be run again.
func SchemaSQL(dialect Dialect, opts *Options) (string, error) {
	tables, err := NewTables(dialect.Quote, opts)
	if err != nil {
		return "", fmt.Errorf("%s: %w", dialect.Name, err)
	}
	return tables.Expand(dialect.Schema), nil
}

// Migrate makes the tables, or leaves them where they are there. Many processes may do
// so at once. Tables of a newer release are refused.
func Migrate(ctx context.Context, db *sql.DB, dialect Dialect, opts *Options) error {
	text, err := SchemaSQL(dialect, opts)
	if err != nil {
		return err
	}
	d := New(db, dialect, opts)
	defer d.cancel()
	_, err = detached(ctx, d.Client, func(ctx context.Context, trouble *atomic.Pointer[error]) (bool, error) {
		return true, d.retry(ctx, trouble, func() error { return d.migrate(ctx, text) })
	})
	return err
}

func (d *Driver) migrate(ctx context.Context, text string) error {
	if err := d.dialect.Inspect(ctx, d.db, Tables{}); err != nil {
		return err
	}
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	tx, err := conn.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	for _, statement := range split(text) {
		if _, err := tx.ExecContext(context.WithoutCancel(ctx), statement); err != nil {
			return err
		}
	}
	var oldest int64
	query := d.tables.Expand("SELECT value FROM {meta} WHERE name = 'oldest_client'")
	if err := tx.QueryRowContext(context.WithoutCancel(ctx), query).Scan(&oldest); err != nil {
		return err
	}
	if oldest > schemaVersion {
		return newerSchema(d.dialect.Name)
	}
	return tx.Commit()
}

// split cuts a schema into its statements. Each ends with a semicolon at a line's end.
func split(text string) []string {
	var all []string
	var b strings.Builder
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "--") {
			continue
		}
		b.WriteString(line)
		if strings.HasSuffix(trimmed, ";") {
			all = append(all, b.String())
			b.Reset()
		}
	}
	return all
}

// CheckVersion refuses tables this release must not use; oldest is what hasp_meta says.
func CheckVersion(name string, oldest sql.NullInt64) error {
	if !oldest.Valid {
		return fmt.Errorf("%s: %w: hasp_meta does not say which schema it is: run `hasp migrate`", name, driver.ErrRefused)
	}
	return glance{oldest: oldest}.usable(name)
}
