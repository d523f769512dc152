package sqlitelease_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/driver"
)

// patience bounds what must happen at all, on a machine that is slow and busy, where it
// is not another time that would make it happen.
const patience = time.Minute

// occupy begins a transaction of the program's own that holds the right to write.
func occupy(t *testing.T, db *sql.DB) (end func()) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "PRAGMA busy_timeout = 10000; BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		if _, err := conn.ExecContext(context.WithoutCancel(t.Context()), "COMMIT"); err != nil {
			t.Error(err)
		}
		_ = conn.Close()
	})
}

func TestAForeignWriterOnlyDelays(t *testing.T) {
	t.Parallel()
	path, _ := newFile(t)
	end := occupy(t, openFile(t, path))
	d := sqlitelease.New(openFile(t, path), nil)
	done := make(chan error, 1)
	go func() {
		s, err := d.Join(t.Context(), driver.Join{Claim: mutex("client", "key")})
		if err == nil && s.State != driver.Holding {
			err = errors.New(s.State.String())
		}
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("while another transaction writes: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := d.Check(ctx); !errors.Is(err, driver.ErrUnavailable) || !strings.Contains(err.Error(), "locked") {
		t.Errorf("Check: %v, want ErrUnavailable that says what is in the way", err)
	}
	end()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("no answer after the other's end")
	}
}

// A holder that cannot renew is told while it still cannot, and the key can be had after.
func TestAHolderThatCannotRenewIsToldAndTheKeyIsFreeAfter(t *testing.T) {
	t.Parallel()
	path, _ := newFile(t)
	a, b := newClient(t, path), newClient(t, path)
	lease, err := a.With(hasp.LockOptions{TTL: time.Second}).Mutex("key").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	end := occupy(t, openFile(t, path))
	got := make(chan error, 1)
	go func() {
		_, err := b.With(hasp.LockOptions{TTL: time.Second}).Mutex("key").Lock(t.Context())
		got <- err
	}()
	select {
	case <-lease.Done():
		if err := lease.Err(); !errors.Is(err, hasp.ErrLost) {
			t.Errorf("ended with %v, want ErrLost", err)
		}
	case <-time.After(patience):
		t.Error("still trusted without a renewal")
	}
	end()
	select {
	case err := <-got:
		if err != nil {
			t.Errorf("the next: %v", err)
		}
	case <-time.After(patience):
		t.Error("the next does not hold after the writer's end")
	}
}

// A long busy_timeout of the program's makes SQLite itself wait; calls still end in time.
func TestCallsEndWithTheirContextWhateverTheBusyTimeout(t *testing.T) {
	t.Parallel()
	path, own := newFile(t)
	end := occupy(t, own)
	defer end()
	db, err := sql.Open("sqlite", dsn(path)+"&_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	d := sqlitelease.New(db, nil)
	c := mutex("client", "key")
	for name, call := range map[string]func(context.Context) error{
		"Join":  func(ctx context.Context) error { _, err := d.Join(ctx, driver.Join{Claim: c}); return err },
		"Leave": func(ctx context.Context) error { _, err := d.Leave(ctx, driver.Leaving{Ref: c.Ref}); return err },
		"End":   func(ctx context.Context) error { _, err := d.End(ctx, "key", []int64{1}, true); return err },
		"Check": d.Check,
		"Renew": func(ctx context.Context) (err error) {
			d.Renew(ctx, []driver.Renewal{{Ref: c.Ref, Mode: driver.Extend, Life: c.Life}},
				func(_ int, _ driver.Standing, e error) { err = e })
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		begin := time.Now()
		err := call(ctx)
		cancel()
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("%s took %v, with a context of 100 ms", name, took)
		}
		if !errors.Is(err, driver.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want ErrUnavailable and the context's error", name, err)
		}
	}
	end()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if s, err := d.Join(ctx, driver.Join{Claim: mutex("client", "key")}); err != nil || s.State == driver.Gone {
		t.Errorf("after it all: %v, %v", s.State, err)
	}
	if err := d.Close(ctx); err != nil {
		t.Error(err)
	}
}

// Calls that are cancelled at any point leave no transaction open and no connection out.
func TestCancelledCallsLeaveNothingOpen(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	db.SetMaxOpenConns(2)
	d := sqlitelease.New(db, nil)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*100*time.Microsecond)
			defer cancel()
			_, _ = d.Join(ctx, driver.Join{Claim: mutex("client", "key")})
		})
	}
	wg.Wait()
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := db.Stats().InUse; n != 0 {
		t.Errorf("%d connections are out", n)
	}
	for range 2 { // either connection can begin a transaction
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE; ROLLBACK"); err != nil {
			t.Error(err)
		}
	}
}

// A pool of one connection is enough, also beside the program's own queries.
func TestAPoolOfOneIsEnough(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	works(t, db)
}

func TestADatabaseInMemoryWorks(t *testing.T) {
	t.Parallel()
	works(t, newMemory(t))
}

// works lets five goroutines share one connection, for locks and for their own queries.
func works(t *testing.T, db *sql.DB) {
	t.Helper()
	db.SetMaxOpenConns(1)
	c, err := hasp.New(sqlitelease.New(db, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var wg sync.WaitGroup
	n := 0
	for range 5 {
		wg.Go(func() {
			for range 5 {
				err := c.Mutex("key").Do(ctx, func(ctx context.Context) error {
					n++
					_, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS app (n INTEGER)")
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n != 25 {
		t.Errorf("ran %d times, want 25", n)
	}
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	if n := db.Stats().InUse; n != 0 {
		t.Errorf("%d connections are out", n)
	}
}

func TestKeysAreComparedByteForByte(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	d := sqlitelease.New(db, nil)
	keys := []string{
		"Job-A", "job-a", "job-a ", "jób-a", "jo\u0301b-a", "a:b", "{x}", "}x{", "%", "_", "'", `"`, "?1", "a\nb", "a\x00b", "a",
		"\U0001F512", string(make500('k')), string(append(make500('k')[:499], 'l')),
	}
	for _, key := range keys {
		s, err := d.Join(t.Context(), driver.Join{Claim: mutex("client", key), Try: true})
		if err != nil || s.State != driver.Holding {
			t.Errorf("%q: %v, %v", key, s.State, err)
		}
	}
	for _, key := range keys {
		page, err := d.Lines(t.Context(), driver.Query{Key: key})
		if err != nil || len(page.Lines) != 1 || page.Lines[0].Key != key || len(page.Lines[0].Holders) != 1 {
			t.Errorf("%q is listed as %+v, %v", key, page, err)
		}
	}
}

func make500(c byte) []byte {
	b := make([]byte, 500)
	for i := range b {
		b[i] = c
	}
	return b
}

func TestADatabaseIsFoundThroughALink(t *testing.T) {
	t.Parallel()
	path, db := newFile(t)
	link := filepath.Join(t.TempDir(), "link.db")
	symlink(t, path, link)
	a, b := sqlitelease.New(db, nil), sqlitelease.New(openFile(t, link), nil)
	if err := joins(t, a); err != nil {
		t.Fatal(err)
	}
	if s, err := b.Join(t.Context(), driver.Join{Claim: mutex("second", "key"), Try: true}); err != nil || s.State != driver.Refused {
		t.Errorf("through the link: %v, %v", s.State, err)
	}
}
