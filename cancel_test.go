package hasp_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
)

func TestCL1_ACancelledLockDoesNotKeepTheNextOneOut(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		line := newWire(w.store.Driver())
		c := w.clientWith(line, hasp.Options{})
		next := w.client("next")
		holder := w.lock(w.client("holder"), "busy")
		wantError(t, c.Ping(w.ctx))
		line.faults(func(call) fault {
			return fault{request: time.Duration(rand.IntN(2000)) * time.Microsecond, reply: time.Duration(rand.IntN(2000)) * time.Microsecond}
		})
		for i := range rounds(5000) {
			ctx, cancel := context.WithTimeout(w.ctx, time.Duration(rand.IntN(5000))*time.Microsecond)
			k := "free"
			if i%2 == 1 {
				k = "busy"
			}
			l, err := c.Mutex(k).Lock(ctx)
			cancel()
			if (l == nil) == (err == nil) {
				t.Fatalf("lease %v and error %v", l, err)
			}
			if l != nil {
				wantError(t, l.Release(ctx)) // CL-2: also with a context that is over
			}
			if k == "free" {
				began := time.Now()
				ln := w.lock(next, k)
				within(t, "the next lock", time.Since(began), 100*time.Millisecond)
				wantError(t, ln.Release(w.ctx))
			}
		}
		time.Sleep(time.Second)
		if n := w.line("busy").Waiting; n != 0 {
			t.Errorf("%d wait", n)
		}
		wantError(t, holder.Release(w.ctx))
		w.empty()
		if n := hasp.CountClaims(c); n != 0 {
			t.Errorf("%d claims are kept", n)
		}
	})
}

func TestCL4_CancelAgainstGrantIsALeaseThatHoldsOrAnErrorAndNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a, b := w.client("a"), w.client("b")
		leases, errs := 0, 0
		for range rounds(20_000) {
			la := w.lock(a, "k")
			ctx, cancel := context.WithCancel(w.ctx)
			tried := make(chan struct{})
			go func() {
				defer close(tried)
				lb, err := b.Mutex("k").Lock(ctx)
				switch {
				case lb != nil && err == nil:
					leases++
					if lb.Err() != nil {
						t.Errorf("a lease that does not hold: %v", lb.Err())
					}
					if err := lb.Release(w.ctx); err != nil {
						t.Error(err)
					}
				case lb == nil && err != nil:
					errs++
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				default:
					t.Errorf("lease %v and error %v", lb, err)
				}
			}()
			for rand.IntN(3) > 0 { // a moment or none
				synctest.Wait()
			}
			go cancel()
			if err := la.Release(w.ctx); err != nil {
				t.Fatal(err)
			}
			<-tried
		}
		if leases == 0 || errs == 0 {
			t.Errorf("%d leases and %d errors: the race was never close", leases, errs)
		}
		synctest.Wait()
		w.empty()
		if n := hasp.CountClaims(b); n != 0 {
			t.Errorf("%d claims are kept", n)
		}
	})
}

func TestWaitAgainstGrantIsALeaseThatHoldsOrAnErrorAndNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.client("a")
		b := w.locks("b", hasp.LockOptions{Wait: time.Millisecond})
		for range rounds(5000) {
			la := w.lock(a, "k")
			go func() {
				time.Sleep(time.Millisecond)
				_ = la.Release(w.ctx)
			}()
			lb, err := b.Mutex("k").Lock(w.ctx)
			switch {
			case lb != nil && err == nil && lb.Err() == nil:
				wantError(t, lb.Release(w.ctx))
			case lb == nil && errors.Is(err, hasp.ErrHeld):
			default:
				t.Fatalf("lease %v and error %v", lb, err)
			}
			synctest.Wait()
		}
		w.empty()
	})
}

func TestACancelledWaiterAtTheFrontLetsTheNextOneIn(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		reader, err := c.RWMutex("k").RLock(w.ctx)
		wantError(t, err)
		ctx, cancel := context.WithCancel(w.ctx)
		writer := w.start(func() (*hasp.Lease, error) { return c.RWMutex("k").Lock(ctx) })
		second := w.start(func() (*hasp.Lease, error) { return c.RWMutex("k").RLock(w.ctx) })
		if second.ended() {
			t.Fatal("overtook the writer")
		}
		cancel()
		w.refused(writer, hasp.ErrHeld, context.Canceled)
		synctest.Wait()
		if !second.ended() {
			t.Fatal("the reader behind the cancelled writer still waits")
		}
		wantError(t, w.held(second).Release(w.ctx))
		wantError(t, reader.Release(w.ctx))
	})
}

func TestG8_ALockOnASilentStoreReturnsWithItsContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		goOn := w.store.Stall()
		for _, d := range []time.Duration{0, time.Millisecond, time.Second, 4 * time.Second} {
			for _, warm := range []bool{false, true} {
				if warm {
					goOn()
					wantError(t, c.Ping(w.ctx))
					wantError(t, w.lock(c, "warm").Release(w.ctx))
					goOn = w.store.Stall()
				}
				ctx, cancel := context.WithTimeout(w.ctx, d)
				began := time.Now()
				l, err := c.Mutex("k").Lock(ctx)
				cancel()
				if l != nil || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("lease %v, error %v", l, err)
				}
				if d > 0 {
					wantError(t, err, hasp.ErrUnavailable, context.DeadlineExceeded)
				}
				within(t, "Lock", time.Since(began), d+50*time.Millisecond)
			}
		}
		goOn()
		time.Sleep(20 * time.Second)
		w.empty()
	})
}
