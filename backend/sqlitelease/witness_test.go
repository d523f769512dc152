//go:build linux

package sqlitelease_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/driver"
)

// lockFiles counts the lock files beside a database.
func lockFiles(t *testing.T, path string) int {
	t.Helper()
	names, err := filepath.Glob(path + "-hasp-*")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// lockWithin locks the key and says how long it took.
func lockWithin(t *testing.T, c *hasp.Client, wait time.Duration) (time.Duration, error) {
	t.Helper()
	begin := time.Now()
	lease, err := c.With(hasp.LockOptions{Wait: wait}).Mutex("key").Lock(t.Context())
	took := time.Since(begin)
	if err == nil {
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	return took, err
}

func TestAKilledHolderIsPassedWithinASecond(t *testing.T) {
	t.Parallel()
	path, _ := newFile(t)
	p := start(t, "hold", path)
	p.ready(t)
	c := newClient(t, path)
	if _, err := c.Mutex("key").TryLock(t.Context()); !errors.Is(err, hasp.ErrHeld) {
		t.Fatalf("beside a living holder: %v", err)
	}
	waits := make(chan time.Time, 1)
	go func() {
		_, err := lockWithin(t, c, 20*time.Second)
		if err != nil {
			t.Error(err)
		}
		waits <- time.Now()
	}()
	if err := inLine(t.Context(), c, 1); err != nil {
		t.Fatal(err)
	}
	p.kill(t)
	killed := time.Now()
	if took := (<-waits).Sub(killed); took > time.Second {
		t.Errorf("held %v after the kill, want within a second", took)
	}
	if n := lockFiles(t, path); n != 1 {
		t.Errorf("%d lock files are left, want this client's", n)
	}
}

func TestATryPassesAKilledHolder(t *testing.T) {
	t.Parallel()
	path, _ := newFile(t)
	p := start(t, "hold", path)
	p.ready(t)
	p.kill(t)
	if took, err := lockWithin(t, newClient(t, path), hasp.NoWait); err != nil {
		t.Errorf("after %v: %v", took, err)
	}
}

func TestAKilledWaiterIsPassedWithinASecond(t *testing.T) {
	t.Parallel()
	path, _ := newFile(t)
	c := newClient(t, path)
	lease, err := c.Mutex("key").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, "wait", path)
	p.ready(t)
	p.kill(t)
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took, err := lockWithin(t, newClient(t, path), 3*time.Second); err != nil || took > time.Second {
		t.Errorf("after %v: %v", took, err)
	}
}

func TestWhatMustOutliveItsProcessDoes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"keep", "fixed"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			path, _ := newFile(t)
			p := start(t, mode, path)
			p.ready(t)
			p.kill(t)
			if took, err := lockWithin(t, newClient(t, path), 700*time.Millisecond); !errors.Is(err, hasp.ErrHeld) {
				t.Errorf("after %v: %v, want ErrHeld", took, err)
			}
		})
	}
}

// A process that inherits the lock file keeps the lock of one that was killed.
func TestAnInheritedLockFileKeepsTheLock(t *testing.T) {
	t.Parallel()
	path, _ := newFile(t)
	p := start(t, "pass", path)
	p.ready(t)
	p.kill(t)
	c := newClient(t, path)
	if took, err := lockWithin(t, c, 700*time.Millisecond); !errors.Is(err, hasp.ErrHeld) {
		t.Errorf("while another process has the file, after %v: %v, want ErrHeld", took, err)
	}
	_ = p.in.Close() // ends that process
	if took, err := lockWithin(t, c, 5*time.Second); err != nil || took > time.Second {
		t.Errorf("after that process has ended, after %v: %v", took, err)
	}
}

// Close leaves what is held alone, and the process's end frees it.
func TestCloseKeepsTheLockFileOfWhatIsHeld(t *testing.T) {
	t.Parallel()
	path, _ := newFile(t)
	p := start(t, "close", path)
	p.ready(t)
	c := newClient(t, path)
	if took, err := lockWithin(t, c, 700*time.Millisecond); !errors.Is(err, hasp.ErrHeld) {
		t.Errorf("after Close, after %v: %v, want ErrHeld", took, err)
	}
	p.kill(t)
	if took, err := lockWithin(t, c, 5*time.Second); err != nil || took > time.Second {
		t.Errorf("after the kill, after %v: %v", took, err)
	}
}

func TestCloseRemovesSessionAndLockFile(t *testing.T) {
	t.Parallel()
	path, db := newFile(t)
	d := sqlitelease.New(db, nil)
	if d.LockFile() != nil {
		t.Error("a lock file before the first Join")
	}
	c := mutex("client", "key")
	if _, err := d.Join(t.Context(), driver.Join{Claim: c}); err != nil {
		t.Fatal(err)
	}
	if f := d.LockFile(); f == nil || lockFiles(t, path) != 1 {
		t.Errorf("no lock file after the first Join: %v", f)
	}
	if _, err := d.Leave(t.Context(), driver.Leaving{Ref: c.Ref}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var sessions int
	if err := db.QueryRow("SELECT COUNT(*) FROM hasp_sessions").Scan(&sessions); err != nil {
		t.Fatal(err)
	}
	if sessions != 0 || lockFiles(t, path) != 0 || d.LockFile() != nil {
		t.Errorf("%d sessions and %d lock files after Close", sessions, lockFiles(t, path))
	}
}

// What killed processes left is swept by a later client, also a file without a row.
func TestLeftoversOfTheDeadAreSwept(t *testing.T) {
	t.Parallel()
	path, db := newFile(t)
	for range 3 {
		p := start(t, "hold", path)
		p.ready(t)
		p.kill(t)
	}
	if err := os.WriteFile(path+"-hasp-stray", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Dir(path)+"/other.db-hasp-x", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for i := 0; ; i++ { // a sweep begins at a random session
		d := sqlitelease.New(db, nil)
		c := mutex("client", "other")
		if _, err := d.Join(ctx, driver.Join{Claim: c}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Leave(ctx, driver.Leaving{Ref: c.Ref}); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(ctx); err != nil {
			t.Fatal(err)
		}
		var rows int
		if err := db.QueryRow("SELECT (SELECT COUNT(*) FROM hasp_sessions) + (SELECT COUNT(*) FROM hasp_claims)").Scan(&rows); err != nil {
			t.Fatal(err)
		}
		if rows == 0 && lockFiles(t, path) == 0 {
			break
		}
		if i == 200 {
			t.Fatalf("%d rows and %d files are left", rows, lockFiles(t, path))
		}
	}
	if _, err := os.Stat(filepath.Dir(path) + "/other.db-hasp-x"); err != nil {
		t.Errorf("another database's file: %v", err)
	}
}
