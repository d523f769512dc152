package mysqllease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/hasp-dev/hasp/backend/sqllease"
	"github.com/hasp-dev/hasp/driver"
)

// inspect refuses a database hasp cannot work in, saying what mends it.
func (s *server) inspect(ctx context.Context, db *sql.DB, t sqllease.Tables) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := s.look(ctx, conn); err != nil || t == (sqllease.Tables{}) {
		return err
	}
	if err := s.inspectTables(ctx, conn, t); err != nil {
		return err
	}
	if err := inspectVersion(ctx, conn, t); err != nil {
		return lacking(err)
	}
	return lacking(try(ctx, conn, t.Expand(everyColumn)))
}

// everyColumn names all columns that statements use.
const everyColumn = "SELECT m.name, m.value, l.`key`, l.last, l.waited, l.sweep_at, " +
	"c.`key`, c.waiting, c.number, c.id, c.`keys`, c.weight, c.capacity, c.expires_at, c.joined_at, c.hold, c.grace, c.local_index, " +
	"c.fixed, c.own, c.revoked, c.name, c.session, s.inbox, s.session, s.boot, s.file, s.changed, s.expires_at " +
	"FROM {meta} AS m, {lines} AS l, {claims} AS c, {sessions} AS s WHERE FALSE"

// lacking refuses tables without a column that statements use.
func lacking(err error) error {
	var e *mysql.MySQLError
	if !errors.As(err, &e) || e.Number != 1054 { // ER_BAD_FIELD
		return err
	}
	return fmt.Errorf("%s: %w: the tables are not as this release of hasp makes them: drop them or choose another Options.Prefix, then run `hasp migrate`: %w",
		name, driver.ErrRefused, err)
}

// primaryKeys are the columns of each table's primary key.
func primaryKeys() map[string]string {
	return map[string]string{
		"meta": "name", "claims": "key,waiting,number,id", "lines": "key", "sessions": "inbox,session",
	}
}

// inspectTables looks at every table's engine and primary key.
func (s *server) inspectTables(ctx context.Context, conn *sql.Conn, t sqllease.Tables) error {
	found, err := s.describe(ctx, conn, t)
	if err != nil {
		return err
	}
	var missing []string
	for _, table := range []struct{ short, quoted string }{
		{"meta", t.Meta}, {"claims", t.Claims}, {"lines", t.Lines}, {"sessions", t.Sessions},
	} {
		full, want := t.Name(table.short), primaryKeys()[table.short]
		is, ok := found[strings.ToLower(full)]
		switch {
		case !ok:
			// A table without a right to it is not listed either, but has an error of its own.
			if err := try(ctx, conn, "SELECT 1 FROM "+table.quoted+" WHERE FALSE"); classify(err).Kind == sqllease.Refused {
				return err
			}
			missing = append(missing, full)
		case !strings.EqualFold(is.engine, "InnoDB"):
			return fmt.Errorf("%s: %w: table %s is kept by the engine %s, which has no transactions: ALTER TABLE %s ENGINE = InnoDB",
				name, driver.ErrRefused, full, is.engine, table.quoted)
		case is.key != want:
			return fmt.Errorf("%s: %w: table %s is not hasp's: its primary key is (%s), not (%s); drop it or choose another Options.Prefix, then run `hasp migrate`",
				name, driver.ErrRefused, full, is.key, want)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s: %w: no table %s: run `hasp migrate`, or call mysqllease.Migrate",
			name, driver.ErrRefused, strings.Join(missing, ", "))
	}
	return nil
}

// shape is what the server's catalogue says of a table.
type shape struct{ engine, key string }

// describe answers the shape of each table there is, by its name in small letters.
func (s *server) describe(ctx context.Context, conn *sql.Conn, t sqllease.Tables) (map[string]shape, error) {
	rows, err := conn.QueryContext(ctx, fmt.Sprintf(`SELECT t.TABLE_NAME, COALESCE(t.ENGINE, ''), COALESCE((
		SELECT GROUP_CONCAT(s.COLUMN_NAME ORDER BY s.SEQ_IN_INDEX) FROM information_schema.STATISTICS AS s
		WHERE s.TABLE_SCHEMA = t.TABLE_SCHEMA AND s.TABLE_NAME = t.TABLE_NAME AND s.INDEX_NAME = 'PRIMARY'), '')
		FROM information_schema.TABLES AS t
		WHERE t.TABLE_SCHEMA = COALESCE(NULLIF('%s', ''), DATABASE()) AND t.TABLE_NAME IN ('%s', '%s', '%s', '%s')`,
		s.database, t.Name("meta"), t.Name("claims"), t.Name("lines"), t.Name("sessions")))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := make(map[string]shape)
	for rows.Next() {
		var table string
		var is shape
		if err := rows.Scan(&table, &is.engine, &is.key); err != nil {
			return nil, err
		}
		all[strings.ToLower(table)] = is
	}
	return all, rows.Err()
}

// inspectVersion refuses tables of a newer release.
func inspectVersion(ctx context.Context, conn *sql.Conn, t sqllease.Tables) error {
	var oldest sql.NullInt64
	rows, err := conn.QueryContext(ctx, "SELECT value FROM "+t.Meta+" WHERE name = 'oldest_client'")
	if err != nil {
		return err
	}
	defer rows.Close()
	if rows.Next() {
		if err := rows.Scan(&oldest); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return sqllease.CheckVersion(name, oldest)
}

// rehearse proves that the tables can be written, by statements that find nothing to write.
func rehearse(ctx context.Context, db *sql.DB, t sqllease.Tables) error {
	for _, table := range []struct{ quoted, column string }{
		{t.Claims, "name"}, {t.Lines, "last"}, {t.Sessions, "changed"},
	} {
		for _, text := range []string{
			"INSERT INTO " + table.quoted + " SELECT * FROM " + table.quoted + " WHERE FALSE",
			"UPDATE " + table.quoted + " SET " + table.column + " = " + table.column + " WHERE FALSE",
			"DELETE FROM " + table.quoted + " WHERE FALSE",
		} {
			if _, err := db.ExecContext(ctx, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// try runs a query for its error.
func try(ctx context.Context, conn *sql.Conn, text string) error {
	rows, err := conn.QueryContext(ctx, text)
	if err != nil {
		return err
	}
	defer rows.Close()
	return rows.Err()
}
