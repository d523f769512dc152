package hasp_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
)

func TestOnlyOneCallOfAClientAsksForAKeyAndTheOthersFollowInOrder(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		const n = 64
		c, d, line := w.lineless(hasp.LockOptions{Backoff: fixed(10 * time.Millisecond)})
		line.every(fault{request: time.Millisecond, reply: time.Millisecond})
		a := w.lock(c, "k")
		var mu sync.Mutex
		var order []int
		calls := make([]*attempt, n)
		for i := range calls {
			calls[i] = w.start(func() (*hasp.Lease, error) {
				return nil, c.Mutex("k").Do(w.ctx, func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, i)
					return nil
				})
			})
		}
		other := w.waiting(c, "another key")
		wantError(t, w.held(other).Release(w.ctx)) // it waits for nobody
		time.Sleep(time.Second)
		wantError(t, a.Release(w.ctx))
		for _, call := range calls {
			<-call.done
			wantError(t, call.err)
		}
		if !slices.IsSorted(order) || len(order) != n {
			t.Errorf("served in the order %v", order)
		}
		if most := d.atOnce(); most != 1 {
			t.Errorf("%d attempts for one key were under way at once", most)
		}
		w.idle(c)
		w.empty()
	})
}

func TestACancelledCallLeavesNoTraceInTheOrder(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, d := w.freeing(hasp.LockOptions{Backoff: fixed(time.Hour)})
		var calls [4]*attempt
		var cancels [4]context.CancelFunc
		for i := range calls {
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			cancels[i] = cancel
			calls[i] = w.start(func() (*hasp.Lease, error) { return c.Mutex("k").Lock(ctx) })
		}
		for _, i := range []int{2, 0} { // one that stands behind, then the one that asks
			cancels[i]()
			w.refused(calls[i], hasp.ErrHeld, context.Canceled)
			within(t, "the end", calls[i].took, 0)
		}
		synctest.Wait()
		if n := d.asked(); n != 2 {
			t.Errorf("asked %d times, want once for the first and once for the next", n)
		}
		wantError(t, a.Release(w.ctx))
		wantError(t, w.held(calls[1]).Release(w.ctx))
		wantError(t, w.held(calls[3]).Release(w.ctx))
		if now, ever := d.watching(); now != 0 || ever != 1 {
			t.Errorf("%d watches remain of %d, want one for all who waited", now, ever)
		}
		w.idle(c)
		w.empty()
	})
}

func TestSeveralKeysAreAskedForTogetherAndNoTwoCallsWaitForEachOther(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, d, _ := w.lineless(hasp.LockOptions{Backoff: fixed(10 * time.Millisecond)})
		held := w.lock(w.client("a"), "2")
		var calls []*attempt
		for _, keys := range [][2]string{{"1", "2"}, {"2", "1"}, {"3", "1"}, {"2", "3"}} {
			calls = append(calls, w.start(func() (*hasp.Lease, error) {
				return nil, c.Mutex(keys[0], keys[1]).Do(w.ctx, func(context.Context) error {
					time.Sleep(time.Millisecond)
					return nil
				})
			}))
		}
		time.Sleep(time.Second)
		wantError(t, held.Release(w.ctx))
		for _, b := range calls {
			<-b.done
			wantError(t, b.err)
		}
		if most := d.atOnce(); most != 1 {
			t.Errorf("%d attempts for one key were under way at once", most)
		}
		w.idle(c)
		w.empty()
	})
}

func TestProcessesExcludeEachOtherWithoutALine(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var wg sync.WaitGroup
		inside, served := 0, 0
		for range 5 {
			c, _ := w.freeing(hasp.LockOptions{})
			for range 4 {
				wg.Go(func() {
					for range rounds(20) {
						wantError(w.t, c.Mutex("k").Do(w.ctx, func(context.Context) error {
							inside++ // the race detector would say if two did
							served++
							if inside != 1 {
								w.t.Errorf("%d inside", inside)
							}
							time.Sleep(time.Millisecond)
							inside--
							return nil
						}))
					}
				})
			}
		}
		wg.Wait()
		if want := 5 * 4 * rounds(20); served != want {
			t.Errorf("served %d, want %d", served, want)
		}
		w.empty()
	})
}

func TestASilentStoreIsUnavailableToAllWhoWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, d, line := w.lineless(hasp.LockOptions{})
		wantError(t, w.lock(c, "other").Release(w.ctx))
		line.every(swallowed)
		began := time.Now()
		all := []*attempt{w.waiting(c, "k"), w.waiting(c, "k"), w.waiting(c, "j", "k"), w.waiting(c, "k")}
		short := w.start(func() (*hasp.Lease, error) {
			return c.With(hasp.LockOptions{Wait: time.Second}).Mutex("k").Lock(w.ctx)
		})
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		ended := w.start(func() (*hasp.Lease, error) { return c.Mutex("k").Lock(ctx) })
		w.refused(short, hasp.ErrUnavailable) // nobody has said that it is held
		w.refused(ended, hasp.ErrUnavailable)
		if !errors.Is(ended.err, context.DeadlineExceeded) || ended.took != time.Second {
			t.Errorf("after %s: %v", ended.took, ended.err)
		}
		for _, a := range all {
			w.refused(a, hasp.ErrUnavailable)
		}
		within(t, "all", time.Since(began), 5100*time.Millisecond)
		if d.atOnce() != 1 {
			t.Errorf("%d asked at once", d.atOnce())
		}
		line.mend()
		l := w.lock(c, "k")
		wantError(t, l.Release(w.ctx))
		time.Sleep(10 * ttl)
		w.idle(c)
		w.empty()
	})
}

func TestWhoseWaitIsOverBeforeTheFirstAnswerWaitsForThatAMoment(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, _, line := w.lineless(hasp.LockOptions{Wait: 50 * time.Millisecond})
		line.every(fault{request: 50 * time.Millisecond, reply: 50 * time.Millisecond}, join)
		first, second := w.waiting(c, "k"), w.waiting(c, "k")
		for _, b := range []*attempt{first, second} {
			w.refused(b, hasp.ErrHeld)
			if !strings.Contains(b.err.Error(), "held by a") {
				t.Error(b.err)
			}
		}
		wantError(t, a.Release(w.ctx))
		w.idle(c)
	})
}
