package hasp_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
)

// sleeper makes a client on a machine that can be suspended: while it is, the clocks
// that count suspended time go on and no timer does.
func (w *world) sleeper() (c *hasp.Client, line *wire, suspend func(time.Duration)) {
	var slept atomic.Int64
	c, line = w.wired("sleeper")
	hasp.SetAsleep(c, func() time.Duration { return time.Hour + time.Duration(slept.Load()) })
	return c, line, func(d time.Duration) { slept.Add(int64(d)) }
}

func TestG2_EveryAccessorSeesASuspensionAtOnceAndTheContextWithinASecond(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, _, suspend := w.sleeper()
		accessors := map[string]func(l *hasp.Lease){
			"Err":          func(l *hasp.Lease) { wantError(t, l.Err(), hasp.ErrLost) },
			"TrustedUntil": func(l *hasp.Lease) { _ = l.TrustedUntil(); lost(t, l) },
			"Extend":       func(l *hasp.Lease) { wantError(t, l.Extend(w.ctx, ttl), hasp.ErrLost) },
			"Keep":         func(l *hasp.Lease) { wantError(t, l.Keep(w.ctx, ttl), hasp.ErrLost) },
			"context": func(l *hasp.Lease) {
				began := time.Now()
				<-l.Done()
				within(t, "the end of the context", time.Since(began), time.Second)
			},
		}
		for name, access := range accessors {
			l := w.lock(c, name)
			time.Sleep(300 * time.Millisecond)
			wantError(t, l.Err())
			suspend(ttl)
			access(l)
			wantError(t, l.Release(w.ctx), hasp.ErrLost)
		}
	})
}

func TestAShortSuspensionCostsTrustButNotTheLease(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, _, suspend := w.sleeper()
		l := w.lock(c, "k")
		before := l.TrustedUntil()
		suspend(500 * time.Millisecond)
		if got := before.Sub(l.TrustedUntil()); got != 500*time.Millisecond {
			t.Errorf("the trust ends %s sooner", got)
		}
		time.Sleep(10 * ttl)
		wantError(t, l.Err())
		suspend(3 * time.Millisecond) // two clocks read one after the other differ by that
		wantError(t, l.Err())
		if got := time.Until(l.TrustedUntil()); got < ttl/3 {
			t.Errorf("trusted for %s", got)
		}
		wantError(t, l.Release(w.ctx))
	})
}

func TestASuspensionIsMadeUpForByTheNextRenewal(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line, suspend := w.sleeper()
		l := w.lock(c, "k")
		for range 20 {
			suspend(time.Second)
			time.Sleep(time.Second)
			sent := line.lastSent(renew)
			if got := time.Until(l.TrustedUntil()); got > ttl-margin-time.Since(sent) {
				t.Errorf("trusted for %s, %s after the last renewal", got, time.Since(sent))
			}
		}
		wantError(t, l.Err())
		wantError(t, l.Release(w.ctx))
	})
}

func TestSW2_ASignalThatOutlastsASuspensionIsNotBelieved(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, line, suspend := w.sleeper()
		b := w.waiting(c, "k")
		time.Sleep(100 * time.Millisecond)
		line.deaf()
		wantError(t, a.Release(w.ctx))
		synctest.Wait() // the signal is in the socket
		suspend(time.Hour)
		w.store.Drop("k") // its time was over long ago
		other := w.lock(w.client("other"), "k")
		line.hear()
		synctest.Wait()
		if b.ended() {
			t.Fatalf("lease %v and error %v", b.lease, b.err)
		}
		wantError(t, other.Release(w.ctx))
		l := w.held(b)
		wantError(t, l.Err())
		wantError(t, l.Release(w.ctx))
	})
}

func TestALeaseAnsweredAcrossASuspensionIsKnownToBeLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line, suspend := w.sleeper()
		wantError(t, c.Ping(w.ctx))
		line.nth(join, 1, fault{reply: 100 * time.Millisecond})
		a := w.start(func() (*hasp.Lease, error) { return c.Mutex("k").TryLock(w.ctx) })
		suspend(time.Hour)
		<-a.done
		if a.lease == nil {
			wantError(t, a.err, hasp.ErrUnavailable)
			return
		}
		began := time.Now()
		<-a.lease.Context(w.ctx).Done()
		within(t, "the news", time.Since(began), time.Second)
		wantError(t, a.lease.Release(w.ctx), hasp.ErrLost)
	})
}

func TestAWaiterIsNotToldOfASilentStoreAfterASuspension(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, _, suspend := w.sleeper()
		b := w.waiting(c, "k")
		for range 5 {
			time.Sleep(time.Second)
			suspend(time.Hour)
		}
		wantError(t, a.Release(w.ctx))
		l := w.held(b)
		wantError(t, l.Err())
		wantError(t, l.Release(w.ctx))
	})
}
