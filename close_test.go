package hasp_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
)

// closing starts a Close.
func (w *world) closing(c *hasp.Client) *attempt {
	return w.start(func() (*hasp.Lease, error) { return nil, c.Close(w.ctx) })
}

func TestCloseOfAnIdleClientIsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("never used")
		wantError(t, c.Close(w.ctx))
		wantError(t, c.Close(w.ctx))
		c = w.client("used")
		wantError(t, w.lock(c, "k").Release(w.ctx))
		wantError(t, c.Close(w.ctx))
		wantError(t, c.Close(w.ctx))
	})
}

func TestG11_CloseEndsContextsRenewsUntilTheReleaseAndThenCloses(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		l := w.lock(c, "k")
		ctx := l.Context(w.ctx)
		closing := w.closing(c)
		<-ctx.Done()
		wantError(t, context.Cause(ctx), hasp.ErrClosed)
		wantError(t, l.Err(), hasp.ErrClosed)
		<-l.Done()
		for range 100 { // SR-1: the work needs longer than a TTL to stop
			time.Sleep(ttl / 20)
			if rest := w.rest("k"); rest < ttl/3 {
				t.Fatalf("rest %s while the owner works", rest)
			}
		}
		if closing.ended() {
			t.Fatal("closed under running work")
		}
		wantError(t, l.Extend(w.ctx, ttl)) // the work may ask for time
		wantError(t, l.Release(w.ctx))
		<-closing.done
		wantError(t, closing.err)
		w.empty()
		before := line.total()
		time.Sleep(10 * ttl) // RR-5
		if n := line.total() - before; n != 0 {
			t.Errorf("%d calls after Close", n)
		}
	})
}

func TestG11_CloseEndsWaits(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c := w.client("b")
		sub := c.Sub("x:").With(hasp.LockOptions{TTL: time.Minute})
		held := w.lock(sub, "k")
		waits := []*attempt{
			w.waiting(c, "k"), w.waiting(sub, "k"), w.waiting(c, "free", "k"),
			w.start(func() (*hasp.Lease, error) {
				return nil, c.Mutex("k").Do(w.ctx, func(context.Context) error { t.Error("fn ran"); return nil })
			}),
		}
		closing := w.closing(c)
		for _, b := range waits {
			w.refused(b, hasp.ErrClosed)
			within(t, "the end of a wait", b.took, 0)
		}
		wantError(t, held.Release(w.ctx))
		<-closing.done
		wantError(t, closing.err)
		if n := w.line("k").Waiting; n != 0 {
			t.Errorf("%d still wait", n)
		}
		wantError(t, a.Release(w.ctx))
		w.empty()
	})
}

func TestSR2_WhatIsHeldWhenItsContextEndsIsNotReleasedAndNamed(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		r := &recorder{}
		c := w.clientWith(w.store.Driver(), hasp.Options{Prefix: "app:", Observe: r.observe})
		l1, l2 := w.lock(c, "b", "a"), w.lock(c.Sub("sub:"), "a")
		l3, err := c.RWMutex("r").RLock(w.ctx)
		wantError(t, err)
		ctx, cancel := context.WithTimeout(w.ctx, 2*time.Second)
		defer cancel()
		began := time.Now()
		err = c.Close(ctx)
		if d := time.Since(began); d != 2*time.Second {
			t.Errorf("Close took %s", d)
		}
		wantOp(t, err, "close", "")
		if err == nil || !strings.Contains(err.Error(), `["a" "b" "r" "sub:a"]`) {
			t.Errorf("error %v does not name the keys", err)
		}
		events := r.all()
		if last := events[len(events)-1]; last.Kind != hasp.EventClosed || !slices.Equal(last.Keys, []string{"a", "b", "r", "sub:a"}) || last.Err == nil {
			t.Errorf("event %+v", last)
		}
		rest := w.rest("app:a")
		if rest < ttl/3 {
			t.Errorf("rest %s: it was not renewed until the end", rest)
		}
		next := w.waiting(w.client("next"), "app:a")
		if next.ended() {
			t.Fatal("freed under running work")
		}
		ln := w.held(next)
		if next.took < rest {
			t.Errorf("granted after %s, the rest was %s", next.took, rest)
		}
		for _, l := range []*hasp.Lease{l1, l2, l3} {
			lost(t, l)
			wantError(t, l.Release(w.ctx), hasp.ErrLost)
		}
		wantError(t, ln.Err())
		wantError(t, ln.Release(w.ctx))
	})
}

func TestAfterCloseALeaseThatStillHoldsCannotBeReleased(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		l := w.lock(c, "k")
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		began := time.Now()
		if err := c.Close(ctx); err == nil {
			t.Error("no error though a key is held")
		}
		within(t, "Close", time.Since(began), 0)
		wantError(t, l.Err(), hasp.ErrClosed)
		wantError(t, l.Release(w.ctx), hasp.ErrClosed)
		wantError(t, l.Keep(w.ctx, time.Minute), hasp.ErrClosed)
		wantError(t, l.Extend(w.ctx, time.Minute), hasp.ErrClosed)
		time.Sleep(ttl)
		wantError(t, l.Err(), hasp.ErrLost)
	})
}

func TestAfterCloseEveryCallIsClosed(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		_, ticket := w.detach(c, time.Minute, "k")
		sub, with := c.Sub("s:"), c.With(hasp.LockOptions{TTL: time.Minute})
		wantError(t, c.Close(w.ctx))
		before := line.total()
		lease := func(_ *hasp.Lease, err error) error { return err }
		_, inspect := c.Inspect(w.ctx, "k")
		var list error
		for _, err := range c.List(w.ctx, "") {
			list = err
		}
		for name, err := range map[string]error{
			"Lock":    lease(c.Mutex("k").Lock(w.ctx)),
			"TryLock": lease(c.Mutex("k").TryLock(w.ctx)),
			"Sub":     lease(sub.Mutex("k").Lock(w.ctx)),
			"With":    lease(with.RWMutex("k").RLock(w.ctx)),
			"Acquire": lease(c.Semaphore("k", 3).TryAcquire(w.ctx, 1)),
			"Do":      c.Mutex("k").Do(w.ctx, func(context.Context) error { t.Error("fn ran"); return nil }),
			"Resume":  lease(c.Resume(w.ctx, ticket)),
			"Inspect": inspect,
			"List":    list,
			"Revoke":  c.Revoke(w.ctx, "k", 0),
			"Force":   c.ForceRelease(w.ctx, "k", 64),
			"Ping":    c.Ping(w.ctx),
		} {
			if !errors.Is(err, hasp.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := line.total() - before; n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestWhileAClientClosesItTakesNoNewCalls(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.locks("a", hasp.LockOptions{Reentrant: true})
		l := w.lock(c, "k")
		closing := w.closing(c)
		_, err := c.Mutex("other").TryLock(w.ctx)
		wantError(t, err, hasp.ErrClosed)
		_, err = c.Mutex("k").Lock(l.Context(w.ctx))
		wantError(t, err, hasp.ErrClosed)
		wantError(t, l.Release(w.ctx))
		<-closing.done
		wantError(t, closing.err)
	})
}

func TestASecondCloseWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		l := w.lock(c, "k")
		first, second := w.closing(c), w.closing(c)
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want that of its own context", err)
		}
		if first.ended() || second.ended() {
			t.Fatal("closed under running work")
		}
		wantError(t, l.Release(w.ctx))
		<-first.done
		<-second.done
		wantError(t, first.err)
		wantError(t, second.err)
		wantError(t, c.Close(w.ctx))
	})
}

func TestCloseOfADerivedClientIsInvalidAndClosesNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		wantError(t, c.Sub("x").Close(w.ctx), hasp.ErrInvalid)
		wantError(t, c.With(hasp.LockOptions{}).Close(w.ctx), hasp.ErrInvalid)
		wantError(t, w.lock(c, "k").Release(w.ctx))
	})
}

func TestNoLeaseIsHandedOutOnceCloseHasBegun(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		for range rounds(1000) {
			a, b := w.client("a"), w.client("b")
			la := w.lock(a, "k")
			lb := w.waiting(b, "k")
			var wg sync.WaitGroup
			wg.Go(func() { wantError(t, la.Release(w.ctx)) })
			wg.Go(func() { _ = b.Close(w.ctx) })
			<-lb.done
			synctest.Wait()
			if lb.lease != nil {
				wantError(t, lb.lease.Err(), hasp.ErrClosed)
				wantError(t, lb.lease.Release(w.ctx))
			} else {
				wantError(t, lb.err, hasp.ErrClosed)
			}
			wg.Wait()
			wantError(t, a.Close(w.ctx))
			w.empty()
		}
	})
}

func TestAGrantThatIsAnsweredOnceCloseHasBegunIsGivenBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		_, ticket := w.detach(w.client("a"), time.Minute, "detached")
		c, line := w.wired("b")
		wantError(t, c.Ping(w.ctx))
		line.every(fault{reply: 100 * time.Millisecond}, join)
		for _, call := range []func() (*hasp.Lease, error){
			func() (*hasp.Lease, error) { return c.Mutex("k").Lock(w.ctx) },
			func() (*hasp.Lease, error) { return c.Mutex("k2").TryLock(w.ctx) },
			func() (*hasp.Lease, error) { return c.Resume(w.ctx, ticket) },
		} {
			a := w.start(call)
			defer w.refused(a, hasp.ErrClosed)
		}
		time.Sleep(50 * time.Millisecond)
		wantError(t, c.Close(w.ctx))
		w.empty()
	})
}

func TestALossWhileTheClientClosesIsALoss(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		r := &recorder{}
		c := w.clientWith(w.store.Driver(), hasp.Options{Observe: r.observe})
		l := w.lock(c, "k")
		closing := w.closing(c)
		w.store.Drop("k")
		<-closing.done // nothing is left to wait for
		wantError(t, closing.err)
		lost(t, l)
		wantError(t, l.Release(w.ctx), hasp.ErrLost)
		synctest.Wait()
		if got, want := r.kinds(), "acquired lost closed "; got != want {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

func TestCloseEndsWhenALeaseThatWasWaitedForIsLostOrKept(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]func(w *world, l *hasp.Lease){
		"lost": func(w *world, _ *hasp.Lease) { w.store.Drop("k") },
		"kept": func(w *world, l *hasp.Lease) { wantError(w.t, l.Keep(w.ctx, time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				a := w.lock(w.client("a"), "k")
				c := w.client("b")
				b := w.waiting(c, "k")
				wantError(t, a.Release(w.ctx))
				l := w.held(b)
				closing := w.closing(c)
				part(w, l)
				<-closing.done
				wantError(t, closing.err)
				within(t, "Close", closing.took, ttl)
			})
		})
	}
}

func TestDoOnAClientThatClosesEndsWithFnAndIsNoLoss(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		stopped := errors.New("stopped")
		a := w.start(func() (*hasp.Lease, error) {
			return nil, c.Mutex("k").Do(w.ctx, func(ctx context.Context) error {
				<-ctx.Done()
				wantError(t, context.Cause(ctx), hasp.ErrClosed)
				return stopped
			})
		})
		wantError(t, c.Close(w.ctx))
		<-a.done
		if a.err != stopped { //nolint:errorlint // the very value
			t.Errorf("error %v", a.err)
		}
		w.empty()
	})
}

func TestSR7_CloseOnADeadStoreEndsInTime(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(w *world){
		"down":   func(w *world) { w.store.Fail(io.ErrUnexpectedEOF) },
		"silent": func(w *world) { w.store.Stall() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				c := w.locks("a", hasp.LockOptions{TTL: time.Hour})
				l := w.lock(c, "k")
				ctx := l.Context(w.ctx)
				go func() {
					<-ctx.Done()
					_ = l.Release(w.ctx)
				}()
				kill(w)
				limited, cancel := context.WithTimeout(w.ctx, 5*time.Second)
				defer cancel()
				began := time.Now()
				_ = c.Close(limited)
				within(t, "Close", time.Since(began), 5*time.Second)
			})
		})
	}
}

func TestCloseOnADeadStoreWithoutALimitOfItsOwnEndsSoonAfterTheReleases(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.locks("a", hasp.LockOptions{TTL: time.Hour})
		l := w.lock(c, "k")
		w.store.Stall()
		closing := w.closing(c)
		_ = l.Release(w.ctx)
		<-closing.done
		within(t, "Close", closing.took, 10*time.Second+100*time.Millisecond)
	})
}

func TestCloseEndsCallsUnderWayOnASilentStore(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		wantError(t, c.Ping(w.ctx))
		w.store.Stall()
		a := w.waiting(c, "k")
		i := w.start(func() (*hasp.Lease, error) {
			_, err := c.Inspect(w.ctx, "k")
			return nil, err
		})
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		_ = c.Close(ctx)
		w.refused(a, hasp.ErrClosed)
		w.refused(i, hasp.ErrClosed)
		within(t, "Lock", a.took, 1100*time.Millisecond)
	})
}
