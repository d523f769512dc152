package sqlitelease_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/hasp-dev/hasp/backend/sqlitelease"
)

// dsn opens a file as the package asks for.
func dsn(path string) string {
	return "file:" + path + "?_pragma=journal_mode(wal)&_pragma=synchronous(normal)"
}

// openFile opens one more handle on a file.
func openFile(tb testing.TB, path string) *sql.DB {
	tb.Helper()
	db, err := sql.Open("sqlite", dsn(path))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// newFile makes a database with hasp's tables.
func newFile(tb testing.TB) (string, *sql.DB) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "hasp.db")
	db := openFile(tb, path)
	if err := sqlitelease.Migrate(tb.Context(), db, nil); err != nil {
		tb.Fatal(err)
	}
	return path, db
}
