//go:build linux

package sqlitelease_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// soon is less than half the TTL of the claims that die here: nobody waited for their expiry.
const soon = 14 * time.Second

// wantHeld waits for the key in vain.
func wantHeld(t *testing.T, c *hasp.Client) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		_, err := lockWithin(t, c, 700*time.Millisecond)
		if errors.Is(err, hasp.ErrHeld) {
			return
		}
		if !errors.Is(err, hasp.ErrUnavailable) || time.Now().After(end) { // no answer on a busy machine says nothing
			t.Fatalf("%v, want ErrHeld", err)
		}
	}
}

func TestAKilledHolderIsPassedBeforeItsExpiry(t *testing.T) {
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
	if took := (<-waits).Sub(killed); took > soon {
		t.Errorf("held %v after the kill", took)
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

// A claim that waits lives six seconds without a renewal, which a busy machine may take to
// look; so this is tried some times.
func TestAKilledWaiterIsPassedBeforeItsExpiry(t *testing.T) {
	t.Parallel()
	var late []time.Duration
	for range 10 {
		by := passedKilledWaiter(t)
		if by <= 0 {
			return
		}
		late = append(late, by)
	}
	t.Errorf("passed, each time, so long after its expiry: %v", late)
}

// passedKilledWaiter answers how long after its expiry a dead claim was passed.
func passedKilledWaiter(t *testing.T) time.Duration {
	t.Helper()
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
	c = newClient(t, path)
	began := time.Now()
	line, err := c.Inspect(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if len(line.Holders) == 0 {
		return time.Nanosecond // it has expired
	}
	_, err = lockWithin(t, c, patience)
	took := time.Since(began)
	if err != nil {
		t.Fatalf("after %v: %v", took, err)
	}
	return took - line.Holders[0].ExpiresIn
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
			wantHeld(t, newClient(t, path))
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
	wantHeld(t, c)   // while another process has the file
	_ = p.in.Close() // ends that process
	if took, err := lockWithin(t, c, soon); err != nil {
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
	wantHeld(t, c)
	p.kill(t)
	if took, err := lockWithin(t, c, soon); err != nil {
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
	// A sweep that finds a file busy for a moment leaves it to the next client.
	for end := time.Now().Add(time.Minute); !sweptBy(t, db, path); {
		if time.Now().After(end) {
			t.Fatalf("%d rows and %d files are left", leftovers(t, db), lockFiles(t, path))
		}
	}
	if _, err := os.Stat(filepath.Dir(path) + "/other.db-hasp-x"); err != nil {
		t.Errorf("another database's file: %v", err)
	}
}

// sweptBy says whether nothing is left but what a new client has itself, within the time
// it takes to sweep.
func sweptBy(t *testing.T, db *sql.DB, path string) bool {
	t.Helper()
	d := sqlitelease.New(db, nil)
	c := mutex("client", "other")
	if _, err := d.Join(t.Context(), driver.Join{Claim: c}); err != nil {
		t.Fatal(err)
	}
	swept := false
	for end := time.Now().Add(2 * time.Second); !swept && time.Now().Before(end); time.Sleep(time.Millisecond) {
		swept = leftovers(t, db) == 2 && lockFiles(t, path) == 1
	}
	if _, err := d.Leave(t.Context(), driver.Leaving{Ref: c.Ref}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return swept
}

// leftovers counts sessions and claims.
func leftovers(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRow("SELECT (SELECT COUNT(*) FROM hasp_sessions) + (SELECT COUNT(*) FROM hasp_claims)").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// One sweep sees every session where they are few, wherever it begins.
func TestASweepLooksAtTheFirstSessionToo(t *testing.T) {
	t.Parallel()
	path, db := newFile(t)
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		name := fmt.Sprintf("%s-hasp-%d", path, i)
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		const text = "INSERT INTO hasp_sessions (inbox, session, boot, file, changed, expires_at) VALUES (?1, 0, ?2, ?3, 0, 1 << 62)"
		inbox := []byte{0, 0, 0, 0, 0, byte(i)}
		if _, err := db.Exec(text, inbox, strings.TrimSpace(string(boot)), filepath.Base(name)); err != nil {
			t.Fatal(err)
		}
	}
	if !sweptBy(t, db, path) {
		t.Errorf("%d rows and %d files are left", leftovers(t, db), lockFiles(t, path))
	}
}
