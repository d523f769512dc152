package hasp_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
)

func TestRS8_TheStoreAlwaysKeepsBetweenAThirdAndAWholeTTL(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.client("a"), "k")
		for range 200 { // 5 T
			time.Sleep(50 * time.Millisecond)
			if rest := w.rest("k"); rest < ttl/3 || rest > ttl {
				t.Fatalf("rest %s, want %s to %s", rest, ttl/3, ttl)
			}
		}
		wantError(t, l.Release(w.ctx))
	})
}

func TestRS1_OneResetRenewalIsRepeatedInsideTheTrust(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"request": lostRequest, "reply": lostReply, "silent": swallowed, "mute": silentReply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				r := &recorder{}
				line := newWire(w.store.Driver())
				c := w.clientWith(line, hasp.Options{Observe: r.observe})
				l := w.lock(c, "k")
				line.nth(renew, 1, f)
				for range 200 {
					time.Sleep(50 * time.Millisecond)
					if rest := w.rest("k"); rest < ttl/6 {
						t.Fatalf("rest %s", rest)
					}
				}
				wantError(t, l.Err())
				if n := r.count(hasp.EventRenewFailed); n != 1 {
					t.Errorf("%d failed renewals told, want 1", n)
				}
				calls := line.log()
				var renewals []time.Time
				for _, c := range calls {
					if c.verb == renew {
						renewals = append(renewals, c.at)
					}
				}
				if gap := renewals[1].Sub(renewals[0]); f.reset && gap > ttl/10 {
					t.Errorf("the repeat came after %s", gap)
				}
				wantError(t, l.Release(w.ctx))
			})
		})
	}
}

func TestRS1_ManyTriesFitIntoWhatIsLeftOfTheTrust(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		l := w.lock(c, "k")
		line.every(lostRequest, renew)
		<-l.Done()
		if n := line.made(renew); n < 4 || n > 60 {
			t.Errorf("%d tries, want some but no storm", n)
		}
	})
}

func TestRS5_AThousandLeasesLoseNothingOnASlowConnection(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		line := newWire(w.store.Driver())
		r := &recorder{}
		c := w.clientWith(line, hasp.Options{Observe: r.observe, Lock: hasp.LockOptions{TTL: 3 * time.Second}})
		leases := make([]*hasp.Lease, rounds(1000))
		for i := range leases {
			leases[i] = w.lock(c, key(i))
			time.Sleep(time.Millisecond)
		}
		line.every(fault{request: 100 * time.Millisecond, reply: 100 * time.Millisecond})
		before := line.made(renew)
		time.Sleep(time.Minute)
		if n := r.count(hasp.EventLost); n != 0 {
			t.Errorf("%d leases were lost", n)
		}
		// in a minute each is renewed 60 times; together they need a few calls a second
		if n := line.made(renew) - before; n > 1000 {
			t.Errorf("%d calls to renew", n)
		}
		line.mend()
		for _, l := range leases {
			wantError(t, l.Release(w.ctx))
		}
	})
}

func TestRR1_NothingIsRenewedAfterItsRelease(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		line := newWire(w.store.Driver())
		c := w.clientWith(line, hasp.Options{Lock: hasp.LockOptions{TTL: time.Second}})
		wantError(t, c.Ping(w.ctx))
		var wg sync.WaitGroup
		for g := range 16 {
			wg.Go(func() {
				mutex := c.Mutex(key(g % 4))
				for range rounds(1250) {
					l, err := mutex.Lock(w.ctx)
					if err == nil {
						err = l.Release(w.ctx)
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		before := line.total()
		time.Sleep(2 * time.Second)
		if n := line.total() - before; n != 0 {
			t.Errorf("%d calls after the last release", n)
		}
		if n := hasp.CountClaims(c); n != 0 {
			t.Errorf("%d claims are kept", n)
		}
		w.empty()
	})
}

func TestRR2_AJoinCancelledAtAnyMomentLeavesNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		line := newWire(w.store.Driver())
		c := w.clientWith(line, hasp.Options{Lock: hasp.LockOptions{TTL: time.Second}})
		wantError(t, c.Ping(w.ctx))
		line.faults(func(call) fault {
			return fault{request: time.Duration(rand.IntN(1000)) * time.Microsecond, reply: time.Duration(rand.IntN(1000)) * time.Microsecond}
		})
		for i := range rounds(5000) {
			ctx, cancel := context.WithTimeout(w.ctx, time.Duration(rand.IntN(2000))*time.Microsecond)
			l, err := c.Mutex(key(i % 3)).Lock(ctx)
			cancel()
			if (l == nil) == (err == nil) {
				t.Fatalf("lease %v and error %v", l, err)
			}
			if l != nil {
				wantError(t, l.Release(w.ctx))
			}
		}
		line.mend()
		time.Sleep(2 * time.Second)
		before := line.total()
		time.Sleep(20 * time.Second)
		if n := line.total() - before; n != 0 {
			t.Errorf("%d calls go on", n)
		}
		if n := hasp.CountClaims(c); n != 0 {
			t.Errorf("%d claims are kept", n)
		}
		w.empty()
	})
}

func TestRR4_MaxHoldEndsALeaseThatIsNeverReleased(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.locks("a", hasp.LockOptions{MaxHold: time.Minute}), "k")
		began := time.Now()
		time.Sleep(59 * time.Second)
		wantError(t, l.Err())
		<-l.Done()
		if d := time.Since(began); d < time.Minute || d > time.Minute+ttl {
			t.Errorf("lost after %s, want MaxHold and at most a TTL", d)
		}
		lost(t, l)
		time.Sleep(ttl)
		w.empty()
	})
}

func TestMaxHoldSaysWhyInTheLoss(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.locks("a", hasp.LockOptions{MaxHold: 5 * time.Second}), "k")
		<-l.Done()
		if got := l.Err().Error(); !strings.Contains(got, "MaxHold") {
			t.Errorf("%q does not speak of MaxHold", got)
		}
	})
}

func TestMaxHoldCountsFromTheGrantAndNotFromTheCall(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		b := w.waiting(w.locks("b", hasp.LockOptions{MaxHold: 5 * time.Second}), "k")
		time.Sleep(time.Minute)
		wantError(t, a.Release(w.ctx))
		lb := w.held(b)
		began := time.Now()
		<-lb.Done()
		if d := time.Since(began); d < 5*time.Second || d > 5*time.Second+ttl {
			t.Errorf("lost after %s", d)
		}
	})
}

func TestNoRenewIsATTLFromTheGrantAndNoRenewal(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		began := time.Now()
		l := w.lock(c.With(hasp.LockOptions{NoRenew: true}), "k")
		<-l.Done()
		if d := time.Since(began); d != ttl-margin {
			t.Errorf("ended after %s, want %s", d, ttl-margin)
		}
		if n := line.made(renew); n != 0 {
			t.Errorf("%d renewals", n)
		}
		lost(t, l)
		if got := l.Err().Error(); !strings.Contains(got, "fixed") {
			t.Errorf("%q does not say that the lease was a fixed one", got)
		}
	})
}

func TestP5_ANoRenewWaiterHasAWholeTTLFromTheGrant(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, line := w.wired("b")
		b := w.waiting(c.With(hasp.LockOptions{NoRenew: true}), "k")
		time.Sleep(time.Minute + 600*time.Millisecond)
		before := line.made(renew)
		wantError(t, a.Release(w.ctx))
		granted := time.Now()
		lb := w.held(b)
		if got, want := lb.TrustedUntil(), granted.Add(ttl-margin); !got.Equal(want) {
			t.Errorf("trusted until %s, want %s", got, want)
		}
		<-lb.Done()
		if n := line.made(renew) - before; n != 1 {
			t.Errorf("%d renewals after the grant, want the one", n)
		}
	})
}

func TestNoRenewLivesOnByExtend(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.locks("a", hasp.LockOptions{NoRenew: true}), "k")
		for range 20 {
			time.Sleep(ttl / 2)
			wantError(t, l.Extend(w.ctx, ttl))
		}
		wantError(t, l.Err())
		<-l.Done()
		lost(t, l)
		wantError(t, l.Extend(w.ctx, ttl), hasp.ErrLost)
	})
}

func TestTR7_ExtendSetsAndNeverAdds(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		l := w.lock(c.With(hasp.LockOptions{NoRenew: true}), "k")
		rest := func(want time.Duration) {
			t.Helper()
			if got := w.rest("k"); got != want {
				t.Errorf("rest %s, want %s", got, want)
			}
		}
		wantError(t, l.Extend(w.ctx, 3*time.Second))
		rest(3 * time.Second)
		wantError(t, l.Extend(w.ctx, 3*time.Second))
		rest(3 * time.Second)
		wantError(t, l.Extend(w.ctx, time.Second)) // never shortens in the store
		rest(3 * time.Second)
		if got, want := l.TrustedUntil(), line.lastSent(renew).Add(3*time.Second-30*time.Millisecond); !got.Equal(want) {
			t.Errorf("trusted until %s, want %s: the lease lives as long as it would have", got, want)
		}
		wantError(t, l.Release(w.ctx))
	})
}

func TestExtendIsTheTTLOfEveryLaterRenewal(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.client("a"), "k")
		wantError(t, l.Extend(w.ctx, time.Minute))
		for range 100 {
			time.Sleep(3 * time.Second)
			if rest := w.rest("k"); rest < 20*time.Second || rest > time.Minute {
				t.Fatalf("rest %s", rest)
			}
		}
		wantError(t, l.Extend(w.ctx, time.Second))
		time.Sleep(2 * time.Minute)
		if rest := w.rest("k"); rest < time.Second/3 || rest > time.Second {
			t.Errorf("rest %s after an Extend to 1 s", rest)
		}
		wantError(t, l.Err())
		wantError(t, l.Release(w.ctx))
	})
}

func TestExtendOnASilentStoreEndsWithItsLimitOrItsContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.locks("a", hasp.LockOptions{TTL: time.Hour}), "k")
		goOn := w.store.Stall()
		began := time.Now()
		wantError(t, l.Extend(w.ctx, time.Hour), hasp.ErrUnavailable)
		within(t, "Extend", time.Since(began), 5*time.Second)
		began = time.Now()
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		wantError(t, l.Extend(ctx, time.Hour), hasp.ErrUnavailable)
		within(t, "Extend", time.Since(began), time.Second)
		wantError(t, l.Err())
		goOn()
		wantError(t, l.Extend(w.ctx, time.Hour))
		wantError(t, l.Release(w.ctx))
		wantError(t, l.Extend(w.ctx, time.Hour), hasp.ErrReleased)
	})
}

func TestBH4_AStorePausedForHalfATTLChangesNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		r := &recorder{}
		c := w.clientWith(w.store.Driver(), hasp.Options{Observe: r.observe})
		l := w.lock(c, "k")
		for range 10 {
			goOn := w.store.Stall()
			time.Sleep(ttl / 2)
			goOn()
			time.Sleep(3 * ttl)
		}
		wantError(t, l.Err())
		if n := r.count(hasp.EventLost); n != 0 {
			t.Errorf("%d losses", n)
		}
		wantError(t, l.Release(w.ctx))
	})
}

func TestARenewalThatFailsForeverIsNoHotLoop(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		line := newWire(w.store.Driver())
		c := w.clientWith(line, hasp.Options{Lock: hasp.LockOptions{TTL: time.Hour}})
		l := w.lock(c, "k")
		w.store.Fail(errors.New("down"))
		time.Sleep(50 * time.Minute)
		wantError(t, l.Err())
		if n := line.made(renew); n > 1000 {
			t.Errorf("%d renewals in 50 minutes", n)
		}
		w.store.Fail(nil)
		time.Sleep(10 * time.Minute)
		wantError(t, l.Err())
		wantError(t, l.Release(w.ctx))
	})
}
