package pglease

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hasp-dev/hasp/backend/sqllease"
	"github.com/hasp-dev/hasp/driver"
)

//go:embed sql
var pages embed.FS

// page answers pages of SQL, one behind the other.
func page(names ...string) string {
	var b strings.Builder
	for _, n := range names {
		text, _ := pages.ReadFile("sql/" + n + ".sql") // embedded, so it is there
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.String()
}

// SchemaSQL answers the statements that make tables and functions, for people who run
// their migrations by other means. They may be run again, in one transaction.
func SchemaSQL(opts *Options) (string, error) {
	n, err := newNames(opts)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return n.expand(page("tables", "lines", "claims", "views")), nil
}

// Migrate makes the tables and functions, or brings them up to date. Many processes may do
// so at once. Tables of a newer release are left as they are, or refused.
func Migrate(ctx context.Context, pool *pgxpool.Pool, opts *Options) error {
	return migrate(ctx, New(pool, opts), opts)
}

// MigrateSQL is Migrate over database/sql.
func MigrateSQL(ctx context.Context, db *sql.DB, opts *Options) error {
	return migrate(ctx, NewSQL(db, opts), opts)
}

// guardSQL lets one process at a time migrate, and ends the transaction where the tables
// are newer. {meta} may not be there yet.
const guardSQL = `SELECT pg_advisory_xact_lock(7526752397670245985);
DO $$
DECLARE
  v_schema bigint;
  v_oldest bigint;
BEGIN
  IF to_regclass('{meta}') IS NULL THEN
    RETURN;
  END IF;
  EXECUTE 'SELECT (SELECT value FROM {meta} WHERE name = ''schema''), (SELECT value FROM {meta} WHERE name = ''oldest_client'')'
    INTO v_schema, v_oldest;
  IF v_oldest > 1 THEN
    RAISE EXCEPTION 'hasp: newer tables' USING ERRCODE = 'HS001';
  ELSIF v_schema > 1 THEN
    RAISE EXCEPTION 'hasp: newer tables that this release may use' USING ERRCODE = 'HS002';
  END IF;
END $$;
`

func migrate(ctx context.Context, d *Driver, opts *Options) error {
	if err := d.Features().Err; err != nil {
		return err
	}
	text, err := SchemaSQL(opts)
	if err != nil {
		return err
	}
	n, err := newNames(opts)
	if err != nil {
		return err
	}
	a := d.steps.access
	c := sqllease.NewClient(sqllease.Setup{
		Name: name, Classify: classify, Inspect: func(ctx context.Context) error { return inspectServer(ctx, a) },
	}, d.steps)
	_, err = sqllease.Call(ctx, c, true, func(ctx context.Context) (bool, error) {
		err := a.script(ctx, n.expand(guardSQL)+text)
		var state sqlStater
		if errors.As(err, &state) && state.SQLState() == codeKnown {
			return true, nil
		}
		return true, err
	})
	return errors.Join(err, c.Close(ctx))
}

// functionNames are the functions of the layout, without what begins their names.
func functionNames() []string {
	var all []string
	for _, m := range regexp.MustCompile(`FUNCTION \{`+layout+`(\w+)\}`).FindAllStringSubmatch(page("lines", "claims", "views"), -1) {
		all = append(all, m[1])
	}
	return all
}

var _ driver.Driver = (*Driver)(nil)
