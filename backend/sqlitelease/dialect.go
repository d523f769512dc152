package sqlitelease

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hasp-dev/hasp/backend/sqllease"
	"github.com/hasp-dev/hasp/driver"
)

const name = "sqlitelease"

//go:embed statements.sql
var statements string

//go:embed schema.sql
var schema string

// dialect is SQLite for the engine.
func dialect(w *witness) sqllease.Dialect {
	d := sqllease.Dialect{
		Name:       name,
		Statements: statements,
		Schema:     schema,
		Marker:     func(n int) string { return "?" + strconv.Itoa(n) },
		Quote: func(schema, name string) string {
			if schema != "" {
				name = schema + `"."` + name
			}
			return `"` + name + `"`
		},
		Grain:      time.Millisecond,
		Writers:    1,
		SweepAfter: 30 * time.Second,
		PollMin:    2 * time.Millisecond,
		PollMax:    50 * time.Millisecond,
		Classify:   classify,
		Inspect:    inspect,
	}
	if w != nil {
		here := new(place)
		d.Witness, d.Inspect, d.Intact = w, here.inspect, here.intact
	}
	return d
}

// inspect refuses a database hasp cannot work in, saying what mends it.
func inspect(ctx context.Context, db *sql.DB, t sqllease.Tables) error {
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if mode = strings.ToLower(mode); mode != "wal" && mode != "memory" {
		return fmt.Errorf("%s: %w: the journal mode is %q; hasp needs WAL: run `hasp migrate`, or PRAGMA journal_mode = WAL once, it stays",
			name, driver.ErrRefused, mode)
	}
	if t == (sqllease.Tables{}) {
		return nil
	}
	return inspectTables(ctx, db, t)
}

func inspectTables(ctx context.Context, db *sql.DB, t sqllease.Tables) error {
	var missing []string
	for _, table := range []string{"meta", "claims", "lines", "sessions"} {
		columns, err := primaryKey(ctx, db, t.Name(table))
		if err != nil {
			return err
		}
		switch want := primaryKeys()[table]; columns {
		case want:
		case "":
			missing = append(missing, t.Name(table))
		default:
			return fmt.Errorf("%s: %w: table %s is not hasp's: its primary key is (%s), not (%s); drop it or choose another Options.Prefix, then run `hasp migrate`",
				name, driver.ErrRefused, t.Name(table), columns, want)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s: %w: no table %s: run `hasp migrate`, or call sqlitelease.Migrate",
			name, driver.ErrRefused, strings.Join(missing, ", "))
	}
	if err := inspectIndex(ctx, db, t.Name("claims_session")); err != nil {
		return err
	}
	var oldest sql.NullInt64
	err := db.QueryRowContext(ctx, "SELECT value FROM "+t.Meta+" WHERE name = 'oldest_client'").Scan(&oldest)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return sqllease.CheckVersion(name, oldest)
}

// inspectIndex refuses tables without the index that a statement names.
func inspectIndex(ctx context.Context, db *sql.DB, name string) error {
	var found int
	err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master WHERE type = 'index' AND name = ?1", name).Scan(&found)
	if err == nil && found == 0 {
		err = fmt.Errorf("sqlitelease: %w: no index %s: run `hasp migrate`, or call sqlitelease.Migrate", driver.ErrRefused, name)
	}
	return err
}

func primaryKeys() map[string]string {
	return map[string]string{
		"meta": "name", "claims": "key,waiting,number,id", "lines": "key", "sessions": "inbox,session",
	}
}

// primaryKey names the columns of a table's primary key; "": no such table.
func primaryKey(ctx context.Context, db *sql.DB, table string) (string, error) {
	var columns sql.NullString
	err := db.QueryRowContext(ctx,
		"SELECT group_concat(name) FROM (SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk)", table).Scan(&columns)
	return columns.String, err
}
