package sqlitelease_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/driver"
)

// joins tries to lock a key and answers the error.
func joins(t *testing.T, d *sqlitelease.Driver) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := d.Join(ctx, driver.Join{Claim: mutex("refuse", "key"), Try: true})
	return err
}

// wantRefused checks the class and that the text says what to do.
func wantRefused(t *testing.T, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, driver.ErrRefused) || errors.Is(err, driver.ErrUnavailable) {
		t.Fatalf("%v, want ErrRefused", err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

func TestMissingTablesAreRefusedUntilTheyAreMade(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"))
	d := sqlitelease.New(db, nil)
	wantRefused(t, joins(t, d), "hasp migrate", "hasp_claims")
	wantRefused(t, d.Check(t.Context()), "hasp migrate")
	if err := sqlitelease.Migrate(t.Context(), db, nil); err != nil {
		t.Fatal(err)
	}
	if err := joins(t, d); err != nil {
		t.Fatalf("with tables: %v", err)
	}
	if _, err := db.Exec("DROP TABLE hasp_lines"); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, joins(t, d), "hasp migrate", "hasp_lines")
	if err := sqlitelease.Migrate(t.Context(), db, nil); err != nil {
		t.Fatal(err)
	}
	if err := d.Check(t.Context()); err != nil {
		t.Fatalf("Check with tables: %v", err)
	}
	if _, err := db.Exec("DROP INDEX hasp_claims_session"); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, d.Check(t.Context()), "hasp migrate", "hasp_claims_session")
	if err := sqlitelease.Migrate(t.Context(), db, nil); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestATableThatIsNotOursIsRefused(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	if _, err := db.Exec("DROP TABLE hasp_lines; CREATE TABLE hasp_lines (key BLOB, last INTEGER, waited INTEGER, sweep_at INTEGER)"); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, joins(t, sqlitelease.New(db, nil)), "hasp_lines")
}

func TestANewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	d := sqlitelease.New(db, nil)
	if err := joins(t, d); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("UPDATE hasp_meta SET value = 7 WHERE name = 'schema'"); err != nil {
		t.Fatal(err)
	}
	if err := d.Check(t.Context()); err != nil {
		t.Errorf("a newer schema that older clients may use: %v", err)
	}
	if _, err := db.Exec("UPDATE hasp_meta SET value = 2 WHERE name = 'oldest_client'"); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, joins(t, d), "upgrade") // a driver that has worked before
	wantRefused(t, sqlitelease.New(db, nil).Check(t.Context()), "upgrade")
	wantRefused(t, sqlitelease.Migrate(t.Context(), db, nil), "upgrade")
}

func TestAReadOnlyDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	path, db := newFile(t)
	if err := joins(t, sqlitelease.New(db, nil)); err != nil {
		t.Fatal(err)
	}
	for name, dsn := range map[string]string{"mode=ro": "file:" + path + "?mode=ro", "query_only": dsn(path) + "&_pragma=query_only(1)"} {
		ro, err := sql.Open("sqlite", dsn)
		if err != nil {
			t.Fatal(err)
		}
		d := sqlitelease.New(ro, nil)
		t.Log(name)
		wantRefused(t, joins(t, d), "read-only")
		wantRefused(t, d.Check(t.Context()), "read-only")
		_ = d.Close(t.Context())
		_ = ro.Close()
	}
}

func TestAFileThatIsNoDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("this is not a database. ", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	wantRefused(t, joins(t, sqlitelease.New(db, nil)), "not a SQLite database")
}

func TestACorruptFileIsRefused(t *testing.T) {
	t.Parallel()
	path, db := newFile(t)
	if _, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil { // nothing mends the file from the log
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(content); i++ { // all but the page of the schema
		content[i] = 0xa5
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, joins(t, sqlitelease.New(openFile(t, path), nil)), "corrupt")
}

func TestAMissingFolderIsRefused(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "no", "a.db"))
	wantRefused(t, joins(t, sqlitelease.New(db, nil)), "cannot be opened")
}

func TestAFullDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	db.SetMaxOpenConns(1)                                           // the limit is one connection's
	if _, err := db.Exec("PRAGMA max_page_count = 1"); err != nil { // never below what is used
		t.Fatal(err)
	}
	d := sqlitelease.New(db, nil)
	var err error
	for range 2000 {
		c := mutex("full", "key")
		if _, err = d.Join(t.Context(), driver.Join{Claim: c}); err != nil {
			break
		}
	}
	wantRefused(t, err, "full")
	if _, err := db.Exec("PRAGMA max_page_count = 100000"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Join(t.Context(), driver.Join{Claim: mutex("full", "key")}); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

func TestAnotherJournalModeIsRefused(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	wantRefused(t, sqlitelease.Migrate(t.Context(), db, nil), "WAL")
	text, err := sqlitelease.SchemaSQL(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
	d := sqlitelease.New(db, nil)
	wantRefused(t, joins(t, d), "WAL")
	if _, err := db.Exec("PRAGMA journal_mode = WAL"); err != nil {
		t.Fatal(err)
	}
	if err := joins(t, d); err != nil {
		t.Errorf("in WAL mode: %v", err)
	}
}

func TestAPrefixThatIsNoIdentifierIsInvalid(t *testing.T) {
	t.Parallel()
	opts := &sqlitelease.Options{Prefix: `x"; DROP TABLE y; --`}
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"))
	for _, err := range []error{
		sqlitelease.New(db, opts).Features().Err,
		joins(t, sqlitelease.New(db, opts)),
		sqlitelease.Migrate(t.Context(), db, opts),
		sqlitelease.New(nil, nil).Features().Err,
	} {
		if !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%v, want ErrInvalid", err)
		}
	}
}

func TestTwoPrefixesAreTwoSetsOfLines(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	opts := &sqlitelease.Options{Prefix: "other_"}
	if err := sqlitelease.Migrate(t.Context(), db, opts); err != nil {
		t.Fatal(err)
	}
	for _, o := range []*sqlitelease.Options{nil, opts} {
		s, err := sqlitelease.New(db, o).Join(t.Context(), driver.Join{Claim: mutex("client", "key"), Try: true})
		if err != nil || s.State != driver.Holding {
			t.Errorf("with %+v: %v, %v", o, s.State, err)
		}
	}
}

func TestAClosedHandleIsUnavailable(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	d := sqlitelease.New(db, nil)
	if err := joins(t, d); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	if err := joins(t, d); !errors.Is(err, driver.ErrUnavailable) || errors.Is(err, driver.ErrRefused) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
}
