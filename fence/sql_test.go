package fence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/fence"
)

// script is a database that answers what it was told to, and notes what it was asked.
type script struct {
	answers []any // int64: rows changed; *int64: the value of a row, nil for NULL; sql.ErrNoRows; another error
	asked   []string
}

func (s *script) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (s *script) Driver() driver.Driver                        { return nil }
func (s *script) Begin() (driver.Tx, error)                    { return s, nil }
func (s *script) Prepare(string) (driver.Stmt, error)          { return nil, errors.New("nothing is prepared") }
func (s *script) Close() error                                 { return nil }
func (s *script) Commit() error                                { return nil }
func (s *script) Rollback() error                              { return nil }

func (s *script) next(query string, args []driver.NamedValue) any {
	var asked strings.Builder
	asked.WriteString(query)
	for _, a := range args {
		if b, ok := a.Value.([]byte); ok {
			a.Value = string(b)
		}
		fmt.Fprintf(&asked, " |%v", a.Value)
	}
	s.asked = append(s.asked, asked.String())
	if len(s.answers) == 0 {
		return errors.New("asked too often")
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	return answer
}

func (s *script) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	switch answer := s.next(query, args).(type) {
	case int64:
		return driver.RowsAffected(answer), nil
	case error:
		return nil, answer
	default:
		return nil, fmt.Errorf("%v is no answer to %s", answer, query)
	}
}

func (s *script) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	switch answer := s.next(query, args).(type) {
	case *int64:
		return &rows{value: answer}, nil
	case error:
		if errors.Is(answer, sql.ErrNoRows) {
			return &rows{ended: true}, nil
		}
		return nil, answer
	default:
		return nil, fmt.Errorf("%v is no answer to %s", answer, query)
	}
}

// rows is one row or none.
type rows struct {
	value *int64
	ended bool
}

func (r *rows) Columns() []string { return []string{"token"} }
func (r *rows) Close() error      { return nil }

func (r *rows) Next(dest []driver.Value) error {
	if r.ended {
		return io.EOF
	}
	r.ended = true
	if dest[0] = nil; r.value != nil {
		dest[0] = *r.value
	}
	return nil
}

// value is the value a row has.
func value(token int64) *int64 { return &token }

// begin starts a transaction on a scripted database.
func (s *script) begin(t *testing.T) *sql.Tx {
	t.Helper()
	db := sql.OpenDB(s)
	t.Cleanup(func() { _ = db.Close() })
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func (s *script) wantAsked(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(s.asked, want) {
		t.Errorf("it asked\n%s\nwant\n%s", strings.Join(s.asked, "\n"), strings.Join(want, "\n"))
	}
	if len(s.answers) > 0 {
		t.Errorf("it did not ask for %v", s.answers)
	}
}

func TestColumnWritesTheDialect(t *testing.T) {
	t.Parallel()
	for dialect, want := range map[fence.Dialect][2]string{
		fence.PostgreSQL: {
			`UPDATE "shop"."orders" SET "fence" = $1 WHERE "tenant" = $2 AND "id" = $3 AND ("fence" IS NULL OR "fence" <= $4) |640 |t |42 |640`,
			`SELECT "fence" FROM "shop"."orders" WHERE "tenant" = $1 AND "id" = $2 FOR UPDATE |t |42`,
		},
		fence.MySQL: {
			"UPDATE `shop`.`orders` SET `fence` = ? WHERE `tenant` = ? AND `id` = ? AND (`fence` IS NULL OR `fence` <= ?) |640 |t |42 |640",
			"SELECT `fence` FROM `shop`.`orders` WHERE `tenant` = ? AND `id` = ? FOR UPDATE |t |42",
		},
		fence.SQLite: {
			"UPDATE `shop`.`orders` SET `fence` = ? WHERE `tenant` = ? AND `id` = ? AND (`fence` IS NULL OR `fence` <= ?) |640 |t |42 |640",
			"SELECT `fence` FROM `shop`.`orders` WHERE `tenant` = ? AND `id` = ? |t |42",
		},
	} {
		column := fence.Column{Dialect: dialect, Table: "shop.orders", Key: []string{"tenant", "id"}}
		s := &script{answers: []any{int64(1)}}
		wantNil(t, column.Admit(t.Context(), s.begin(t), 640, "t", 42))
		s.wantAsked(t, want[0])

		s = &script{answers: []any{int64(0), value(704)}}
		wantStale(t, column.Admit(t.Context(), s.begin(t), 640, "t", 42), "shop.orders [t 42]", 704, 640)
		s.wantAsked(t, want[:]...)
	}
}

func TestTableWritesTheDialect(t *testing.T) {
	t.Parallel()
	upsert := " ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE f.token <= excluded.token |order:42 |640"
	for dialect, want := range map[fence.Dialect][2]string{
		fence.PostgreSQL: {
			`INSERT INTO "hasp_fences" AS f (resource, token) VALUES ($1, $2)` + upsert,
			`SELECT token FROM "hasp_fences" WHERE resource = $1 FOR UPDATE |order:42`,
		},
		fence.MySQL: {
			"INSERT INTO `hasp_fences` (resource, token) VALUES (?, ?) ON DUPLICATE KEY UPDATE token = GREATEST(token, ?) |order:42 |640 |640",
			"SELECT token FROM `hasp_fences` WHERE resource = ? FOR UPDATE |order:42",
		},
		fence.SQLite: {
			"INSERT INTO `hasp_fences` AS f (resource, token) VALUES (?, ?)" + upsert,
			"SELECT token FROM `hasp_fences` WHERE resource = ? |order:42",
		},
	} {
		s := &script{answers: []any{int64(0), value(704)}}
		wantStale(t, fence.Table{Dialect: dialect}.Admit(t.Context(), s.begin(t), 640, "order:42"), "order:42", 704, 640)
		s.wantAsked(t, want[:]...)
	}
}

// MySQL says 0, 1 or 2 rows by its settings and by whether anything changed: what the row
// has then counts.
func TestTableOnMySQLJudgesByTheRow(t *testing.T) {
	t.Parallel()
	for n := range int64(3) {
		s := &script{answers: []any{n, value(640)}}
		wantNil(t, fence.Table{Dialect: fence.MySQL}.Admit(t.Context(), s.begin(t), 640, "a"))
		s = &script{answers: []any{n, value(704)}}
		wantStale(t, fence.Table{Dialect: fence.MySQL}.Admit(t.Context(), s.begin(t), 640, "a"), "a", 704, 640)
	}
}

func TestColumnPassesTheSameTokenWhereTheDatabaseCountsChanges(t *testing.T) {
	t.Parallel()
	s := &script{answers: []any{int64(0), value(640)}}
	wantNil(t, orders(fence.MySQL).Admit(t.Context(), s.begin(t), 640, 42))
}

func orders(d fence.Dialect) fence.Column {
	return fence.Column{Dialect: d, Table: "orders", Key: []string{"id"}}
}

// A row that was written while the UPDATE looked past it is locked by the SELECT.
func TestColumnRaisesAgainWhereTheRowCameInBetween(t *testing.T) {
	t.Parallel()
	s := &script{answers: []any{int64(0), value(576), int64(1)}}
	wantNil(t, orders(fence.PostgreSQL).Admit(t.Context(), s.begin(t), 640, 42))
	s = &script{answers: []any{int64(0), value(1), int64(0), value(1), int64(0), value(1)}}
	if err := orders(fence.PostgreSQL).Admit(t.Context(), s.begin(t), 640, 42); err == nil || errors.Is(err, fence.ErrStale) {
		t.Errorf("a row that does not change is %v", err)
	}
}

func TestColumnRefusesWhatItCannotJudge(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection reset")
	for _, c := range []struct {
		answers []any
		want    error
	}{
		{[]any{int64(0), sql.ErrNoRows}, sql.ErrNoRows},
		{[]any{int64(2)}, hasp.ErrInvalid},
		{[]any{broken}, broken},
		{[]any{int64(0), broken}, broken},
	} {
		s := &script{answers: c.answers}
		err := orders(fence.MySQL).Admit(t.Context(), s.begin(t), 640, 42)
		wantIs(t, err, c.want)
		if errors.Is(err, fence.ErrStale) {
			t.Errorf("%v is taken for a stale token", c.want)
		}
		s.wantAsked(t, s.asked...)
	}
}

func TestColumnAndTableRefuseMistakesBeforeTheyAsk(t *testing.T) {
	t.Parallel()
	s := &script{}
	tx := s.begin(t)
	ctx := t.Context()
	good := orders(fence.SQLite)
	with := func(change func(*fence.Column)) fence.Column {
		c := good
		change(&c)
		return c
	}
	for what, err := range map[string]error{
		"no dialect":     with(func(c *fence.Column) { c.Dialect = 0 }).Admit(ctx, tx, 1, 42),
		"no table":       with(func(c *fence.Column) { c.Table = "" }).Admit(ctx, tx, 1, 42),
		"three names":    with(func(c *fence.Column) { c.Table = "a.b.c" }).Admit(ctx, tx, 1, 42),
		"an injection":   with(func(c *fence.Column) { c.Table = "orders` SET x = 1 -- " }).Admit(ctx, tx, 1, 42),
		"a fence's name": with(func(c *fence.Column) { c.Fence = "a.b" }).Admit(ctx, tx, 1, 42),
		"no key":         with(func(c *fence.Column) { c.Key = nil }).Admit(ctx, tx, 1),
		"a key's name":   with(func(c *fence.Column) { c.Key = []string{"1d"} }).Admit(ctx, tx, 1, 42),
		"no value":       good.Admit(ctx, tx, 1),
		"two values":     good.Admit(ctx, tx, 1, 42, 43),
		"no token":       good.Admit(ctx, tx, 0, 42),
		"no tx":          good.Admit(ctx, nil, 1, 42),
		"table: dialect": fence.Table{}.Admit(ctx, tx, 1, "a"),
		"table: name":    fence.Table{Dialect: fence.SQLite, Name: "a b"}.Admit(ctx, tx, 1, "a"),
		"table: token":   fence.Table{Dialect: fence.SQLite}.Admit(ctx, tx, -1, "a"),
		"table: key":     fence.Table{Dialect: fence.SQLite}.Admit(ctx, tx, 1, ""),
		"table: tx":      fence.Table{Dialect: fence.SQLite}.Admit(ctx, nil, 1, "a"),
		"migrate: name":  fence.Table{Dialect: fence.SQLite, Name: "a-b"}.Migrate(ctx, sql.OpenDB(s)),
		"migrate: db":    fence.Table{Dialect: fence.SQLite}.Migrate(ctx, nil),
	} {
		if !errors.Is(err, hasp.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", what, err)
		}
	}
	s.wantAsked(t)
}

func TestTableRaisesEachKeyByItsFullNameInOrder(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		t, ctx, store := w.t, w.ctx, w.store
		c := client(t, store.Driver(), hasp.Options{Prefix: "app:"})
		lease := lock(ctx, t, c, "b", "a")
		s := &script{answers: []any{int64(1), int64(0), value(lease.Token() + 64)}}
		db := sql.OpenDB(s)
		defer db.Close()
		tx, err := db.BeginTx(ctx, nil)
		wantNil(t, err)
		wantStale(t, fence.Table{Dialect: fence.SQLite}.Raise(ctx, tx, lease), "app:b", lease.Token()+64, lease.Token())
		if len(s.asked) != 3 || !strings.Contains(s.asked[0], "|app:a") || !strings.Contains(s.asked[1], "|app:b") {
			t.Errorf("it asked %q", s.asked)
		}
		wantNil(t, tx.Rollback())
	})
}

func TestMigrateMakesTheTable(t *testing.T) {
	t.Parallel()
	for dialect, want := range map[fence.Dialect][]string{
		fence.PostgreSQL: {
			"SELECT pg_advisory_xact_lock(7233183901389713253)",
			`CREATE TABLE IF NOT EXISTS "app"."fences" (resource BYTEA NOT NULL PRIMARY KEY, token BIGINT NOT NULL)`,
		},
		fence.MySQL: {
			"CREATE TABLE IF NOT EXISTS `app`.`fences` (resource VARBINARY(512) NOT NULL PRIMARY KEY, token BIGINT NOT NULL) ENGINE = InnoDB",
		},
		fence.SQLite: {
			"CREATE TABLE IF NOT EXISTS `app`.`fences` (resource BLOB NOT NULL PRIMARY KEY, token BIGINT NOT NULL) WITHOUT ROWID",
		},
	} {
		s := &script{answers: []any{int64(0), int64(0)}[:len(want)]}
		db := sql.OpenDB(s)
		table := fence.Table{Dialect: dialect, Name: "app.fences"}
		wantNil(t, table.Migrate(t.Context(), db))
		s.wantAsked(t, want...)
		text, err := table.SchemaSQL()
		if err != nil || text != want[len(want)-1] {
			t.Errorf("%v: the schema is %s, %v", dialect, text, err)
		}
		wantNil(t, db.Close())
	}
}
