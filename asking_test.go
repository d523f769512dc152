package hasp_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
)

// idle wants the client to wait for nothing any more.
func (w *world) idle(c *hasp.Client) {
	w.t.Helper()
	synctest.Wait()
	if keys, watches := hasp.Asking(c); keys != 0 || watches != 0 {
		w.t.Errorf("%d keys are waited for and %d watched, though nobody waits", keys, watches)
	}
	if n := hasp.CountClaims(c); n != 0 {
		w.t.Errorf("%d claims are known, though nobody has one", n)
	}
}

// fixed makes every pause that long.
func fixed(d time.Duration) hasp.Backoff { return hasp.Backoff{Min: d, Max: d, Jitter: -1} }

func TestWhereThereIsNoLineACallAsksAgainAfterLongerAndLongerPauses(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, d, line := w.lineless(hasp.LockOptions{Backoff: hasp.Backoff{Jitter: -1}})
		b := w.waiting(c, "k")
		time.Sleep(4500 * time.Millisecond)
		var want []time.Duration
		for _, ms := range []int{0, 20, 60, 140, 300, 620, 1260, 2260, 3260, 4260} {
			want = append(want, time.Duration(ms)*time.Millisecond)
		}
		if asked := d.when(); !slices.Equal(asked, want) {
			t.Errorf("asked after %v, want %v", asked, want)
		}
		if ids := d.ids(); len(ids) != 10 || len(slices.Compact(ids)) != 10 {
			t.Error("an id was used for two attempts")
		}
		if n := line.made(leave) + line.made(renew); n != 0 {
			t.Errorf("%d calls for attempts that left nothing", n)
		}
		wantError(t, a.Release(w.ctx))
		l := w.held(b)
		within(t, "the lock", b.took, 5260*time.Millisecond)
		wantError(t, l.Release(w.ctx))
		w.idle(c)
		w.empty()
	})
}

func TestAFreeKeyIsHadAtOnceWhereThereIsNoLine(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, d := w.freeing(hasp.LockOptions{})
		l := w.lock(c, "k")
		if _, watched := d.watching(); d.asked() != 1 || watched != 0 {
			t.Errorf("asked %d times and watched %d keys for a free one", d.asked(), watched)
		}
		_, err := c.Mutex("k").TryLock(w.ctx)
		wantError(t, err, hasp.ErrHeld)
		if d.asked() != 2 {
			t.Errorf("a try asked %d times", d.asked()-1)
		}
		time.Sleep(5 * ttl)
		wantError(t, l.Err()) // it is renewed like any other
		wantError(t, c.Mutex("k2").Do(w.ctx, func(context.Context) error { return nil }))
		wantError(t, c.Semaphore("s", 2).Do(w.ctx, 1, func(context.Context) error { return nil }))
		wantError(t, l.Release(w.ctx))
		w.idle(c)
	})
}

func TestAttemptsEndTheWaiting(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("the holder"), "k")
		backoff := fixed(100 * time.Millisecond)
		backoff.MaxAttempts = 3
		c, d, _ := w.lineless(hasp.LockOptions{Backoff: backoff})
		b := w.waiting(c, "k")
		w.refused(b, hasp.ErrHeld)
		if b.took != 200*time.Millisecond || d.asked() != 3 {
			t.Errorf("took %s and asked %d times, want 200ms and 3", b.took, d.asked())
		}
		var held *hasp.HeldError
		if !errors.As(b.err, &held) {
			t.Fatal(b.err)
		}
		want := hasp.HeldError{Key: "k", Holder: "the holder", ExpiresIn: 1800 * time.Millisecond, Waited: 200 * time.Millisecond, Attempts: 3}
		if *held != want {
			t.Errorf("%+v, want %+v", *held, want)
		}
		for _, part := range []string{"held by the holder", "expires in 1.8s", "waited 200ms", "asked 3 times"} {
			if !strings.Contains(b.err.Error(), part) {
				t.Errorf("%q does not say %q", b.err, part)
			}
		}
		once, _, _ := w.lineless(hasp.LockOptions{Backoff: hasp.Backoff{MaxAttempts: 1}})
		_, err := once.Mutex("k").Lock(w.ctx)
		wantError(t, err, hasp.ErrHeld)
		if !strings.Contains(err.Error(), "asked once") {
			t.Error(err)
		}
		wantError(t, a.Release(w.ctx))
		w.idle(c)
	})
}

func TestWaitEndsTheWaitingAlsoWhereThereIsNoLine(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, d, _ := w.lineless(hasp.LockOptions{Wait: 250 * time.Millisecond, Backoff: fixed(100 * time.Millisecond)})
		first := w.waiting(c, "k")
		second := w.waiting(c, "k") // its turn never comes
		for n, b := range []*attempt{first, second} {
			w.refused(b, hasp.ErrHeld)
			var held *hasp.HeldError
			if !errors.As(b.err, &held) || held.Waited != 250*time.Millisecond || held.Holder != "a" || held.ExpiresIn != ttl-250*time.Millisecond {
				t.Errorf("call %d: %+v", n, held)
			}
		}
		// The second gets its turn when the first is over, at the moment its own time is over, too.
		if n := d.asked(); n != 3 && n != 4 {
			t.Errorf("asked %d times, want 3 or 4", n)
		}
		wantError(t, a.Release(w.ctx))
		w.idle(c)
	})
}

func TestACallCancelledWhileItAsksIsStillToldWhoHeld(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, _, line := w.lineless(hasp.LockOptions{Backoff: fixed(100 * time.Millisecond)})
		ctx, cancel := context.WithTimeout(w.ctx, 150*time.Millisecond)
		defer cancel()
		b := w.start(func() (*hasp.Lease, error) { return c.Mutex("k").Lock(ctx) })
		line.every(swallowed, join)
		w.refused(b, hasp.ErrHeld, context.DeadlineExceeded)
		if b.took != 150*time.Millisecond || !strings.Contains(b.err.Error(), "held by a") {
			t.Errorf("after %s: %v", b.took, b.err)
		}
		line.mend()
		wantError(t, a.Release(w.ctx))
		time.Sleep(10 * ttl)
		w.idle(c)
		w.empty()
	})
}

func TestCloseEndsAllWhoWaitWithoutALine(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, d := w.freeing(hasp.LockOptions{Backoff: fixed(time.Hour)})
		var calls []*attempt
		for range 3 {
			calls = append(calls, w.waiting(c, "k"))
		}
		wantError(t, c.Close(w.ctx))
		for _, b := range calls {
			w.refused(b, hasp.ErrClosed)
		}
		if now, _ := d.watching(); now != 0 {
			t.Errorf("%d watches remain", now)
		}
		wantError(t, a.Release(w.ctx))
		w.idle(c)
	})
}

func TestAFreedKeyIsAskedForAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, d := w.freeing(hasp.LockOptions{Backoff: fixed(time.Hour)})
		b := w.waiting(c, "k")
		time.Sleep(time.Minute)
		released := time.Now()
		wantError(t, a.Release(w.ctx))
		l := w.held(b)
		within(t, "the hand-over", time.Since(released), 0)
		if n := d.asked(); n != 2 {
			t.Errorf("asked %d times, want 2", n)
		}
		wantError(t, l.Release(w.ctx))
		w.idle(c)
	})
}

func TestLostFreedSignalsCostAPauseAndNoMore(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, d := w.freeing(hasp.LockOptions{})
		d.lose()
		b := w.waiting(c, "k")
		time.Sleep(time.Minute)
		released := time.Now()
		wantError(t, a.Release(w.ctx))
		l := w.held(b)
		within(t, "the hand-over", time.Since(released), time.Second)
		wantError(t, l.Release(w.ctx))
	})
}

func TestAfterAGapInTheSignalsTheStoreIsAskedAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, d := w.freeing(hasp.LockOptions{Backoff: fixed(time.Hour)})
		d.lose()
		b := w.waiting(c, "k")
		wantError(t, a.Release(w.ctx))
		time.Sleep(time.Minute)
		if b.ended() {
			t.Fatal("a lost signal was heard")
		}
		d.miss()
		wantError(t, w.held(b).Release(w.ctx))
		within(t, "the lock", b.took, time.Minute)
	})
}

func TestAReleaseInTheSameProcessNeedsNoSignal(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, d, line := w.lineless(hasp.LockOptions{Backoff: fixed(time.Hour)})
		a := w.lock(c, "k")
		b := w.waiting(c, "k")
		time.Sleep(time.Minute)
		line.nth(leave, 1, lostReply) // the renewer repeats nothing: Release does
		wantError(t, a.Release(w.ctx))
		l := w.held(b)
		within(t, "the lock", b.took, time.Minute+time.Second)
		if n := d.asked(); n != 3 {
			t.Errorf("asked %d times, want 3", n)
		}
		wantError(t, l.Release(w.ctx))
	})
}

func TestTheDeadAreNotWaitedForLongerThanTheyLive(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		crashed, line := w.wired("crashed")
		w.lock(crashed, "k")
		line.every(swallowed)
		time.Sleep(time.Second)
		c, d, _ := w.lineless(hasp.LockOptions{Backoff: hasp.Backoff{Min: 100 * time.Millisecond, Max: time.Hour, Factor: 100}})
		b := w.waiting(c, "k")
		l := w.held(b)
		within(t, "the lock", b.took, 1200*time.Millisecond)
		if n := d.asked(); n > 4 {
			t.Errorf("asked %d times", n)
		}
		wantError(t, l.Release(w.ctx))
	})
}

func TestAnUnansweredAttemptIsRepeatedWithTheSameID(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		for _, f := range []fault{lostRequest, lostReply, swallowed, silentReply} {
			c, d, line := w.lineless(hasp.LockOptions{})
			line.nth(join, 1, f)
			l := w.lock(c, "k")
			if ids := d.ids(); len(ids) != 2 || ids[0] != ids[1] {
				t.Errorf("%+v: %d attempts, or with another id", f, len(ids))
			}
			wantError(t, l.Release(w.ctx))
			w.empty()
		}
	})
}

func TestAStoreWithoutALineThatIsSilentIsUnavailable(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, _, line := w.lineless(hasp.LockOptions{})
		b := w.waiting(c, "k")
		time.Sleep(10 * time.Second)
		line.every(swallowed)
		w.refused(b, hasp.ErrUnavailable)
		within(t, "the end", b.took, 16*time.Second)
		line.mend()
		line.every(lostRequest, join)
		brief := w.waiting(c.With(hasp.LockOptions{Wait: 300 * time.Millisecond}), "k")
		w.refused(brief, hasp.ErrUnavailable)
		within(t, "a call with a short Wait", brief.took, 500*time.Millisecond)
		line.mend()
		wantError(t, a.Release(w.ctx))
		time.Sleep(10 * ttl)
		w.idle(c)
		w.empty()
	})
}

func TestALineIsNotAskedTwice(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		line := newWire(w.store.Driver())
		c := w.clientWith(line, hasp.Options{Lock: hasp.LockOptions{Backoff: hasp.Backoff{MaxAttempts: 1}}})
		b := w.waiting(c, "k")
		time.Sleep(time.Minute)
		if b.ended() || line.made(join) != 1 {
			t.Errorf("a Backoff changed how a line is waited in: %v, %d joins", b.err, line.made(join))
		}
		wantError(t, a.Release(w.ctx))
		wantError(t, w.held(b).Release(w.ctx))
	})
}

func TestAPlainClientAsksForAsLongAsItTakes(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		backoff := fixed(100 * time.Millisecond)
		backoff.MaxAttempts = 2
		c, d, _ := w.lineless(hasp.LockOptions{Backoff: backoff, Wait: time.Second})
		b := w.waiting(c.Plain(), "k")
		time.Sleep(time.Minute)
		if n := d.asked(); b.ended() || n < 600 || n > 601 {
			t.Errorf("asked %d times in a minute, %v", n, b.err)
		}
		wantError(t, a.Release(w.ctx))
		wantError(t, w.held(b).Release(w.ctx))
	})
}
