package hasp_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
)

func TestPermitsAreGivenInOrderAndLargeClaimsAreNotStarved(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		sem := w.client("a").Semaphore("gpu", 4)
		acquire := func(n int) *attempt {
			return w.start(func() (*hasp.Lease, error) { return sem.Acquire(w.ctx, n) })
		}
		two, one := w.held(acquire(2)), w.held(acquire(1))
		four := acquire(4)
		small := acquire(1) // would fit, but is behind
		if four.ended() || small.ended() {
			t.Fatal("overtook")
		}
		_, err := sem.TryAcquire(w.ctx, 1)
		wantError(t, err, hasp.ErrHeld)
		wantError(t, two.Release(w.ctx))
		wantError(t, one.Release(w.ctx))
		l := w.held(four)
		if l.Shared() {
			t.Error("all permits are not shared")
		}
		if small.ended() {
			t.Fatal("more permits than there are")
		}
		wantError(t, l.Release(w.ctx))
		if l := w.held(small); !l.Shared() {
			t.Error("one permit of four is shared")
		} else {
			wantError(t, l.Release(w.ctx))
		}
		w.empty()
	})
}

func TestSM1_NeverMoreHoldThanThereArePermits(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var in atomic.Int64
		var wg sync.WaitGroup
		for range 10 {
			d := w.store.Driver()
			sem := w.clientWith(d, hasp.Options{Lock: hasp.LockOptions{TTL: 300 * time.Millisecond}}).Semaphore("k", 3)
			wg.Go(func() {
				for range rounds(200) {
					if rand.IntN(15) == 0 {
						time.AfterFunc(time.Duration(rand.IntN(1200))*time.Millisecond, d.Stall())
					}
					_ = sem.Do(w.ctx, 1, func(ctx context.Context) error {
						if n := in.Add(1); n > 3 {
							t.Errorf("%d hold", n)
						}
						select {
						case <-ctx.Done():
						case <-time.After(time.Duration(rand.IntN(100)) * time.Millisecond):
						}
						in.Add(-1)
						return nil
					})
				}
			})
		}
		wg.Wait()
		time.Sleep(10 * time.Second)
		l, err := w.client("last").Semaphore("k", 3).TryAcquire(w.ctx, 3)
		wantError(t, err)
		wantError(t, l.Release(w.ctx))
		w.empty()
	})
}

func TestSM4_ClientsThatDisagreeKeepToTheSmallerNumber(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		three, five := w.client("a").Semaphore("k", 3), w.client("b").Semaphore("k", 5)
		first, err := three.Acquire(w.ctx, 1)
		wantError(t, err)
		var others []*hasp.Lease
		for range 2 {
			l, err := five.TryAcquire(w.ctx, 1)
			wantError(t, err)
			others = append(others, l)
		}
		_, err = five.TryAcquire(w.ctx, 1)
		wantError(t, err, hasp.ErrHeld)
		wantError(t, first.Release(w.ctx)) // the last that said three has left
		for range 3 {
			l, err := five.TryAcquire(w.ctx, 1)
			wantError(t, err)
			others = append(others, l)
		}
		_, err = five.TryAcquire(w.ctx, 1)
		wantError(t, err, hasp.ErrHeld)
		for _, l := range others {
			wantError(t, l.Release(w.ctx))
		}
		w.empty()
	})
}

func TestSM3_OfFivePermitsOfWhichTwoAreLostThreeAreFreedAndTwoReported(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		var leases []*hasp.Lease
		for i := range 5 {
			l, err := c.With(hasp.LockOptions{NoRenew: i%2 == 1}).Semaphore("k", 5).Acquire(w.ctx, 1)
			wantError(t, err)
			leases = append(leases, l)
		}
		time.Sleep(2 * ttl)
		freed, lost := 0, 0
		for _, l := range leases {
			if err := l.Release(w.ctx); errors.Is(err, hasp.ErrLost) {
				lost++
			} else if err == nil {
				freed++
			}
		}
		if freed != 3 || lost != 2 {
			t.Errorf("%d freed and %d lost", freed, lost)
		}
		w.empty()
	})
}

func TestSM6_NamesUsedOnceLeaveNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		for i := range rounds(10_000) {
			l, err := c.Semaphore(key(i), 3).Acquire(w.ctx, 2)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Release(w.ctx); err != nil {
				t.Fatal(err)
			}
		}
		w.empty()
		if n := hasp.CountClaims(c); n != 0 {
			t.Errorf("%d claims are kept", n)
		}
	})
}
