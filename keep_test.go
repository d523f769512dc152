package hasp_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
)

func TestKeepLeavesTheKeyHeldForThatLongAndNotLonger(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		l := w.lock(c, "k")
		ctx := l.Context(w.ctx)
		wantError(t, l.Keep(w.ctx, time.Minute))
		wantError(t, l.Err(), hasp.ErrReleased)
		wantError(t, context.Cause(ctx), hasp.ErrReleased)
		before := line.total()
		wantError(t, l.Release(w.ctx)) // leaves it alone
		b := w.waiting(w.client("b"), "k")
		lb := w.held(b)
		if b.took < time.Minute || b.took > time.Minute+2*time.Millisecond {
			t.Errorf("kept for %s", b.took)
		}
		if n := line.total() - before; n != 0 {
			t.Errorf("%d calls after Keep", n)
		}
		wantError(t, lb.Release(w.ctx))
	})
}

func TestKeepMayShorten(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.locks("a", hasp.LockOptions{TTL: time.Hour}), "k")
		wantError(t, l.Keep(w.ctx, time.Second))
		if w.rest("k") != time.Second {
			t.Errorf("rest %s", w.rest("k"))
		}
		line, err := w.client("b").Inspect(w.ctx, "k")
		if err != nil || !line.Holders[0].Kept {
			t.Errorf("%+v, %v", line, err)
		}
	})
}

func TestP14_KeepEndsTheLeaseBeforeItIsSent(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		l := w.lock(c, "k")
		line.every(fault{request: time.Second}, renew)
		a := w.start(func() (*hasp.Lease, error) { return nil, l.Keep(w.ctx, 100*time.Millisecond) })
		wantError(t, l.Err(), hasp.ErrReleased)
		<-a.done
		wantError(t, a.err)
	})
}

func TestP14_TheFirstKeepCountsAndNoLateRenewalChangesIt(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		l := w.lock(c, "k")
		line.nth(renew, 1, fault{request: 600 * time.Millisecond}) // arrives after the Keep
		time.Sleep(ttl/3 + 10*time.Millisecond)
		line.nth(renew, 1, lostReply)
		wantError(t, l.Keep(w.ctx, time.Minute))
		time.Sleep(time.Second)
		if rest := w.rest("k"); rest > 59*time.Second || rest < 58*time.Second {
			t.Errorf("rest %s", rest)
		}
	})
}

func TestKeepWithoutAnAnswerMayBeCalledAgain(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"request": lostRequest, "reply": lostReply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				c, line := w.wired("a")
				l := w.lock(c.With(hasp.LockOptions{TTL: time.Minute}), "k")
				line.every(f, renew)
				wantError(t, l.Keep(w.ctx, time.Hour), hasp.ErrUnavailable)
				wantError(t, l.Release(w.ctx)) // leaves it alone
				line.mend()
				wantError(t, l.Keep(w.ctx, time.Hour))
				if rest := w.rest("k"); rest < 59*time.Minute {
					t.Errorf("rest %s", rest)
				}
				wantError(t, l.Keep(w.ctx, time.Hour), hasp.ErrReleased)
				if n := hasp.CountClaims(c); n != 0 {
					t.Errorf("%d claims are kept", n)
				}
			})
		})
	}
}

func TestKeepOfWhatIsLostIsLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		l := w.lock(c, "k")
		w.store.Drop("k")
		wantError(t, l.Keep(w.ctx, time.Minute), hasp.ErrLost)
		wantError(t, l.Release(w.ctx), hasp.ErrLost)
		l = w.lock(c, "k")
		w.store.Drop("k")
		<-l.Done()
		wantError(t, l.Keep(w.ctx, time.Minute), hasp.ErrLost)
		_, err := l.Detach(w.ctx, time.Minute)
		wantError(t, err, hasp.ErrLost)
	})
}

func TestP10_ALateSignalOfItsGrantDoesNotEndAKeptClaim(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, line := w.wired("b")
		b := w.waiting(c, "k")
		line.deaf()
		wantError(t, a.Release(w.ctx))
		lb := w.held(b) // by its own look
		ticket, err := lb.Detach(w.ctx, time.Minute)
		wantError(t, err)
		line.hear()
		time.Sleep(10 * time.Second)
		l, err := w.client("c").Resume(w.ctx, ticket)
		wantError(t, err)
		if l != nil {
			wantError(t, l.Release(w.ctx))
		}
		synctest.Wait()
		w.empty()
	})
}

func TestAKeptClaimWhoseSignalNeverComesIsForgottenWhenItIsOver(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, line := w.wired("b")
		b := w.waiting(c, "k")
		line.deaf()
		wantError(t, a.Release(w.ctx))
		wantError(t, w.held(b).Keep(w.ctx, time.Minute))
		if n := hasp.CountClaims(c); n != 1 {
			t.Errorf("%d claims are known", n)
		}
		time.Sleep(2 * time.Minute)
		if n := hasp.CountClaims(c); n != 0 {
			t.Errorf("%d claims are kept", n)
		}
	})
}

func TestReclaimTakesALostLeaseUpAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		r := &recorder{}
		d := w.store.Driver()
		c := w.clientWith(d, hasp.Options{Observe: r.observe, Lock: hasp.LockOptions{Grace: time.Minute}})
		a := w.lock(c, "k")
		waiter := w.waiting(w.client("b"), "k")
		d.Fail(errors.New("down"))
		<-a.Done()
		d.Fail(nil)
		again, err := a.Reclaim(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if again.Token() != a.Token()+1 || again.Err() != nil {
			t.Errorf("%v after %v: %v", again, a, again.Err())
		}
		lost(t, a)
		wantError(t, a.Release(w.ctx), hasp.ErrLost) // is the old one's matter only
		_, err = a.Reclaim(w.ctx)
		wantError(t, err, hasp.ErrLost)
		time.Sleep(10 * ttl)
		wantError(t, again.Err())
		if waiter.ended() {
			t.Error("somebody got in between")
		}
		wantError(t, again.Release(w.ctx))
		wantError(t, w.held(waiter).Release(w.ctx))
		synctest.Wait()
		if got, want := strings.ReplaceAll(r.kinds(), "renew_failed ", ""), "acquired lost acquired released "; got != want {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

func TestReclaimIsLostWhereTheStoreHasNothingLeft(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		l := w.lock(c, "k")
		_, err := l.Reclaim(w.ctx)
		wantError(t, err, hasp.ErrInvalid) // it is held
		w.store.Drop("k")
		<-l.Done()
		_, err = l.Reclaim(w.ctx)
		wantError(t, err, hasp.ErrLost)
		wantOp(t, err, "reclaim", "k")

		l = w.lock(c, "k2")
		w.store.Fail(errors.New("down"))
		<-l.Done()
		_, err = l.Reclaim(w.ctx)
		wantError(t, err, hasp.ErrUnavailable)
		w.store.Fail(nil)
		_, err = l.Reclaim(w.ctx)
		wantError(t, err, hasp.ErrLost) // the TTL is over by now

		l = w.lock(w.locks("b", hasp.LockOptions{Grace: time.Hour}), "k3")
		w.store.Fail(errors.New("down"))
		<-l.Done()
		w.store.Fail(nil)
		wantError(t, l.Release(w.ctx), hasp.ErrLost)
		_, err = l.Reclaim(w.ctx)
		wantError(t, err, hasp.ErrLost) // it was given back
	})
}

func TestKeepAndDetachRefuseTimesThatCannotBe(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.client("a"), "k")
		for _, d := range []time.Duration{0, -1, -time.Hour, 31 * 24 * time.Hour} {
			wantError(t, l.Keep(w.ctx, d), hasp.ErrInvalid)
			_, err := l.Detach(w.ctx, d)
			wantError(t, err, hasp.ErrInvalid)
		}
		wantError(t, l.Err())
		wantError(t, l.Release(w.ctx))
	})
}

func TestKeepDetachAndReclaimTakeAContextOfTheLeaseItself(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.locks("a", hasp.LockOptions{Grace: time.Minute})
		l := w.lock(c, "kept")
		wantError(t, l.Keep(l.Context(w.ctx), time.Minute))

		l = w.lock(c, "detached")
		ticket, err := l.Detach(l.Context(w.ctx), time.Minute)
		wantError(t, err)
		l, err = c.Resume(w.ctx, ticket)
		wantError(t, err)
		wantError(t, l.Release(l.Context(w.ctx)))

		l = w.lock(c, "reclaimed")
		ctx := l.Context(w.ctx)
		w.store.Fail(errors.New("down"))
		<-ctx.Done()
		w.store.Fail(nil)
		again, err := l.Reclaim(ctx)
		wantError(t, err)
		wantError(t, again.Release(w.ctx))

		l = w.lock(c, "limited")
		limited, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		defer w.store.Stall()()
		began := time.Now()
		wantError(t, l.Keep(l.Context(limited), time.Minute), hasp.ErrUnavailable)
		within(t, "Keep", time.Since(began), time.Second)
	})
}
