package open

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/driver"
)

// connections bounds the pool: a driver has at most four commands in flight.
const connections = 4

// How long SQLite itself waits for another writer, in milliseconds: next to nothing,
// since sqlitelease tries again by itself, sooner, and can be cancelled. Changing the
// journal mode of a file that is being made is tried by nobody else.
const (
	busy       = 5
	busyMaking = 1000
)

// openSQLite opens what stands behind "sqlite:".
func openSQLite(rest string, opts *Options) (*Store, error) {
	raw, query, _ := strings.Cut(rest, "?")
	params, err := parseParameters(query, nil, "prefix", "synchronous")
	if err != nil {
		return nil, err
	}
	synchronous := params.oneOf("synchronous", "normal", "full")
	if params.err != nil {
		return nil, params.err
	}
	path, err := sqlitePath(raw)
	if err != nil {
		return nil, err
	}
	if err := checkFile(path, opts.Create); err != nil {
		return nil, err
	}
	name, err := sqliteDriver(sql.Drivers())
	if err != nil {
		return nil, err
	}
	db, err := sql.Open(name, dataSource(path, synchronous, opts.Create))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", driver.ErrInvalid, "sqlite:"+path, err)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return newSQLite(db, path, &sqlitelease.Options{Prefix: params.values.Get("prefix")})
}

func newSQLite(db *sql.DB, path string, opts *sqlitelease.Options) (*Store, error) {
	s := &Store{
		kind:    "sqlite",
		where:   "sqlite:" + path,
		driver:  sqlitelease.New(db, opts),
		migrate: func(ctx context.Context) error { return sqlitelease.Migrate(ctx, db, opts) },
		schema:  func() (string, error) { return sqlitelease.SchemaSQL(opts) },
		close:   db.Close,
	}
	if err := s.driver.Features().Err; err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// sqlitePath is the absolute path that a URL names.
func sqlitePath(raw string) (string, error) {
	switch {
	case strings.HasPrefix(raw, "///"):
		raw = raw[2:]
	case strings.HasPrefix(raw, "//"):
		return "", invalidf("a sqlite: URL names no host; write sqlite:PATH or sqlite:///PATH")
	case strings.HasPrefix(raw, ":memory:"):
		return "", invalidf("a SQLite database in memory excludes nobody outside of this process; name a file, or take package memlease in tests")
	}
	if strings.Contains(raw, "#") {
		return "", invalidf("a # in the path of a sqlite: URL is written %%23")
	}
	path, err := url.PathUnescape(raw)
	if err != nil {
		return "", invalidf("a %% in the path of a sqlite: URL is written %%25")
	}
	if path == "" || strings.ContainsRune(path, 0) {
		return "", invalidf("the sqlite: URL names no file; write sqlite:PATH")
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%w: the relative path of the sqlite: URL: %w", driver.ErrInvalid, err)
	}
	return path, nil
}

// FileURL is the sqlite: URL of a file.
func FileURL(path string) string {
	return "sqlite:" + strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23").Replace(path)
}

// shellWord quotes a word for the shell where it needs it.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-:%+,@=", r)
	}
	if strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// checkFile looks whether the file can be opened at all.
func checkFile(path string, create bool) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && create:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: there is no file %s; make it with: hasp migrate --url %s", driver.ErrRefused, path, shellWord(FileURL(path)))
	case err != nil:
		return fmt.Errorf("%w: %w", driver.ErrRefused, err)
	case info.IsDir():
		return fmt.Errorf("%w: %s is a folder, not a SQLite file", driver.ErrRefused, path)
	}
	return nil
}

// sqliteDriver chooses among the drivers that the program registered.
func sqliteDriver(registered []string) (string, error) {
	for _, name := range []string{"sqlite", "sqlite3"} {
		if slices.Contains(registered, name) {
			return name, nil
		}
	}
	return "", invalidf(`this program has no SQLite driver; import one: _ "modernc.org/sqlite" (pure Go), ` +
		`_ "github.com/ncruces/go-sqlite3/driver" (pure Go) or _ "github.com/mattn/go-sqlite3" (cgo)`)
}

// dataSource says the same in the words of each of the three drivers; each passes
// over the others' words. Only a file that may be made is put into WAL mode, which it
// keeps; a file of another program is not changed unasked.
func dataSource(path, synchronous string, create bool) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	query := url.Values{
		"mode":          {"rw"},
		"_pragma":       {fmt.Sprintf("busy_timeout(%d)", busy), "synchronous(" + synchronous + ")"},
		"_busy_timeout": {strconv.Itoa(busy)},
		"_synchronous":  {strings.ToUpper(synchronous)},
	}
	if create {
		query.Set("mode", "rwc")
		query["_pragma"] = []string{fmt.Sprintf("busy_timeout(%d)", busyMaking), "journal_mode(wal)", "synchronous(" + synchronous + ")"}
		query.Set("_busy_timeout", strconv.Itoa(busyMaking))
		query.Set("_journal_mode", "WAL")
	}
	uri := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}
	return uri.String()
}
