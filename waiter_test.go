package hasp_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
)

func TestSW1_AWaiterWhoseClaimIsGoneJoinsAgainAndNeverHoldsByMistake(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		b := w.waiting(w.client("b"), "k")
		waiter := w.waiterToken("k")
		wantError(t, w.client("op").ForceRelease(w.ctx, "k", waiter))
		time.Sleep(5 * time.Second)
		if b.ended() {
			t.Fatalf("returned %v, %v", b.lease, b.err)
		}
		wantError(t, a.Err())
		if got := w.waiterToken("k"); got <= waiter {
			t.Errorf("waits with token %d, had %d", got, waiter)
		}
		wantError(t, a.Release(w.ctx))
		lb := w.held(b)
		if d := time.Until(lb.TrustedUntil()); d < ttl/3 {
			t.Errorf("trusted for %s", d)
		}
		wantError(t, lb.Release(w.ctx))
	})
}

// waiterToken is the token that the first waiter of key will hold with.
func (w *world) waiterToken(key string) int64 {
	w.t.Helper()
	line, err := w.client("looks").Inspect(w.ctx, key)
	if err != nil || len(line.Waiters) == 0 {
		w.t.Fatalf("line %+v, error %v", line, err)
	}
	return line.Waiters[0].Token
}

func TestSW1_AWaiterWhoseClaimIsGoneJoinsAgainOnlyInsideItsWait(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		b := w.waiting(w.locks("b", hasp.LockOptions{Wait: 4 * time.Second}), "k")
		for range 3 {
			time.Sleep(time.Second)
			wantError(t, w.client("op").ForceRelease(w.ctx, "k", w.waiterToken("k")))
		}
		w.refused(b, hasp.ErrHeld)
		if b.took != 4*time.Second {
			t.Errorf("took %s, want 4s", b.took)
		}
		wantError(t, a.Release(w.ctx))
	})
}

func TestSW2_ASignalOfAnEarlierStayIsNoGrant(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, line := w.wired("b")
		b := w.waiting(c, "k")
		line.deaf()
		line.every(swallowed, renew)
		wantError(t, a.Release(w.ctx)) // b holds, and does not know
		time.Sleep(3 * ttl)            // its claim is dead
		other := w.lock(w.client("c"), "k")
		line.mend()
		line.hear() // the old Granted
		time.Sleep(time.Second)
		if b.ended() && b.lease != nil {
			t.Fatalf("holds beside another: %v", b.lease)
		}
		wantError(t, other.Release(w.ctx))
		if b.lease = nil; !b.ended() {
			wantError(t, w.held(b).Release(w.ctx))
		}
	})
}

func TestP5_AGrantLearntWithLittleTrustLeftIsRenewedFirst(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, line := w.wired("b")
		b := w.waiting(c, "k")
		asked := line.lastSent(join)
		line.every(swallowed, renew)
		time.Sleep(1400 * time.Millisecond) // more than two thirds of the waiting life
		wantError(t, a.Release(w.ctx))
		synctest.Wait()
		if b.ended() {
			t.Fatalf("used with %s of trust left", time.Until(asked.Add(ttl-margin)))
		}
		line.mend()
		lb := w.held(b)
		if d := time.Until(lb.TrustedUntil()); d < ttl/3 {
			t.Errorf("trusted for %s only", d)
		}
		wantError(t, lb.Release(w.ctx))
	})
}

func TestP6_AnOlderAnswerThatSaysWaitingDoesNotUndoAGrant(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, line := w.wired("b")
		b := w.waiting(c, "k")
		line.nth(renew, 1, fault{reply: 300 * time.Millisecond}) // says waiting
		time.Sleep(ttl/3 + 100*time.Millisecond)
		wantError(t, a.Release(w.ctx))
		lb := w.held(b)
		time.Sleep(3 * ttl)
		wantError(t, lb.Err())
		wantError(t, lb.Release(w.ctx))
	})
}

func TestAGrantWhoseSignalOvertakesTheAnswerIsUsed(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, line := w.wired("b")
		wantError(t, c.Ping(w.ctx))
		line.nth(join, 1, fault{reply: 400 * time.Millisecond})
		b := w.waiting(c, "k")
		time.Sleep(100 * time.Millisecond)
		wantError(t, a.Release(w.ctx)) // Granted comes before "waiting"
		lb := w.held(b)
		within(t, "the grant", b.took, 450*time.Millisecond)
		if trust, rest := time.Until(lb.TrustedUntil()), w.rest("k"); trust > rest {
			t.Errorf("trusted for %s, kept for %s", trust, rest)
		}
		wantError(t, lb.Release(w.ctx))
	})
}

func TestATurnThatOvertakesAnAnswerIsTaken(t *testing.T) {
	t.Parallel()
	for _, v := range []verb{join, renew} {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				a := w.lock(w.client("a"), "k")
				c, line := w.wired("b")
				wantError(t, c.Ping(w.ctx))
				line.nth(v, 1, fault{reply: 200 * time.Millisecond}) // says waiting
				b := w.waiting(c, "j", "k")
				if v == renew {
					time.Sleep(ttl / 3)
				}
				time.Sleep(100 * time.Millisecond)
				wantError(t, a.Release(w.ctx)) // Turn comes before that
				freed := time.Now()
				lb := w.held(b)
				within(t, "the grant after the turn", time.Since(freed), 150*time.Millisecond)
				wantError(t, lb.Release(w.ctx))
			})
		})
	}
}

func TestAJoinUnderWayWhenSignalsWereMissedIsRenewedAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, line := w.wired("b")
		wantError(t, c.Ping(w.ctx))
		line.nth(join, 1, fault{reply: 200 * time.Millisecond}) // says waiting
		line.deaf()
		b := w.waiting(c, "k")
		wantError(t, a.Release(w.ctx)) // Granted is not heard
		time.Sleep(100 * time.Millisecond)
		line.deliver(driver.Signal{Kind: driver.Missed})
		lb := w.held(b)
		within(t, "the grant", b.took, 250*time.Millisecond)
		wantError(t, lb.Release(w.ctx))
	})
}

func TestSW4_AWaiterStaysInLineFarBeyondItsWaitingLife(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		o := hasp.LockOptions{TTL: 100 * time.Millisecond}
		a := w.lock(w.locks("a", o), "k")
		b := w.waiting(w.locks("b", o), "k")
		c := w.waiting(w.locks("c", o), "k")
		token := w.waiterToken("k")
		time.Sleep(time.Minute)
		if got := w.waiterToken("k"); got != token {
			t.Errorf("the first waiter is %d, was %d", got, token)
		}
		wantError(t, a.Release(w.ctx))
		wantError(t, w.held(b).Release(w.ctx))
		wantError(t, w.held(c).Release(w.ctx))
	})
}

func TestADeadWaiterCostsTheLineAtMostSixSecondsWhateverTheTTL(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		o := hasp.LockOptions{TTL: time.Hour}
		a := w.lock(w.locks("a", o), "k")
		d := w.store.Driver()
		w.waiting(w.clientWith(d, hasp.Options{Name: "dies", Lock: hasp.LockOptions{TTL: time.Hour, Wait: time.Minute}}), "k")
		b := w.waiting(w.locks("b", o), "k")
		d.Stall() // for ever
		wantError(t, a.Release(w.ctx))
		died := time.Now()
		lb := w.held(b)
		within(t, "the grant", time.Since(died), 6*time.Second)
		wantError(t, lb.Release(w.ctx))
	})
}

func TestManyDeadWaitersCostNoMoreThanOne(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		d := w.store.Driver()
		dying := w.clientWith(d, hasp.Options{Lock: hasp.LockOptions{TTL: time.Hour, Wait: time.Minute}})
		for range 300 {
			w.waiting(dying, "k")
		}
		b := w.waiting(w.client("b"), "k")
		d.Stall()
		wantError(t, a.Release(w.ctx))
		died := time.Now()
		lb := w.held(b)
		within(t, "the grant", time.Since(died), 6200*time.Millisecond)
		wantError(t, lb.Release(w.ctx))
	})
}

func TestSW5_WhenEverybodyIsDeadNothingIsLeftAndTheNextHoldsAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		for i := range 20 {
			d := w.store.Driver()
			c := w.clientWith(d, hasp.Options{Lock: hasp.LockOptions{Wait: time.Minute}})
			w.waiting(c, "k")
			w.waiting(c, "k", "other")
			w.read(c, key(i%3))
			d.Stall()
		}
		time.Sleep(2 * 6 * time.Second)
		w.empty()
		began := time.Now()
		l := w.lock(w.client("fresh"), "k", "other", key(0))
		within(t, "the lock", time.Since(began), 0)
		wantError(t, l.Release(w.ctx))
	})
}
