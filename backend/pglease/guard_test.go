package pglease_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/pglease"
	"github.com/hasp-dev/hasp/backend/sqllease"
	"github.com/hasp-dev/hasp/driver"
)

// transaction is one of the user's, of either kind.
type transaction struct {
	guard  func(driver.Proven) error
	exec   func(string) error
	commit func() error
}

// kinds are the ways to begin a transaction.
var kinds = map[string]func(*testing.T, string) transaction{
	"pgx": func(t *testing.T, url string) transaction {
		t.Helper()
		ctx := context.WithoutCancel(t.Context())
		tx, err := newPool(t, url).BeginTx(ctx, pgx.TxOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback(ctx) })
		return transaction{
			guard: func(l driver.Proven) error { return pglease.Guard(ctx, tx, l) },
			exec: func(text string) error {
				_, err := tx.Exec(ctx, text)
				return err
			},
			commit: func() error { return tx.Commit(ctx) },
		}
	},
	"database/sql": func(t *testing.T, url string) transaction {
		t.Helper()
		ctx := context.WithoutCancel(t.Context())
		db, err := sql.Open("pgx", url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback() })
		return transaction{
			guard: func(l driver.Proven) error { return sqllease.Guard(ctx, tx, l) },
			exec: func(text string) error {
				_, err := tx.ExecContext(ctx, text)
				return err
			},
			commit: tx.Commit,
		}
	},
}

// guarded is a database with hasp's tables and one of the user's.
func guarded(t *testing.T) (url string, client func(hasp.LockOptions) *hasp.Client) {
	t.Helper()
	url = newDatabase(t)
	if _, err := newPool(t, url).Exec(t.Context(), "CREATE TABLE orders (id bigint PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	return url, func(o hasp.LockOptions) *hasp.Client {
		t.Helper()
		c, err := hasp.New(pglease.New(newPool(t, url), nil), &hasp.Options{Lock: o})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
			defer stop()
			_ = c.Close(ctx)
		})
		return c
	}
}

// next locks a key and answers how many orders there are then.
func next(t *testing.T, url string, c *hasp.Client, key string) <-chan int {
	t.Helper()
	pool := newPool(t, url)
	found := make(chan int, 1)
	go func() {
		lease, err := c.Mutex(key).Lock(t.Context())
		if err != nil {
			t.Error(err)
			close(found)
			return
		}
		n := -1
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM orders").Scan(&n); err != nil {
			t.Error(err)
		}
		_ = lease.Release(t.Context())
		found <- n
	}()
	return found
}

func locked(t *testing.T, c *hasp.Client, keys ...string) *hasp.Lease {
	t.Helper()
	lease, err := c.Mutex(keys[0], keys[1:]...).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func wantClass(t *testing.T, err, class error) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Errorf("got %v, want %v", err, class)
	}
}

// The next holder comes only after the transaction, also when the lease has expired and its
// session is gone.
func TestGuardKeepsTheNextHolderOutUntilTheTransactionEnds(t *testing.T) {
	t.Parallel()
	for kind, begin := range kinds {
		for _, how := range []string{"expired", "renewed before", "forced", "revoked"} {
			t.Run(kind+" "+how, func(t *testing.T) {
				t.Parallel()
				url, client := guarded(t)
				holder := client(hasp.LockOptions{TTL: 5 * time.Second, NoRenew: how == "expired", MaxHold: 10 * time.Second})
				lease := locked(t, holder, "order:42", "stock:7")
				if how == "renewed before" {
					until := lease.TrustedUntil()
					for lease.Err() == nil && lease.TrustedUntil().Equal(until) {
						time.Sleep(10 * time.Millisecond)
					}
				}
				tx := begin(t, url)
				if err := tx.guard(lease); err != nil {
					t.Fatal(err)
				}
				other := client(hasp.LockOptions{})
				forced := make(chan error, 1)
				switch how {
				case "forced":
					go func() { forced <- other.ForceRelease(t.Context(), "order:42", 0) }()
				case "revoked":
					go func() { forced <- other.Revoke(t.Context(), "order:42", 0) }()
				default:
					<-lease.Done()
					forced <- nil
				}
				found := next(t, url, client(hasp.LockOptions{}), "order:42")
				select {
				case <-found:
					t.Fatal("somebody else got the lock while the transaction was open")
				case <-time.After(2 * time.Second):
				}
				if err := tx.exec("INSERT INTO orders VALUES (42)"); err != nil {
					t.Error(err)
				}
				if err := tx.commit(); err != nil {
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
}

// Renewals go on, from the first one.
func TestGuardLetsRenewalsGoOn(t *testing.T) {
	t.Parallel()
	for kind, begin := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url, client := guarded(t)
			const ttl = 6 * time.Second
			lease := locked(t, client(hasp.LockOptions{TTL: ttl}), "order:42")
			tx := begin(t, url)
			if err := tx.guard(lease); err != nil {
				t.Fatal(err)
			}
			until := lease.TrustedUntil().Add(ttl)
			for lease.TrustedUntil().Before(until) {
				if err := lease.Err(); err != nil {
					t.Fatalf("the lease is lost under the guard: %v", err)
				}
				time.Sleep(20 * time.Millisecond)
			}
			if err := tx.guard(lease); err != nil {
				t.Errorf("again: %v", err)
			}
			if err := tx.commit(); err != nil {
				t.Error(err)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// paused is the proof of a lease whose owner has not looked at it since.
type paused struct{ lease *hasp.Lease }

func (p paused) Ref() driver.Ref       { return p.lease.Ref() }
func (p paused) Driver() driver.Driver { return p.lease.Driver() }

func TestGuardRefusesALeaseThatIsOver(t *testing.T) {
	t.Parallel()
	url, client := guarded(t)
	ctx := t.Context()
	c := client(hasp.LockOptions{})
	released, forced, revoked, passed := locked(t, c, "released", "too"), locked(t, c, "forced"), locked(t, c, "revoked"),
		locked(t, client(hasp.LockOptions{TTL: 300 * time.Millisecond, NoRenew: true}), "passed")
	for _, err := range []error{released.Release(ctx), c.ForceRelease(ctx, "forced", 0), c.Revoke(ctx, "revoked", 0)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	locked(t, c, "passed")
	for kind, begin := range kinds {
		for _, lease := range []*hasp.Lease{released, forced, revoked, passed} {
			err := begin(t, url).guard(paused{lease})
			wantClass(t, err, hasp.ErrLost)
			if lease == revoked && (err == nil || !strings.Contains(err.Error(), "revoked")) {
				t.Errorf("%s: %v does not say that it was revoked", kind, err)
			}
		}
		reader, err := c.RWMutex("catalog").RLock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := begin(t, url).guard(reader); err != nil {
			t.Errorf("%s: a reader: %v", kind, err)
		}
	}
	wantClass(t, pglease.Guard(ctx, nil, released), hasp.ErrInvalid)
}

// A claim that is taken over gets another ID under the same row.
func TestGuardKeepsOutWhoTakesTheLeaseOver(t *testing.T) {
	t.Parallel()
	url, client := guarded(t)
	ctx := t.Context()
	lease := locked(t, client(hasp.LockOptions{}), "order:42", "stock:7")
	tx := kinds["pgx"](t, url)
	if err := tx.guard(lease); err != nil {
		t.Fatal(err)
	}
	ticket, err := lease.Detach(ctx, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	resumed := make(chan error, 1)
	other := client(hasp.LockOptions{})
	go func() {
		_, err := other.Resume(ctx, ticket)
		resumed <- err
	}()
	select {
	case err := <-resumed:
		t.Fatalf("the lease was taken over while the transaction was open: %v", err)
	case <-time.After(time.Second):
	}
	if err := tx.commit(); err != nil {
		t.Error(err)
	}
	if err := <-resumed; err != nil {
		t.Error(err)
	}
}
