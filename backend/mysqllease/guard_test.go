package mysqllease_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/mysqllease"
	"github.com/hasp-dev/hasp/backend/sqllease"
	"github.com/hasp-dev/hasp/driver"
)

// guarded is a database with hasp's tables and one of the user's.
type guarded struct {
	t    *testing.T
	s    *server
	name string
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	s := sharedServer(t)
	g := &guarded{t: t, s: s, name: s.database(t)}
	if _, err := s.open(t, g.name).ExecContext(t.Context(), "CREATE TABLE orders (id BIGINT PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *guarded) client(o hasp.LockOptions) *hasp.Client {
	g.t.Helper()
	return g.observed(o, nil)
}

func (g *guarded) observed(o hasp.LockOptions, observe func(context.Context, hasp.Event)) *hasp.Client {
	g.t.Helper()
	c, err := hasp.New(mysqllease.New(g.s.open(g.t, g.name), nil), &hasp.Options{Lock: o, Observe: observe})
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

func (g *guarded) lock(c *hasp.Client, keys ...string) *hasp.Lease {
	g.t.Helper()
	lease, err := c.Mutex(keys[0], keys[1:]...).Lock(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	return lease
}

// begin starts a transaction in the isolation that is MySQL's default.
func (g *guarded) begin() *sql.Tx {
	g.t.Helper()
	tx, err := g.s.open(g.t, g.name).BeginTx(g.t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// guard begins a transaction that is guarded.
func (g *guarded) guard(lease driver.Proven) *sql.Tx {
	g.t.Helper()
	tx := g.begin()
	if err := sqllease.Guard(g.t.Context(), tx, lease); err != nil {
		g.t.Fatal(err)
	}
	return tx
}

// awaitRenewal waits until a lease was renewed past a time.
func (g *guarded) awaitRenewal(lease *hasp.Lease, past time.Time) {
	g.t.Helper()
	for !lease.TrustedUntil().After(past) {
		if err := lease.Err(); err != nil {
			g.t.Fatalf("%v is lost under the guard: %v", lease, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// The next holder comes only after the transaction, also when the lease has expired and its
// session is gone.
func TestGuardKeepsTheNextHolderOutUntilTheTransactionEnds(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"expired", "renewed before", "forced", "revoked"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			g, ctx := newGuarded(t), t.Context()
			holder := g.client(hasp.LockOptions{TTL: 5 * time.Second, NoRenew: how == "expired", MaxHold: 10 * time.Second})
			lease := g.lock(holder, "order:42", "stock:7")
			if how == "renewed before" {
				g.awaitRenewal(lease, lease.TrustedUntil())
			}
			tx := g.guard(lease)
			forced := make(chan error, 1)
			other := g.client(hasp.LockOptions{})
			switch how {
			case "forced":
				go func() { forced <- other.ForceRelease(ctx, "order:42", 0) }()
			case "revoked":
				go func() { forced <- other.Revoke(ctx, "order:42", 0) }()
			default:
				<-lease.Done()
				forced <- nil
			}
			found := make(chan int, 1)
			next, db := g.client(hasp.LockOptions{}), g.s.open(t, g.name)
			go func() {
				n := -1
				lease, err := next.Mutex("order:42").Lock(ctx)
				if err == nil {
					err = errors.Join(db.QueryRowContext(ctx, "SELECT COUNT(*) FROM orders").Scan(&n), lease.Release(ctx))
				}
				if err != nil {
					t.Error(err)
				}
				found <- n
			}()
			select {
			case <-found:
				t.Fatal("somebody else got the lock while the transaction was open")
			case <-time.After(2 * time.Second):
			}
			if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES (42)"); err != nil {
				t.Error(err)
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
			if n := <-found; n != 1 {
				t.Errorf("the next holder sees %d orders, want the one written under the guard", n)
			}
			if err := <-forced; err != nil {
				t.Errorf("%s: %v", how, err)
			}
		})
	}
}

// Renewals go on from the first one, also of the client's other claims, and others may
// join the line.
func TestGuardLetsRenewalsGoOn(t *testing.T) {
	t.Parallel()
	g, ctx := newGuarded(t), t.Context()
	const ttl = 6 * time.Second
	c := g.client(hasp.LockOptions{TTL: ttl})
	lease, other := g.lock(c, "order:42"), g.lock(c, "order:43")
	tx := g.guard(lease)
	third, err := c.With(hasp.LockOptions{Wait: ttl}).Mutex("order:44").Lock(ctx)
	if err != nil {
		t.Fatalf("another key of the same client: %v", err)
	}
	if _, err := g.client(hasp.LockOptions{Wait: ttl / 2}).Mutex("order:42").Lock(ctx); !errors.Is(err, hasp.ErrHeld) {
		t.Errorf("another client: %v, want ErrHeld", err)
	}
	g.awaitRenewal(lease, lease.TrustedUntil().Add(ttl))
	g.awaitRenewal(other, other.TrustedUntil())
	if err := sqllease.Guard(ctx, tx, lease); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(lease.Release(ctx), other.Release(ctx), third.Release(ctx)); err != nil {
		t.Error(err)
	}
}

// A claim that must be taken out of its life while it is guarded does not hold up the
// claims that live by the same.
func TestGuardOfAClaimThatIsOverDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	const ttl = 3 * time.Second
	c := g.observed(hasp.LockOptions{TTL: ttl}, func(_ context.Context, e hasp.Event) {
		if e.Kind == hasp.EventRenewFailed {
			t.Errorf("a renewal of %q took %v and failed: %v", e.Keys, e.Took, e.Err)
		}
	})
	short := g.lock(c.With(hasp.LockOptions{MaxHold: 2 * ttl}), "short")
	long := g.lock(c, "long")
	g.awaitRenewal(short, short.TrustedUntil())
	tx := g.guard(short)
	<-short.Done()
	g.awaitRenewal(long, long.TrustedUntil().Add(2*ttl))
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	next, err := g.client(hasp.LockOptions{}).Mutex("short").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = next.Release(t.Context())
	if err := long.Err(); err != nil {
		t.Error(err)
	}
}

// With one connection there is none to renew over; the guard does not wait for it.
func TestGuardOnTheOnlyConnection(t *testing.T) {
	t.Parallel()
	g, ctx := newGuarded(t), t.Context()
	db := g.s.open(t, g.name)
	db.SetMaxOpenConns(1)
	c, err := hasp.New(mysqllease.New(db, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	lease := g.lock(c, "order:42")
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqllease.Guard(ctx, tx, lease); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(lease.Release(ctx), c.Close(ctx)); err != nil {
		t.Error(err)
	}
}

// paused is the proof of a lease whose owner has not looked at it since.
type paused struct{ lease *hasp.Lease }

func (p paused) Ref() driver.Ref       { return p.lease.Ref() }
func (p paused) Driver() driver.Driver { return p.lease.Driver() }

func TestGuardRefusesALeaseThatIsOver(t *testing.T) {
	t.Parallel()
	g, ctx := newGuarded(t), t.Context()
	c := g.client(hasp.LockOptions{})
	released, forced, revoked, passed := g.lock(c, "released", "too"), g.lock(c, "forced"), g.lock(c, "revoked"),
		g.lock(g.client(hasp.LockOptions{TTL: 300 * time.Millisecond, NoRenew: true}), "passed")
	if err := errors.Join(released.Release(ctx), c.ForceRelease(ctx, "forced", 0), c.Revoke(ctx, "revoked", 0)); err != nil {
		t.Fatal(err)
	}
	g.lock(c, "passed")
	for _, lease := range []*hasp.Lease{released, forced, revoked, passed} {
		tx := g.begin()
		err := sqllease.Guard(ctx, tx, paused{lease})
		if err := tx.Rollback(); err != nil { // else other keys may have to wait
			t.Error(err)
		}
		if !errors.Is(err, hasp.ErrLost) {
			t.Errorf("%v: got %v, want ErrLost", lease, err)
		}
		if lease == revoked && !strings.Contains(err.Error(), "revoked") {
			t.Errorf("%v does not say that it was revoked", err)
		}
	}
	reader, err := c.RWMutex("catalog").RLock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.guard(reader).Rollback(); err != nil {
		t.Error(err)
	}
	// The database's own error is in the guard's.
	tx := g.begin()
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := sqllease.Guard(ctx, tx, reader); !errors.Is(err, sql.ErrTxDone) || !errors.Is(err, hasp.ErrUnavailable) {
		t.Errorf("a transaction that has ended: %v", err)
	}
}
