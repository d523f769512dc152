package mysqllease_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/hasp-dev/hasp/backend/mysqllease"
	"github.com/hasp-dev/hasp/driver"
)

// joins tries to lock a key and answers the error.
func joins(tb testing.TB, d *mysqllease.Driver) error {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	_, err := d.Join(ctx, driver.Join{Claim: mutex("refuse", "key"), Try: true})
	return err
}

// wantRefused checks the class and that the text says what to do.
func wantRefused(tb testing.TB, err error, words ...string) {
	tb.Helper()
	if !errors.Is(err, driver.ErrRefused) || errors.Is(err, driver.ErrUnavailable) {
		tb.Errorf("%v, want ErrRefused", err)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			tb.Errorf("%q does not say %q", err, word)
		}
	}
}

func run(tb testing.TB, db *sql.DB, statements ...string) {
	tb.Helper()
	for _, text := range statements {
		if _, err := db.ExecContext(tb.Context(), text); err != nil {
			tb.Fatalf("%s: %v", text, err)
		}
	}
}

// as opens a handle for another user.
func as(user string) func(*mysql.Config) {
	return func(c *mysql.Config) { c.User = user }
}

func TestMissingTablesAreRefusedUntilTheyAreMade(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	name, err := s.newDatabase()
	if err != nil {
		t.Fatal(err)
	}
	db := s.open(t, name)
	d := mysqllease.New(db, nil)
	wantRefused(t, joins(t, d), "hasp migrate", "hasp_claims")
	wantRefused(t, d.Check(t.Context()), "hasp migrate")
	if err := mysqllease.Migrate(t.Context(), db, nil); err != nil {
		t.Fatal(err)
	}
	if err := joins(t, d); err != nil {
		t.Fatalf("with tables: %v", err)
	}
	run(t, db, "DROP TABLE hasp_lines")
	wantRefused(t, joins(t, d), "hasp migrate", "hasp_lines")
	if err := mysqllease.Migrate(t.Context(), db, nil); err != nil {
		t.Fatal(err)
	}
	if err := d.Check(t.Context()); err != nil {
		t.Fatalf("Check with tables: %v", err)
	}
}

func TestManyMayMigrateAtOnce(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	name, err := s.newDatabase()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		db := s.open(t, name)
		wg.Go(func() {
			if err := mysqllease.Migrate(t.Context(), db, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := joins(t, newDriver(t, s, name)); err != nil {
		t.Error(err)
	}
}

func TestTablesThatAreNotOursAreRefused(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	for want, change := range map[string]string{
		"is not hasp's":   "ALTER TABLE hasp_lines DROP PRIMARY KEY, ADD PRIMARY KEY (sweep_at, `key`)",
		"ENGINE = InnoDB": "ALTER TABLE hasp_lines ENGINE = MyISAM",
		"hasp_meta":       "DELETE FROM hasp_meta",
	} {
		db := s.open(t, s.database(t))
		run(t, db, change)
		wantRefused(t, joins(t, mysqllease.New(db, nil)), want)
	}
}

// Tables that lack a column are refused, those of another release among them.
func TestTablesWithoutAColumnAreRefused(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	db := s.open(t, s.database(t))
	worked := mysqllease.New(db, nil)
	if err := joins(t, worked); err != nil {
		t.Fatal(err)
	}
	for table, column := range map[string]string{"meta": "value", "lines": "waited", "claims": "session", "sessions": "changed"} {
		run(t, db, "ALTER TABLE hasp_"+table+" RENAME COLUMN "+column+" TO other")
		wantRefused(t, mysqllease.New(db, nil).Check(t.Context()), "hasp migrate", column)
		if table != "sessions" { // of which a Try does not use that column
			wantRefused(t, joins(t, worked), "hasp migrate", column)
		}
		run(t, db, "ALTER TABLE hasp_"+table+" RENAME COLUMN other TO "+column)
	}
	if err := joins(t, worked); err != nil {
		t.Errorf("with all columns: %v", err)
	}
}

// What is looked for are all columns there are.
func TestEveryColumnIsLookedFor(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	rows, err := s.open(t, s.database(t)).QueryContext(t.Context(),
		"SELECT CONCAT(SUBSTRING(TABLE_NAME, 6, 1), '.', COLUMN_NAME) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	looked, n := strings.ReplaceAll(mysqllease.EveryColumn, "`", "")+",", 0
	for rows.Next() {
		var column string
		if err := rows.Scan(&column); err != nil {
			t.Fatal(err)
		}
		if n++; !strings.Contains(strings.ReplaceAll(looked, " FROM", ","), " "+column+",") {
			t.Errorf("%s is not", column)
		}
	}
	if err := rows.Err(); err != nil || n == 0 {
		t.Errorf("%d columns, %v", n, err)
	}
}

func TestANewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	db := s.open(t, s.database(t))
	d := mysqllease.New(db, nil)
	if err := joins(t, d); err != nil {
		t.Fatal(err)
	}
	run(t, db, "UPDATE hasp_meta SET value = 7 WHERE name = 'schema'")
	if err := d.Check(t.Context()); err != nil {
		t.Errorf("a newer schema that older clients may use: %v", err)
	}
	run(t, db, "UPDATE hasp_meta SET value = 2 WHERE name = 'oldest_client'")
	wantRefused(t, joins(t, d), "upgrade") // a driver that has worked before
	wantRefused(t, mysqllease.New(db, nil).Check(t.Context()), "upgrade")
	wantRefused(t, mysqllease.Migrate(t.Context(), db, nil), "upgrade")
}

func TestMissingRightsAreRefused(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	name := s.database(t)
	admin := s.open(t, name)
	for i, c := range []struct{ rights, lacks string }{
		{"SELECT, INSERT, UPDATE ON " + name + ".*", "DELETE"},
		{"SELECT ON " + name + ".*", "INSERT"},
		{"USAGE ON *.*", ""},
	} {
		user := name + string(rune('a'+i))
		run(t, admin, "CREATE USER "+user+"@'127.0.0.1'", "GRANT "+c.rights+" TO "+user+"@'127.0.0.1'")
		d := mysqllease.New(s.open(t, name, as(user)), nil)
		wantRefused(t, d.Check(t.Context()), "right", c.lacks)
		wantRefused(t, mysqllease.Migrate(t.Context(), s.open(t, name, as(user)), &mysqllease.Options{Prefix: "new_"}), "right")
	}
	wantRefused(t, joins(t, mysqllease.New(s.open(t, name, as("nobody")), nil)), "right")
}

//nolint:paralleltest // has a server of its own, which is enough at once
func TestAReadOnlyServerIsRefused(t *testing.T) {
	s := startServer(t)
	name := s.database(t)
	admin := s.open(t, name)
	run(t, admin, "CREATE USER app@'127.0.0.1'", "GRANT ALL ON "+name+".* TO app@'127.0.0.1'")
	before := mysqllease.New(s.open(t, name, as("app")), nil)
	if err := joins(t, before); err != nil {
		t.Fatal(err)
	}
	run(t, admin, "SET GLOBAL read_only = 1")
	for _, d := range []*mysqllease.Driver{before, mysqllease.New(s.open(t, name, as("app")), nil)} {
		wantRefused(t, d.Check(t.Context()), "read-only")
		wantRefused(t, joins(t, d), "read-only")
	}
	run(t, admin, "SET GLOBAL read_only = 0")
	if err := joins(t, before); err != nil {
		t.Errorf("when writes are allowed again: %v", err)
	}
}

func TestASessionThatMayOnlyReadIsRefused(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	db := s.open(t, s.database(t), func(c *mysql.Config) { c.Params = map[string]string{setting("read_only"): "1"} })
	d := mysqllease.New(db, nil)
	wantRefused(t, joins(t, d), "read-only")
	wantRefused(t, d.Check(t.Context()), "read-only")
}

func TestAHandleWithoutAutocommitIsRefused(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	db := s.open(t, s.database(t), func(c *mysql.Config) { c.Params = map[string]string{"autocommit": "0"} })
	wantRefused(t, joins(t, mysqllease.New(db, nil)), "autocommit")
}

func TestADatabaseThatIsNotThereIsRefused(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	wantRefused(t, joins(t, mysqllease.New(s.open(t, "nowhere"), nil)), "no such database")
	wantRefused(t, joins(t, mysqllease.New(s.open(t, ""), nil)), "no database is chosen")
	name := s.database(t)
	if err := joins(t, mysqllease.New(s.open(t, ""), &mysqllease.Options{Database: name})); err != nil {
		t.Errorf("named in the options: %v", err)
	}
}

func TestAPrefixThatIsNoIdentifierIsInvalid(t *testing.T) {
	t.Parallel()
	opts := &mysqllease.Options{Prefix: "x`; DROP TABLE y; --"}
	db := sharedServer(t).open(t, "")
	for _, err := range []error{
		mysqllease.New(db, opts).Features().Err,
		joins(t, mysqllease.New(db, opts)),
		mysqllease.Migrate(t.Context(), db, opts),
		mysqllease.New(nil, nil).Features().Err,
	} {
		if !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%v, want ErrInvalid", err)
		}
	}
}

func TestTwoPrefixesAreTwoSetsOfLines(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	db := s.open(t, s.database(t))
	opts := &mysqllease.Options{Prefix: "other_"}
	if err := mysqllease.Migrate(t.Context(), db, opts); err != nil {
		t.Fatal(err)
	}
	for _, o := range []*mysqllease.Options{nil, opts} {
		wants(t, join(t, mysqllease.New(db, o), driver.Join{Claim: mutex("client", "key"), Try: true}), driver.Holding)
	}
}

func TestAClosedHandleIsUnavailable(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	db := s.open(t, s.database(t))
	d := mysqllease.New(db, nil)
	if err := joins(t, d); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	if err := joins(t, d); !errors.Is(err, driver.ErrUnavailable) || errors.Is(err, driver.ErrRefused) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
}
