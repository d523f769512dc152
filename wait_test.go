package hasp_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
)

func TestG4_WaitersHoldInTheOrderInWhichTheyCame(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		var order []int
		var all sync.WaitGroup
		for i := range 20 {
			c := w.client(key(i))
			all.Go(func() {
				wantError(t, c.Mutex("k").Do(w.ctx, func(context.Context) error {
					order = append(order, i)
					return nil
				}))
			})
			time.Sleep(200 * time.Millisecond)
		}
		wantError(t, a.Release(w.ctx))
		all.Wait()
		if !slices.IsSorted(order) || len(order) != 20 {
			t.Errorf("order %v", order)
		}
	})
}

func TestTR5_AWaiterHoldsAsSoonAsTheHolderLeaves(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		o := hasp.LockOptions{TTL: time.Second, Wait: 10 * time.Second}
		a := w.lock(w.locks("a", o), "k")
		b := w.waiting(w.locks("b", o), "k")
		time.Sleep(5 * time.Second)
		wantError(t, a.Release(w.ctx))
		lb := w.held(b)
		if b.took != 5*time.Second {
			t.Errorf("waited %s, want 5s", b.took)
		}
		wantError(t, lb.Release(w.ctx))
	})
}

func TestWaitOverIsHeldAndSaysByWhomAndHowLong(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		b := w.waiting(w.locks("b", hasp.LockOptions{Wait: 3 * time.Second}), "k")
		w.refused(b, hasp.ErrHeld)
		wantOp(t, b.err, "acquire", "k")
		var held *hasp.HeldError
		if !errors.As(b.err, &held) || held.Key != "k" || held.Holder != "a" || held.Waited != 3*time.Second || held.ExpiresIn <= 0 || held.ExpiresIn > ttl {
			t.Errorf("%#v", held)
		}
		if b.took != 3*time.Second {
			t.Errorf("took %s", b.took)
		}
		synctest.Wait()
		if n := w.line("k").Waiting; n != 0 {
			t.Errorf("%d wait", n)
		}
		wantError(t, a.Release(w.ctx))
	})
}

func TestCL5_AContextOverWhileWaitingIsHeldAndTheContextsError(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c := w.client("b")
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		b := w.start(func() (*hasp.Lease, error) { return c.Mutex("k").Lock(ctx) })
		w.refused(b, hasp.ErrHeld, context.DeadlineExceeded)
		if b.took != time.Second {
			t.Errorf("took %s", b.took)
		}
		ctx, cancel = context.WithCancel(w.ctx)
		b = w.start(func() (*hasp.Lease, error) { return c.Mutex("k").Lock(ctx) })
		cancel()
		w.refused(b, hasp.ErrHeld, context.Canceled)
		wantError(t, a.Release(w.ctx))
	})
}

func TestAContextThatIsOverSendsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		l, err := c.Mutex("k").Lock(ctx)
		if l != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("lease %v, error %v", l, err)
		}
		if n := line.total(); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestMaxLineRefusesToWaitWhereThatManyWait(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c := w.locks("b", hasp.LockOptions{MaxLine: 2})
		b1, b2 := w.waiting(c, "k"), w.waiting(c, "k")
		b3 := w.waiting(c, "k")
		w.refused(b3, hasp.ErrHeld)
		within(t, "the refusal", b3.took, 0)
		var held *hasp.HeldError
		if !errors.As(b3.err, &held) || held.Holder != "a" {
			t.Errorf("%#v", held)
		}
		wantError(t, a.Release(w.ctx))
		wantError(t, w.held(b1).Release(w.ctx))
		wantError(t, w.held(b2).Release(w.ctx))
		wantError(t, w.lock(c, "k").Release(w.ctx))
	})
}

func TestLW1_TwoThousandReleasesWakeTheirWaiterAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a, b := w.client("a"), w.client("b")
		for i := range rounds(2000) {
			la := w.lock(a, "k")
			done := make(chan time.Time)
			go func() {
				l, err := b.Mutex("k").Lock(w.ctx)
				wantError(t, err)
				done <- time.Now()
				wantError(t, l.Release(w.ctx))
				done <- time.Time{}
			}()
			time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
			released := time.Now()
			wantError(t, la.Release(w.ctx))
			if d := (<-done).Sub(released); d > time.Millisecond {
				t.Fatalf("woken after %s in round %d", d, i)
			}
			<-done
		}
	})
}

func TestG5_WithEverySignalLostAWaiterHoldsWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	for _, life := range []time.Duration{time.Second, 10 * time.Second, time.Hour} {
		t.Run(life.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				line := newWire(w.store.Driver())
				c := w.clientWith(line, hasp.Options{Lock: hasp.LockOptions{TTL: life}})
				a := w.lock(w.locks("a", hasp.LockOptions{TTL: life}), "k")
				line.deaf()
				for i := range 10 {
					b := w.waiting(c, "k")
					time.Sleep(time.Duration(i)*317*time.Millisecond + time.Minute)
					released := time.Now()
					wantError(t, a.Release(w.ctx))
					a = w.held(b)
					within(t, "the grant", time.Since(released), 2*time.Second)
				}
				wantError(t, a.Release(w.ctx))
			})
		})
	}
}

func TestLW2_ASignalConnectionThatBreaksCostsAtMostTheNextLook(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("b")
		a := w.lock(w.client("a"), "k")
		b := w.waiting(c, "k")
		line.deaf()
		wantError(t, a.Release(w.ctx))
		time.Sleep(50 * time.Millisecond)
		if b.ended() {
			t.Fatal("granted without hearing")
		}
		line.deliver(driver.Signal{Kind: driver.Missed}) // it is heard again
		lb := w.held(b)
		if b.took > 60*time.Millisecond {
			t.Errorf("granted after %s", b.took)
		}
		wantError(t, lb.Release(w.ctx))
	})
}

func TestLW4_KeysOfEveryShapeAreWoken(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a, b := w.client("a"), w.client("b")
		for _, k := range oddKeys() {
			la := w.lock(a, k)
			lb := w.waiting(b, k)
			wantError(t, la.Release(w.ctx))
			wantError(t, w.held(lb).Release(w.ctx))
			within(t, "the wake-up of "+k, lb.took, 0)
		}
	})
}

func TestLW5_EachReleaseWakesItsOwnWaiterOnly(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		const n = 200
		a, b := w.client("a"), w.client("b")
		var leases [n]*hasp.Lease
		var waiters [n]*attempt
		for i := range n {
			leases[i] = w.lock(a, key(i))
			waiters[i] = w.waiting(b, key(i))
		}
		for _, i := range rand.Perm(n) {
			wantError(t, leases[i].Release(w.ctx))
			l := w.held(waiters[i])
			waiters[i] = nil
			synctest.Wait()
			for j, other := range waiters {
				if other != nil && other.ended() {
					t.Fatalf("releasing %d woke %d", i, j)
				}
			}
			wantError(t, l.Release(w.ctx))
		}
	})
}

func TestTH1_AHandOverCostsTheSameWhateverTheNumberOfWaiters(t *testing.T) {
	t.Parallel()
	cost := func(t *testing.T, waiters int) (calls int) {
		t.Helper()
		bubble(t, func(w *world) {
			line := newWire(w.store.Driver())
			c := w.clientWith(line, hasp.Options{Lock: hasp.LockOptions{TTL: time.Minute}})
			a := w.lock(c, "k")
			var all []*attempt
			for range waiters {
				all = append(all, w.waiting(c, "k"))
			}
			before := line.total()
			for i := range 50 {
				wantError(t, a.Release(w.ctx))
				a = w.held(all[i])
			}
			calls = line.total() - before
			wantError(t, a.Release(w.ctx))
			for _, b := range all[50:] {
				wantError(t, w.held(b).Release(w.ctx))
			}
		})
		return calls
	}
	few, many := cost(t, 51), cost(t, 250)
	if few > 50 || many > 50 {
		t.Errorf("50 hand-overs cost %d calls with 51 waiters and %d with 250, want one each", few, many)
	}
}

func TestTH1_IdleWaitersAskOnceEveryTwoSecondsTogether(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		line := newWire(w.store.Driver())
		c := w.clientWith(line, hasp.Options{Lock: hasp.LockOptions{TTL: time.Minute}})
		a := w.lock(w.locks("a", hasp.LockOptions{TTL: time.Minute}), "k")
		ctx, cancel := context.WithCancel(w.ctx)
		for i := range 200 {
			w.start(func() (*hasp.Lease, error) { return c.Mutex("k").Lock(ctx) })
			time.Sleep(time.Duration(i) * time.Millisecond)
		}
		before := line.made(renew)
		time.Sleep(20 * time.Second)
		if n := line.made(renew) - before; n > 50 {
			t.Errorf("200 waiters made %d calls in 20 s", n)
		}
		cancel()
		wantError(t, a.Release(w.ctx))
	})
}

func TestTH2_EightEmptySectionsTakeNoTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 8 {
			c := w.client(key(i))
			wg.Go(func() { wantError(t, c.Mutex("k").Do(w.ctx, func(context.Context) error { return nil })) })
		}
		wg.Wait()
		within(t, "all eight", time.Since(began), 50*time.Millisecond)
	})
}

func TestTH4_AGreedyLoopDoesNotKeepAWaiterOut(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		greedy, modest := w.client("greedy"), w.client("modest")
		var stop atomic.Bool
		turns := 0
		var wg sync.WaitGroup
		wg.Go(func() {
			for !stop.Load() {
				turns++
				wantError(t, greedy.Mutex("k").Do(w.ctx, func(context.Context) error {
					time.Sleep(10 * time.Millisecond)
					return nil
				}))
			}
		})
		for range 20 {
			time.Sleep(33 * time.Millisecond)
			began := time.Now()
			l := w.lock(modest, "k")
			within(t, "the waiter's turn", time.Since(began), 10*time.Millisecond)
			wantError(t, l.Release(w.ctx))
		}
		stop.Store(true)
		wg.Wait()
		if turns == 0 {
			t.Error("the greedy one had no turn")
		}
	})
}
