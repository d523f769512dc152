package open_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/open"
)

// migrated makes a database file and answers its path.
func migrated(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	store, err := open.URL(open.FileURL(path), &open.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// lock takes a lock by a URL. It tries again where the store had no time to answer, which
// says nothing about the URL.
func lock(ctx context.Context, url string) (err error) {
	for range 5 {
		if err = lockOnce(ctx, url); !errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	return err
}

func lockOnce(ctx context.Context, url string) error {
	store, err := open.URL(url, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	client, err := hasp.New(store.Driver(), nil)
	if err != nil {
		return err
	}
	return errors.Join(
		client.Mutex("k").TryDo(ctx, func(context.Context) error { return nil }),
		client.Close(ctx),
	)
}

func TestAFileIsOpenedByEveryWayToWriteItsURL(t *testing.T) {
	path := migrated(t, "locks.db")
	t.Chdir(filepath.Dir(path))
	for _, url := range []string{
		"sqlite:" + path, "sqlite://" + path, "SQLite:" + path, "sqlite:locks.db", "sqlite:./locks.db", "sqlite:%6cocks.db",
		"sqlite:locks.db?synchronous=full", "sqlite:locks.db?synchronous=normal&prefix=hasp_", "sqlite:locks.db?",
	} {
		if err := lock(t.Context(), url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestOddPathsAreOpened(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b", "q?x=1", "50%", "%41", "h#sh", "ü", "'", "a&mode=memory"} {
		path := migrated(t, name)
		if err := lock(t.Context(), open.FileURL(path)); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || entries[0].Name() != name {
			t.Errorf("%q: the folder holds %v (%v)", name, entries, err)
		}
	}
}

func TestAMissingFileIsRefusedNamingMigrate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "it's missing.db")
	_, err := open.URL(open.FileURL(path), nil)
	if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), `hasp migrate --url 'sqlite:`) || !strings.Contains(err.Error(), `it'\''s missing.db'`) {
		t.Errorf("error: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file was made: %v", err)
	}
}

func TestAFileThatVanishesIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	path := migrated(t, "locks.db")
	store, err := open.URL("sqlite:"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := store.Driver().Check(t.Context()); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("error: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file was made: %v", err)
	}
}

func TestAFolderIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := open.URL("sqlite:"+t.TempDir(), &open.Options{Create: true}); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("error: %v", err)
	}
}

func TestTheJournalModeOfAnotherProgramsFileIsNotChanged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "theirs.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE theirs (x)"); err != nil {
		t.Fatal(err)
	}
	if err := lock(t.Context(), "sqlite:"+path); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "WAL") {
		t.Errorf("error: %v", err)
	}
	var mode string
	if err := db.QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&mode); err != nil || mode != "delete" {
		t.Errorf("the mode is %q (%v)", mode, err)
	}
}

func TestWhatCannotBeRightIsInvalidAndSaysWhatIsKnown(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                                 "is empty; this version knows sqlite:PATH, redis://",
		"/var/lib/locks.db":                "does not begin with a scheme",
		":x":                               "does not begin with a scheme",
		"1x:y":                             "does not begin with a scheme",
		"etcd://h":                         "does not know etcd: stores yet; it knows sqlite:PATH, redis://",
		"rediss+x://h":                     `"rediss+x" is no scheme`,
		"sqlite3:x":                        "did you mean sqlite?",
		"oracle:x":                         `"oracle" is no scheme of a store; this`,
		"sqlite:":                          "names no file",
		"sqlite:///":                       "is a folder",
		"sqlite:?synchronous=full":         "names no file",
		"sqlite://host/x":                  "names no host",
		"sqlite::memory:":                  "memlease",
		"sqlite:a%zz":                      "%25",
		"sqlite:a%00b":                     "names no file",
		"sqlite:a#b":                       "%23",
		"sqlite:a?mode=ro":                 `"mode" is no parameter`,
		"sqlite:a?sinchronous=full":        `did you mean synchronous?`,
		"sqlite:a?synchronous=off":         "one of: normal, full",
		"sqlite:a?synchronous=":            "one of: normal, full",
		"sqlite:a?prefix=a&prefix=b":       "2 times",
		"sqlite:a?prefix=%zz":              "NAME=VALUE",
		"sqlite:/dev/null?prefix=a-b":      "Prefix",
		"sqlite:a?prefix=a;synchronous=no": "NAME=VALUE",
	} {
		_, err := open.URL(url, nil)
		if url != "sqlite:///" && !errors.Is(err, driver.ErrInvalid) || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", url, err, want)
		}
	}
}

func TestNoErrorShowsAPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"redis://hunter2@host", "redis://u:hunter2@ho st:port", "redis://u:hunter2", "redis://:hunter2/@h", "redis://:x?hunter2@h",
		"redis://:x#hunter2@h", "redis://:x%hunter2@h", "redis://:hunter2@h:x", "redis://h/hunter2", "redis://h?slot=a&slot=hunter2",
		"redis://h?password=hunter2", "redis://h?db=hunter2", "redis+sentinel://:hunter2@h", "redis+sentinel://h?sentinel_password=hunter2",
		"redis+sentinel://h/m?sentinel_password=hunter2&db=x", "redis+cluster://:hunter2@h/1", "rediss://:hunter2@h?tls_ca=/nonexistent",
		"x://u:hunter2@h", "postgres://u:hunter2@h", "postgres://u:hunter2@h/d?sslrootcert=/n&sslmode=verify-ca", "postgres://u:hunter2/@h/d",
		"postgres://u:hunter2@h/d?host=x", "postgres://u:hunter2@h/d?sslmode=x", "mysql://u:hunter2@h", "mysql://u:hunter2@h/d?tls=hunter2",
		"mysql://u:hunter2@tcp(h)/d", "mysql://u:hunter2@h/%zz",
		"hunter2", "hunter2@host:1", "//u:hunter2@h", "sqlite://u:hunter2@h/x", "sqlite://hunter2", "sqlite:x?password=hunter2",
		"sqlite:x?synchronous=hunter2", "sqlite:x?prefix=a&prefix=hunter2", "sqlite:x?prefix=hunter2%", "postgres:hunter2",
	} {
		if _, err := open.URL(url, nil); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestTheDriverIsTheOneThatIsRegistered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ registered, want string }{
		{"sqlite", "sqlite"}, {"sqlite3", "sqlite3"}, {"mysql sqlite3 sqlite", "sqlite"},
	} {
		if got, err := open.SQLiteDriver(strings.Fields(c.registered)); got != c.want || err != nil {
			t.Errorf("%s: %q, %v", c.registered, got, err)
		}
	}
	_, err := open.SQLiteDriver([]string{"mysql"})
	if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), `_ "modernc.org/sqlite"`) {
		t.Errorf("error: %v", err)
	}
}

func TestEnvReadsTheVariable(t *testing.T) {
	t.Setenv(open.EnvName, "")
	if _, err := open.Env(nil); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "HASP_URL is not set") {
		t.Errorf("error: %v", err)
	}
	path := migrated(t, "locks.db")
	t.Setenv(open.EnvName, "sqlite:"+path)
	store, err := open.Env(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if store.Kind() != "sqlite" || store.String() != "sqlite:"+path {
		t.Errorf("kind %s, store %s", store.Kind(), store)
	}
}

func TestSchemaNamesThePrefix(t *testing.T) {
	t.Parallel()
	store, err := open.URL("sqlite:not-made.db?prefix=mine_", &open.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if text, err := store.Schema(); err != nil || !strings.Contains(text, "mine_claims") {
		t.Errorf("schema: %s (%v)", text, err)
	}
	if _, err := os.Stat("not-made.db"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file was made: %v", err)
	}
}

func FuzzURL(f *testing.F) {
	for _, url := range []string{"", "h", "sqlite:x", "sqlite:///x?prefix=a", "redis://:p@h:1/0?x=%zz", "h,g:1/m?db=1&slot=a", "sqlite:%2", "a+b-c.d:e"} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		const secret = "hunter2"
		for _, url := range []string{
			"redis://u:" + secret + "@" + rest, "rediss://:" + secret + rest + "@h", "redis+sentinel://u:" + secret + "@" + rest,
			"redis+cluster://u:" + secret + rest + "@h", "redis+sentinel://h/m?sentinel_password=" + secret + rest,
			"postgres://u:" + secret + "@" + rest, "mysql://u:" + secret + "@h/" + rest,
			"//" + secret + rest, "sqlite://" + secret + rest,
		} {
			store, err := open.URL(url, nil)
			var said string
			if err != nil {
				said = err.Error()
			} else {
				said = store.String()
				_ = store.Close()
			}
			if strings.Contains(said, secret) {
				t.Fatalf("%q: %s", url, said)
			}
		}
		if store, err := open.URL(rest, nil); err == nil {
			_ = store.Close()
		}
	})
}
