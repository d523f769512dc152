package sqlitelease_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/backend/sqllease"
	"github.com/hasp-dev/hasp/driver"
)

// guarded is a file with a table of the user's, and clients.
type guarded struct {
	t    *testing.T
	path string
	opts *sqlitelease.Options
}

func newGuarded(t *testing.T, opts *sqlitelease.Options) *guarded {
	t.Helper()
	path, db := newFile(t)
	if err := sqlitelease.Migrate(t.Context(), db, opts); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE orders (id INTEGER PRIMARY KEY, paid INTEGER NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	return &guarded{t: t, path: path, opts: opts}
}

// client makes a client on a handle of its own.
func (g *guarded) client(lock hasp.LockOptions) *hasp.Client {
	g.t.Helper()
	return g.clientOf(sqlitelease.New(openFile(g.t, g.path), g.opts), lock)
}

func (g *guarded) clientOf(d driver.Driver, lock hasp.LockOptions) *hasp.Client {
	g.t.Helper()
	c, err := hasp.New(d, &hasp.Options{Lock: lock})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(g.t.Context()), time.Second)
		defer stop()
		_ = c.Close(ctx)
	})
	return c
}

// begin starts a transaction of the user's, in which nothing was done yet.
func (g *guarded) begin() *sql.Tx {
	g.t.Helper()
	tx, err := openFile(g.t, g.path).BeginTx(g.t.Context(), nil)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func (g *guarded) lock(c *hasp.Client, keys ...string) *hasp.Lease {
	g.t.Helper()
	lease, err := c.Mutex(keys[0], keys[1:]...).Lock(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	return lease
}

func wantClass(t *testing.T, err, class error) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Errorf("got %v, want %v", err, class)
	}
}

// The next holder comes only after the transaction, also when the lease has expired.
func TestGuardKeepsTheNextHolderOutUntilTheTransactionEnds(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, nil)
	ctx := t.Context()
	short := g.client(hasp.LockOptions{TTL: 5 * time.Second, NoRenew: true})
	lease := g.lock(short, "order:42")
	tx := g.begin()
	if err := sqllease.Guard(ctx, tx, lease); err != nil {
		t.Fatal(err)
	}
	<-lease.Done() // it has expired, to its owner and, with the margin, to the store
	time.Sleep(50 * time.Millisecond)
	next := make(chan int)
	go func() {
		lease, err := g.client(hasp.LockOptions{}).Mutex("order:42").Lock(ctx)
		if err != nil {
			t.Error(err)
		}
		paid := -1
		if err := openFile(t, g.path).QueryRowContext(ctx, "SELECT COUNT(*) FROM orders").Scan(&paid); err != nil {
			t.Error(err)
		}
		next <- paid
		_ = lease.Release(ctx)
	}()
	select {
	case <-next:
		t.Fatal("somebody else got the lock while the transaction was open")
	case <-time.After(time.Second):
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES (42, 1)"); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	if paid := <-next; paid != 1 {
		t.Errorf("the next holder sees %d rows, want the one that was written under the guard", paid)
	}
}

func TestGuardTakesLeasesOfEveryKind(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, &sqlitelease.Options{Prefix: "locks_"})
	ctx := t.Context()
	c := g.client(hasp.LockOptions{})
	reader, err := c.RWMutex("catalog").RLock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	permit, err := c.Semaphore("gpu", 4).Acquire(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, lease := range []*hasp.Lease{reader, permit, g.lock(c, "a"), g.lock(c, "b", "c", "d")} {
		tx := g.begin()
		if err := sqllease.Guard(ctx, tx, lease); err != nil {
			t.Errorf("%v: %v", lease, err)
		}
		if err := sqllease.Guard(ctx, tx, lease); err != nil {
			t.Errorf("%v, again: %v", lease, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		if err := lease.Release(ctx); err != nil {
			t.Error(err)
		}
	}
}

// PZ-1: a holder that was paused while the next one came is refused.
func TestPZ1GuardRefusesALeaseThatWasPassed(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, nil)
	ctx := t.Context()
	old := sqlitelease.New(openFile(t, g.path), nil)
	lease := g.lock(g.clientOf(old, hasp.LockOptions{TTL: 200 * time.Millisecond, NoRenew: true}), "order:42")
	proof := paused{lease} // it does not know yet that time has passed
	g.lock(g.client(hasp.LockOptions{}), "order:42")
	err := sqllease.Guard(ctx, g.begin(), proof)
	wantClass(t, err, driver.ErrLost)
	wantClass(t, err, hasp.ErrLost)
	if !strings.Contains(err.Error(), `"order:42"`) {
		t.Errorf("%q does not name the key", err)
	}
	wantClass(t, sqllease.Guard(ctx, g.begin(), lease), hasp.ErrLost)
}

// paused is the proof of a lease whose owner has not looked at it.
type paused struct{ lease *hasp.Lease }

func (p paused) Ref() driver.Ref       { return p.lease.Ref() }
func (p paused) Driver() driver.Driver { return p.lease.Driver() }

func TestGuardRefusesALeaseThatIsOver(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]func(ctx context.Context, c *hasp.Client, l *hasp.Lease) error{
		"released": func(ctx context.Context, _ *hasp.Client, l *hasp.Lease) error { return l.Release(ctx) },
		"forced":   func(ctx context.Context, c *hasp.Client, _ *hasp.Lease) error { return c.ForceRelease(ctx, "b", 0) },
		"revoked":  func(ctx context.Context, c *hasp.Client, _ *hasp.Lease) error { return c.Revoke(ctx, "b", 0) },
		"taken over": func(ctx context.Context, c *hasp.Client, l *hasp.Lease) error {
			ticket, err := l.Detach(ctx, time.Minute)
			if err == nil {
				_, err = c.Resume(ctx, ticket)
			}
			return err
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			g := newGuarded(t, nil)
			lease := g.lock(g.client(hasp.LockOptions{}), "a", "b")
			proof := paused{lease}
			if err := end(t.Context(), g.client(hasp.LockOptions{}), lease); err != nil {
				t.Fatal(err)
			}
			err := sqllease.Guard(t.Context(), g.begin(), proof)
			wantClass(t, err, hasp.ErrLost)
			if how == "revoked" && !strings.Contains(err.Error(), "revoked") {
				t.Errorf("%q does not say that it was revoked", err)
			}
		})
	}
}

// The claim's row may stay behind for a while, or for another lease of this process.
func TestGuardRefusesALeaseThatItsOwnerHasGivenUp(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, nil)
	c := g.client(hasp.LockOptions{})
	released, kept := g.lock(c, "released"), g.lock(c, "kept")
	if err := errors.Join(released.Release(t.Context()), kept.Keep(t.Context(), time.Minute)); err != nil {
		t.Fatal(err)
	}
	wantClass(t, sqllease.Guard(t.Context(), g.begin(), released), hasp.ErrReleased)
	wantClass(t, sqllease.Guard(t.Context(), g.begin(), kept), hasp.ErrReleased)
}

// G11: a lease is kept while its owner finishes, so that he can.
func TestGuardTakesALeaseWhoseClientIsClosing(t *testing.T) {
	t.Parallel()
	g, ctx := newGuarded(t, nil), t.Context()
	c := g.client(hasp.LockOptions{})
	lease := g.lock(c, "a")
	closed := make(chan error, 1)
	go func() { closed <- c.Close(ctx) }()
	<-lease.Done()
	wantClass(t, lease.Err(), hasp.ErrClosed)
	tx := g.begin()
	if err := errors.Join(sqllease.Guard(ctx, tx, lease), tx.Commit(), lease.Release(ctx), <-closed); err != nil {
		t.Error(err)
	}
}

func TestGuardRefusesWhatItCannotGuard(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, nil)
	ctx := t.Context()
	lease := g.lock(g.client(hasp.LockOptions{}), "a")
	elsewhere := g.lock(g.clientOf(memlease.NewStore().Driver(), hasp.LockOptions{}), "a")
	wantClass(t, sqllease.Guard(ctx, g.begin(), elsewhere), hasp.ErrUnsupported)
	wantClass(t, sqllease.Guard(ctx, nil, lease), hasp.ErrInvalid)
	wantClass(t, sqllease.Guard(ctx, g.begin(), nil), hasp.ErrInvalid)

	// another file with the same tables
	wantClass(t, sqllease.Guard(ctx, newGuarded(t, nil).begin(), lease), hasp.ErrLost)
	// a database without them
	tx, err := openFile(t, t.TempDir()+"/other.db").BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = sqllease.Guard(ctx, tx, lease)
	if err == nil || errors.Is(err, hasp.ErrLost) {
		t.Errorf("a database without hasp's tables is %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	// another transaction writes
	writer := g.begin()
	if _, err := writer.ExecContext(ctx, "INSERT INTO orders VALUES (1, 1)"); err != nil {
		t.Fatal(err)
	}
	wantClass(t, sqllease.Guard(ctx, g.begin(), lease), hasp.ErrUnavailable)
	if !sqlitelease.New(openFile(t, g.path), nil).Features().Guard {
		t.Error("the features do not say that it guards")
	}
}
