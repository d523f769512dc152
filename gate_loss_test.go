package hasp_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
)

func TestALeaseWithLittleTrustIsRenewedBeforeItGoesOn(t *testing.T) {
	t.Parallel()
	for name, mended := range map[string]bool{"answered": true, "not answered": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				line := newWire(w.store.Driver())
				c := w.clientWith(line, hasp.Options{Name: "a", Lock: hasp.LockOptions{LocalHandoffs: 1}})
				lease := w.lock(c, "k")
				next := w.waiting(c, "k")
				line.every(swallowed, renew)
				time.Sleep(ttl * 8 / 10)
				until := lease.TrustedUntil()
				if mended {
					line.mend()
					line.every(fault{reply: 50 * time.Millisecond}, renew)
				}
				wantError(t, lease.Release(w.ctx))
				if next.ended() {
					t.Fatal("it went on with less than a third of its trust")
				}
				if mended {
					if l := w.held(next); !l.TrustedUntil().After(until) || l.Token() != lease.Token()+1 {
						t.Errorf("trusted until %s later, token %d", l.TrustedUntil().Sub(until), l.Token()-lease.Token())
					}
					return
				}
				time.Sleep(ttl)
				if next.ended() {
					t.Error("it went on without trust")
				}
				line.mend()
				if l := w.held(next); number(l) == number(lease) {
					t.Error("a lease that had expired went on")
				}
			})
		})
	}
}

func TestWhoseWaitIsOverBeforeItsRenewalIsAnsweredTakesNobodyAlong(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		line := newWire(w.store.Driver())
		c := w.clientWith(line, hasp.Options{Name: "a", Lock: hasp.LockOptions{LocalHandoffs: 1}})
		lease := w.lock(c, "k")
		short := w.start(func() (*hasp.Lease, error) {
			return c.With(hasp.LockOptions{Wait: ttl * 85 / 100}).Mutex("k").Lock(w.ctx)
		})
		next := w.waiting(c, "k")
		line.every(swallowed, renew)
		time.Sleep(ttl * 8 / 10)
		line.mend()
		line.every(fault{reply: 300 * time.Millisecond}, renew)
		wantError(t, lease.Release(w.ctx)) // with so little trust left that a renewal is owed
		w.refused(short, hasp.ErrUnavailable)
		if l := w.held(next); number(l) != number(lease) {
			t.Error("the place in line was not handed on")
		}
		wantError(t, next.lease.Release(w.ctx))
		w.gatesShut(c)
	})
}

func TestWhoWaitsGoesOnWithAClaimOfItsOwnAfterALoss(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		lease := w.lock(c, "k")
		next := w.waiting(c, "k")
		wantError(t, w.client("op").ForceRelease(w.ctx, "k", 0))
		n := w.held(next)
		wantError(t, lease.Err(), hasp.ErrLost)
		wantError(t, lease.Release(w.ctx), hasp.ErrLost)
		if number(n) <= number(lease) {
			t.Errorf("number %d after %d", number(n), number(lease))
		}
		wantError(t, n.Err())
		wantError(t, n.Release(w.ctx))
		w.gatesShut(c)
	})
}

func TestRevokeKeepsTheNextOfTheProcessWaitingUntilTheRelease(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		lease := w.lock(c, "k")
		next := w.waiting(c, "k")
		wantError(t, w.client("op").Revoke(w.ctx, "k", lease.Token()))
		time.Sleep(10 * time.Millisecond)
		wantError(t, lease.Err(), hasp.ErrLost)
		if next.ended() {
			t.Error("the next holds beside a revoked one")
		}
		wantError(t, lease.Release(w.ctx), hasp.ErrLost)
		wantError(t, w.held(next).Release(w.ctx))
	})
}

func TestWhatIsKeptDetachedOrExtendedDoesNotGoOn(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*world, *hasp.Lease) error{
		"kept": func(w *world, l *hasp.Lease) error { return l.Keep(w.ctx, time.Second) },
		"detached": func(w *world, l *hasp.Lease) error {
			_, err := l.Detach(w.ctx, time.Second)
			return err
		},
		"extended": func(w *world, l *hasp.Lease) error {
			return errors.Join(l.Extend(w.ctx, time.Hour), l.Release(w.ctx))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				c := w.client("a")
				lease := w.lock(c, "k")
				next := w.waiting(c, "k")
				wantError(t, end(w, lease))
				if name != "extended" && next.ended() {
					t.Error("it holds what is kept")
				}
				n := w.held(next)
				if number(n) == number(lease) || w.rest("k") > ttl {
					t.Errorf("number %d, which is kept for %s", number(n), w.rest("k"))
				}
				wantError(t, n.Release(w.ctx))
				w.gatesShut(c)
			})
		})
	}
}

func TestCloseEndsWhoWaitsInTheGate(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		lease := w.lock(c, "k")
		first, second := w.waiting(c, "k"), w.waiting(c, "k")
		done := make(chan error)
		go func() { done <- c.Close(w.ctx) }()
		w.refused(first, hasp.ErrClosed)
		w.refused(second, hasp.ErrClosed)
		wantError(t, lease.Err(), hasp.ErrClosed)
		wantError(t, lease.Release(w.ctx))
		wantError(t, <-done)
		w.gatesShut(c)
		w.empty()
	})
}

func TestASilentStoreIsUnavailableToAllWhoWaitInTheGate(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		wantError(t, w.lock(c, "other").Release(w.ctx))
		line.every(swallowed)
		began := time.Now()
		all := []*attempt{w.waiting(c, "k"), w.waiting(c, "k"), w.waiting(c, "k")}
		short := w.start(func() (*hasp.Lease, error) {
			return c.With(hasp.LockOptions{Wait: time.Second}).Mutex("k").Lock(w.ctx)
		})
		w.refused(short, hasp.ErrUnavailable)
		for _, a := range all {
			w.refused(a, hasp.ErrUnavailable)
		}
		within(t, "all", time.Since(began), 5100*time.Millisecond)
		w.gatesShut(c)
		line.mend()
		wantError(t, w.lock(c, "k").Release(w.ctx))
	})
}

func TestAJoinBehindThatIsNotAnsweredStillLeaves(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"lost": lostRequest, "done": lostReply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				c, line := w.wired("a")
				lease := w.lock(c, "k")
				ctx, cancel := context.WithCancel(w.ctx)
				next := w.start(func() (*hasp.Lease, error) { return c.Mutex("k").Lock(ctx) })
				outside := w.waiting(w.client("b"), "k")
				time.Sleep(1100 * time.Millisecond)
				line.every(f, join)
				released := make(chan error, 1)
				go func() { released <- lease.Release(w.ctx) }()
				time.Sleep(time.Millisecond)
				cancel()
				w.refused(next, hasp.ErrHeld)
				wantError(t, <-released)
				wantError(t, w.held(outside).Release(w.ctx))
				line.mend()
				time.Sleep(time.Second)
				w.empty()
				w.gatesShut(c)
			})
		})
	}
}

func TestAFullStoreThatRefusesTheNextStillFreesTheKey(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		full := &fullStore{Driver: w.store.Driver()}
		c := w.clientWith(full, hasp.Options{Name: "a", Lock: hasp.LockOptions{TTL: time.Minute}})
		lease := w.lock(c, "k")
		next := w.waiting(c, "k")
		time.Sleep(2 * time.Second) // until it is not known any more that nobody else waits
		full.full = true
		wantError(t, lease.Release(w.ctx))
		w.refused(next, hasp.ErrRefused)
		w.empty()
		w.gatesShut(c)
	})
}

// fullStore takes no new claims, and lets those it has be renewed and left.
type fullStore struct {
	*memlease.Driver

	full bool
}

func (f *fullStore) Join(ctx context.Context, j driver.Join) (driver.Standing, error) {
	if f.full {
		return driver.Standing{}, driver.ErrRefused
	}
	return f.Driver.Join(ctx, j)
}
