package hasp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
)

// eachGate runs a check with every way in which goroutines of a process share a key.
func eachGate(t *testing.T, check func(w *world, o hasp.LockOptions)) {
	t.Helper()
	for name, o := range map[string]hasp.LockOptions{
		"in turn": {}, "in a row": {LocalHandoffs: 3}, "sticky": {LocalHandoffs: 1, Sticky: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) { check(w, o) })
		})
	}
}

// over waits until nothing lingers, and wants nothing to be left.
func (w *world) over(o hasp.LockOptions, clients ...*hasp.Client) {
	synctest.Wait()
	time.Sleep(o.Sticky + 2*time.Second)
	w.empty()
	for _, c := range clients {
		w.gatesShut(c)
		if n := hasp.CountClaims(c); n != 0 {
			w.t.Errorf("%d claims are kept", n)
		}
	}
}

func TestRI2_GoroutinesOfTwoClientsExcludeEachOther(t *testing.T) {
	t.Parallel()
	eachGate(t, func(w *world, o hasp.LockOptions) {
		a, b := w.locks("a", o), w.locks("b", o)
		inside, done, token := 0, 0, int64(0)
		var wg sync.WaitGroup
		for i := range 8 {
			m := []*hasp.Mutex{a.Mutex("k"), b.Mutex("k")}[i%2]
			wg.Go(func() {
				for range rounds(1250) {
					wantError(w.t, m.Do(w.ctx, func(ctx context.Context) error {
						if inside++; inside != 1 {
							w.t.Error("two at once")
						}
						runtime.Gosched()
						lease, _ := hasp.FromContext(ctx, "k")
						if lease.Token() <= token {
							w.t.Errorf("token %d after %d", lease.Token(), token)
						}
						token = lease.Token()
						inside--
						done++
						return nil
					}))
				}
			})
		}
		wg.Wait()
		if done != 8*rounds(1250) {
			w.t.Errorf("%d rounds", done)
		}
		w.over(o, a, b)
	})
}

func TestPN1_APanicLetsTheNextOfItsProcessAndThenOthersGoOn(t *testing.T) {
	t.Parallel()
	eachGate(t, func(w *world, o hasp.LockOptions) {
		a := w.locks("a", o)
		panics := func(want any, during func()) {
			defer func() {
				if got := recover(); got != want {
					w.t.Errorf("recovered %v, want %v", got, want)
				}
			}()
			_ = a.Mutex("k").Do(w.ctx, func(context.Context) error {
				during()
				panic(want)
			})
		}
		began := time.Now()
		second := make(chan struct{})
		panics("first", func() {
			go func() {
				defer close(second)
				panics("second", func() {})
			}()
			synctest.Wait()
		})
		<-second
		other := w.lock(w.client("b"), "k")
		within(w.t, "the lock of another", time.Since(began), 0)
		wantError(w.t, other.Release(w.ctx))
		w.over(o, a)
	})
}

func TestPN7_ReleasingOnceMoreDoesNotTouchTheNextOfTheProcess(t *testing.T) {
	t.Parallel()
	eachGate(t, func(w *world, o hasp.LockOptions) {
		a := w.locks("a", o)
		first := w.lock(a, "k")
		next := w.waiting(a, "k")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { wantError(w.t, first.Release(w.ctx)) })
		}
		wg.Wait()
		second := w.held(next)
		for range 8 {
			wg.Go(func() { wantError(w.t, first.Release(w.ctx)) })
			wg.Go(func() { wantError(w.t, first.Extend(w.ctx, ttl), hasp.ErrReleased) })
		}
		wg.Wait()
		wantError(w.t, second.Err())
		if second.Token() != first.Token()+1 {
			w.t.Errorf("token %d after %d", second.Token(), first.Token())
		}
		_, err := w.client("b").Mutex("k").TryLock(w.ctx)
		wantError(w.t, err, hasp.ErrHeld)
		wantError(w.t, second.Release(w.ctx))
		w.over(o, a)
	})
}

// TestCL4_ACancelInTheGateIsALeaseThatHoldsOrAnErrorAndNothing: a release, the cancelling of
// who is next, one more of the process and one of another client, all at once.
func TestCL4_ACancelInTheGateIsALeaseThatHoldsOrAnErrorAndNothing(t *testing.T) {
	t.Parallel()
	eachGate(t, func(w *world, o hasp.LockOptions) {
		a, b := w.locks("a", o), w.locks("b", o)
		leases, errs := 0, 0
		for range rounds(5000) {
			first := w.lock(a, "k")
			ctx, cancel := context.WithCancel(w.ctx)
			var wg sync.WaitGroup
			wg.Go(func() {
				l, err := a.Mutex("k").Lock(ctx)
				switch {
				case l != nil && err == nil:
					leases++
					wantError(w.t, l.Err())
					wantError(w.t, l.Release(w.ctx))
				case l == nil && errors.Is(err, context.Canceled):
					errs++
				default:
					w.t.Errorf("lease %v and error %v", l, err)
				}
			})
			for _, c := range []*hasp.Client{a, b}[:rand.IntN(3)] {
				wg.Go(func() { wantError(w.t, w.lock(c, "k").Release(w.ctx)) })
			}
			for rand.IntN(3) > 0 { // a moment or none
				synctest.Wait()
			}
			wg.Go(cancel)
			wantError(w.t, first.Release(w.ctx))
			wg.Wait()
		}
		if leases == 0 || errs == 0 {
			w.t.Errorf("%d leases and %d errors: the race was never close", leases, errs)
		}
		w.over(o, a, b)
	})
}

func TestRR2_CL1_ACrowdThatIsCancelledAtAnyMomentLeavesNothing(t *testing.T) {
	t.Parallel()
	eachGate(t, func(w *world, o hasp.LockOptions) {
		o.TTL = time.Second
		line := newWire(w.store.Driver())
		c := w.clientWith(line, hasp.Options{Lock: o})
		wantError(w.t, c.Ping(w.ctx))
		line.faults(func(call) fault {
			return fault{request: time.Duration(rand.IntN(1000)) * time.Microsecond, reply: time.Duration(rand.IntN(1000)) * time.Microsecond}
		})
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range rounds(300) {
					ctx, cancel := context.WithTimeout(w.ctx, time.Duration(rand.IntN(2000))*time.Microsecond)
					l, err := c.Mutex("k").Lock(ctx)
					cancel()
					if (l == nil) == (err == nil) {
						w.t.Errorf("lease %v and error %v", l, err)
					}
					if l != nil {
						wantError(w.t, l.Release(ctx)) // CL-2: also with a context that is over
					}
				}
			})
		}
		wg.Wait()
		line.mend()
		began := time.Now()
		next := w.lock(w.client("next"), "k")
		limit := 100 * time.Millisecond
		if o.Sticky > 0 {
			limit = 2 * time.Second // as where a signal is lost
		}
		within(w.t, "the next lock", time.Since(began), limit)
		wantError(w.t, next.Release(w.ctx))
		w.over(o, c)
		before := line.total()
		time.Sleep(20 * time.Second)
		if n := line.total() - before; n != 0 {
			w.t.Errorf("%d calls go on", n)
		}
	})
}

// TestTH4_AGreedyCrowdDoesNotKeepAWaiterOut: eight goroutines of one client always want the
// key, for 10 ms each. That another has come is known after 16 of them at the latest.
func TestTH4_AGreedyCrowdDoesNotKeepAWaiterOut(t *testing.T) {
	t.Parallel()
	eachGate(t, func(w *world, o hasp.LockOptions) {
		const hold = 10 * time.Millisecond
		greedy, modest := w.locks("greedy", o), w.client("modest")
		ctx, stop := context.WithCancel(w.ctx)
		turns := 0
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for ctx.Err() == nil {
					wantError(w.t, greedy.Mutex("k").Do(w.ctx, func(context.Context) error {
						turns++
						time.Sleep(hold)
						return nil
					}))
				}
			})
		}
		for range 20 {
			time.Sleep(33 * time.Millisecond)
			began := time.Now()
			l := w.lock(modest, "k")
			within(w.t, fmt.Sprintf("the waiter's turn among %d", turns), time.Since(began), (16+2+time.Duration(o.LocalHandoffs))*hold)
			wantError(w.t, l.Release(w.ctx))
		}
		stop()
		wg.Wait()
		if turns < 20 {
			w.t.Errorf("the greedy ones had %d turns", turns)
		}
		w.over(o, greedy)
	})
}
