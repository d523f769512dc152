package hasp_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
)

func TestANestedLockIsInvalidAtOnceAndSaysSo(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		sub := c.Sub("app:")
		l := w.lock(c, "app:k", "other")
		ctx := l.Context(w.ctx)
		before := line.total()
		tries := map[string]func() (*hasp.Lease, error){
			"Lock":        func() (*hasp.Lease, error) { return c.Mutex("app:k").Lock(ctx) },
			"TryLock":     func() (*hasp.Lease, error) { return c.Mutex("app:k").TryLock(ctx) },
			"by prefix":   func() (*hasp.Lease, error) { return sub.Mutex("k").Lock(ctx) },
			"one of more": func() (*hasp.Lease, error) { return c.Mutex("new", "other").Lock(ctx) },
			"read":        func() (*hasp.Lease, error) { return c.RWMutex("other").RLock(ctx) },
			"permit":      func() (*hasp.Lease, error) { return c.Semaphore("other", 3).Acquire(ctx, 1) },
			"deeper":      func() (*hasp.Lease, error) { return c.Mutex("other").Lock(context.WithoutCancel(ctx)) },
			"other client": func() (*hasp.Lease, error) {
				return c.With(hasp.LockOptions{TTL: time.Minute}).Mutex("other").Lock(ctx)
			},
		}
		for name, try := range tries {
			began := time.Now()
			inner, err := try()
			if inner != nil {
				t.Errorf("%s: a lease", name)
			}
			within(t, name, time.Since(began), 0)
			wantError(t, err, hasp.ErrInvalid)
		}
		wantError(t, c.Mutex("other").Do(ctx, func(context.Context) error { t.Error("fn ran"); return nil }), hasp.ErrInvalid)
		if n := line.total() - before; n != 0 {
			t.Errorf("%d calls", n)
		}
		free, err := c.Mutex("free").Lock(ctx) // another key is another lock
		wantError(t, err)
		wantError(t, free.Release(w.ctx))
		wantError(t, l.Release(w.ctx))
		again, err := c.Mutex("other").Lock(context.WithoutCancel(ctx)) // what it carries has ended
		wantError(t, err)
		wantError(t, again.Release(w.ctx))
	})
}

func TestAReentrantLockSharesTheOuterLease(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		r := &recorder{}
		line := newWire(w.store.Driver())
		c := w.clientWith(line, hasp.Options{Observe: r.observe, Lock: hasp.LockOptions{Reentrant: true}})
		outer := w.lock(c, "k", "k2")
		ctx := outer.Context(w.ctx)
		before := line.total()
		inner, err := c.Mutex("k2").Lock(ctx)
		wantError(t, err)
		if inner.Token() != outer.Token() {
			t.Errorf("token %d, want %d", inner.Token(), outer.Token())
		}
		innermost, err := c.Mutex("k2", "k").TryLock(inner.Context(ctx))
		wantError(t, err)
		wantError(t, innermost.Release(w.ctx))
		wantError(t, innermost.Release(w.ctx))
		wantError(t, innermost.Err(), hasp.ErrReleased)
		wantError(t, inner.Err())
		wantError(t, inner.Release(w.ctx))
		wantError(t, outer.Err())
		if n := line.total() - before; n != 0 {
			t.Errorf("%d calls", n)
		}
		if len(w.line("k").Holders) != 1 {
			t.Error("the inner release freed the key")
		}
		wantError(t, outer.Release(w.ctx))
		w.empty()
		if got, want := r.kinds(), "acquired released "; got != want {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

func TestANestedLeaseEndsWithItsOuterOne(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.locks("a", hasp.LockOptions{Reentrant: true})
		outer := w.lock(c, "k")
		inner, err := c.Mutex("k").Lock(outer.Context(w.ctx))
		wantError(t, err)
		work := inner.Context(w.ctx)
		wantError(t, outer.Release(w.ctx))
		wantError(t, inner.Err(), hasp.ErrReleased)
		wantError(t, context.Cause(work), hasp.ErrReleased)
		<-inner.Done()
		wantError(t, inner.Release(w.ctx))

		outer = w.lock(c, "k")
		inner, err = c.Mutex("k").Lock(outer.Context(w.ctx))
		wantError(t, err)
		w.store.Drop("k")
		<-inner.Done()
		lost(t, inner)
		lost(t, outer)
		wantError(t, inner.Release(w.ctx), hasp.ErrLost)
		wantError(t, outer.Release(w.ctx), hasp.ErrLost)
	})
}

func TestAReadUnderAWriteShares(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		rw := w.locks("a", hasp.LockOptions{Reentrant: true}).RWMutex("k")
		err := rw.Do(w.ctx, func(ctx context.Context) error {
			return rw.RDo(ctx, func(ctx context.Context) error {
				return rw.RDo(ctx, func(context.Context) error { return nil })
			})
		})
		wantError(t, err)
		err = rw.RDo(w.ctx, func(ctx context.Context) error { // a write under a read would wait for itself
			return rw.Do(ctx, func(context.Context) error { t.Error("fn ran"); return nil })
		})
		wantError(t, err, hasp.ErrInvalid)
		w.empty()
	})
}

func TestReentrantSharesOnlyWhatTheOuterLeaseCovers(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.locks("a", hasp.LockOptions{Reentrant: true})
		mutex := w.lock(c, "k").Context(w.ctx)
		permits, err := c.Semaphore("s", 4).Acquire(w.ctx, 2)
		wantError(t, err)
		permit := permits.Context(w.ctx)
		for name, try := range map[string]func() (*hasp.Lease, error){
			"more keys":      func() (*hasp.Lease, error) { return c.Mutex("k", "new").Lock(mutex) },
			"another kind":   func() (*hasp.Lease, error) { return c.RWMutex("k").Lock(mutex) },
			"a reader":       func() (*hasp.Lease, error) { return c.RWMutex("k").RLock(mutex) },
			"more permits":   func() (*hasp.Lease, error) { return c.Semaphore("s", 4).Acquire(permit, 3) },
			"other capacity": func() (*hasp.Lease, error) { return c.Semaphore("s", 5).Acquire(permit, 1) },
		} {
			l, err := try()
			if l != nil {
				t.Errorf("%s: a lease", name)
			}
			wantError(t, err, hasp.ErrInvalid)
		}
		l, err := c.Semaphore("s", 4).Acquire(permit, 2)
		wantError(t, err)
		wantError(t, l.Release(w.ctx))
	})
}

func TestReentrantReachesGoroutinesStartedWithTheContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.locks("a", hasp.LockOptions{Reentrant: true})
		ran := 0
		var mu sync.Mutex
		err := c.Mutex("k").Do(w.ctx, func(ctx context.Context) error {
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					wantError(t, c.Mutex("k").Do(ctx, func(context.Context) error {
						mu.Lock()
						defer mu.Unlock()
						ran++
						return nil
					}))
				})
			}
			wg.Wait()
			return nil
		})
		wantError(t, err)
		if ran != 10 {
			t.Errorf("%d ran", ran)
		}
		w.empty()
	})
}

func TestReentrantReachesAcrossDerivedClientsButNotAcrossClients(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.locks("a", hasp.LockOptions{Reentrant: true})
		l := w.lock(c, "app:k")
		ctx := l.Context(w.ctx)
		inner, err := c.Sub("app:").With(hasp.LockOptions{TTL: time.Hour}).Mutex("k").Lock(ctx)
		wantError(t, err)
		if found, ok := hasp.FromContext(inner.Context(ctx), "k"); !ok || found != inner || found.Keys()[0] != "k" {
			t.Errorf("lease %v, want the nested one by the key it was locked with", found)
		}
		wantError(t, inner.Release(w.ctx))
		other := w.locks("b", hasp.LockOptions{Reentrant: true})
		_, err = other.Mutex("app:k").TryLock(ctx)
		wantError(t, err, hasp.ErrHeld)
		wantError(t, l.Release(w.ctx))
	})
}

func TestG12_NestedLeasesDoNotCollectInTheirOuterOne(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.locks("a", hasp.LockOptions{Reentrant: true})
		l := w.lock(c, "k")
		ctx := l.Context(w.ctx)
		before := hasp.Parts(l)
		for range 1000 {
			wantError(t, c.Mutex("k").Do(ctx, func(context.Context) error { return nil }))
		}
		if n := hasp.Parts(l); n != before {
			t.Errorf("%d things hang on the lease, %d before", n, before)
		}
		wantError(t, l.Release(w.ctx))
	})
}

func TestANestedLeaseLostWhileTheClientClosesIsLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.locks("a", hasp.LockOptions{Reentrant: true})
		outer := w.lock(c, "k")
		inner, err := c.Mutex("k").Lock(outer.Context(w.ctx))
		wantError(t, err)
		go func() { _ = c.Close(w.ctx) }()
		synctest.Wait()
		wantError(t, inner.Err(), hasp.ErrClosed)
		w.store.Drop("k")
		time.Sleep(ttl)
		wantError(t, inner.Release(w.ctx), hasp.ErrLost)
		wantError(t, outer.Release(w.ctx), hasp.ErrLost)
	})
}

func TestFromContextFindsTheInnermostLeaseOfAKey(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.locks("a", hasp.LockOptions{Reentrant: true})
		if _, ok := hasp.FromContext(w.ctx, "k"); ok {
			t.Error("a lease of nothing")
		}
		err := c.Mutex("k", "k2").Do(w.ctx, func(ctx context.Context) error {
			outer, ok := hasp.FromContext(ctx, "k2")
			if !ok {
				return errors.New("no lease on k2")
			}
			return c.Mutex("other").Do(ctx, func(ctx context.Context) error {
				if l, ok := hasp.FromContext(ctx, "k"); !ok || l != outer {
					t.Errorf("lease %v, want the outer one", l)
				}
				if _, ok := hasp.FromContext(ctx, "none"); ok {
					t.Error("a lease on a key nobody locked")
				}
				return c.Mutex("k").Do(ctx, func(ctx context.Context) error {
					if l, ok := hasp.FromContext(ctx, "k"); !ok || l == outer {
						t.Error("not the innermost lease")
					}
					if l, ok := hasp.FromContext(ctx, "k2"); !ok || l != outer {
						t.Error("not the lease that covers k2")
					}
					return nil
				})
			})
		})
		wantError(t, err)
	})
}

func TestANestedLeaseIsNotKeptDetachedOrReclaimedByItself(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.locks("a", hasp.LockOptions{Reentrant: true})
		outer := w.lock(c, "k")
		inner, err := c.Mutex("k").Lock(outer.Context(w.ctx))
		wantError(t, err)
		wantError(t, inner.Keep(w.ctx, time.Minute), hasp.ErrInvalid)
		_, err = inner.Detach(w.ctx, time.Minute)
		wantError(t, err, hasp.ErrInvalid)
		wantError(t, inner.Extend(w.ctx, time.Minute)) // it is the same claim
		if w.rest("k") != time.Minute {
			t.Errorf("rest %s", w.rest("k"))
		}
		wantError(t, outer.Err())
		w.store.Drop("k")
		time.Sleep(time.Minute)
		_, err = inner.Reclaim(w.ctx)
		wantError(t, err, hasp.ErrInvalid)
	})
}
