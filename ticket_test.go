package hasp_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
)

// detach locks key and detaches it for d.
func (w *world) detach(c *hasp.Client, d time.Duration, key string, more ...string) (*hasp.Lease, hasp.Ticket) {
	w.t.Helper()
	l := w.lock(c, key, more...)
	ticket, err := l.Detach(w.ctx, d)
	if err != nil {
		w.t.Fatal(err)
	}
	return l, ticket
}

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
				if n := hasp.KnownClaims(c); n != 0 {
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
		if n := hasp.KnownClaims(c); n != 1 {
			t.Errorf("%d claims are known", n)
		}
		time.Sleep(2 * time.Minute)
		if n := hasp.KnownClaims(c); n != 0 {
			t.Errorf("%d claims are kept", n)
		}
	})
}

func TestResumeTakesTheLeaseOverWithALargerToken(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a, ticket := w.detach(w.client("a"), time.Minute, "k2", "k1")
		wantError(t, a.Err(), hasp.ErrReleased)
		text, err := ticket.MarshalText()
		wantError(t, err)
		var read hasp.Ticket
		wantError(t, read.UnmarshalText(text))
		b, err := w.client("b").Resume(w.ctx, read)
		if err != nil {
			t.Fatal(err)
		}
		if b.Token() != a.Token()+1 {
			t.Errorf("token %d after %d", b.Token(), a.Token())
		}
		if fmt.Sprint(b.Keys()) != "[k1 k2]" {
			t.Errorf("keys %q", b.Keys())
		}
		if got := w.line("k1").Holders; len(got) != 1 || got[0].Name != "b" || got[0].Token != b.Token() || got[0].ExpiresIn != ttl {
			t.Errorf("holders %+v", got)
		}
		time.Sleep(10 * ttl) // it is renewed as any other
		wantError(t, b.Err())
		wantError(t, b.Release(w.ctx))
		w.empty()
	})
}

func TestP15_OfTwoWhoResumeOneGetsTheLease(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		for range 100 {
			ac, bc, cc := w.client("a"), w.client("b"), w.client("c")
			_, ticket := w.detach(ac, time.Minute, "k")
			b := w.start(func() (*hasp.Lease, error) { return bc.Resume(w.ctx, ticket) })
			c := w.start(func() (*hasp.Lease, error) { return cc.Resume(w.ctx, ticket) })
			<-b.done
			<-c.done
			if c.lease != nil {
				b, c = c, b
			}
			l := w.held(b)
			w.refused(c, hasp.ErrNotHeld)
			wantOp(t, c.err, "resume", "k")
			wantError(t, l.Err())
			wantError(t, l.Release(w.ctx))
		}
	})
}

func TestResumeIsNotHeldWhereThereIsNothingToTakeOver(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		used := func(t *testing.T, ticket hasp.Ticket, on *hasp.Client) {
			t.Helper()
			l, err := on.Resume(w.ctx, ticket)
			if l != nil {
				t.Error("a lease")
			}
			wantError(t, err, hasp.ErrNotHeld)
		}
		_, ticket := w.detach(c, time.Minute, "used")
		l, err := c.Resume(w.ctx, ticket)
		wantError(t, err)
		used(t, ticket, c)
		wantError(t, l.Err())
		wantError(t, l.Release(w.ctx))
		used(t, ticket, c)

		_, ticket = w.detach(c, time.Second, "late")
		time.Sleep(time.Second)
		used(t, ticket, c)

		_, ticket = w.detach(c, time.Minute, "elsewhere")
		other, err := hasp.New(memlease.NewStore().Driver(), nil)
		wantError(t, err)
		used(t, ticket, other)
		wantError(t, other.Close(w.ctx))

		_, ticket = w.detach(c, time.Minute, "forced")
		wantError(t, c.ForceRelease(w.ctx, "forced", 0))
		used(t, ticket, c)

		_, ticket = w.detach(c, time.Minute, "revoked")
		wantError(t, c.Revoke(w.ctx, "revoked", 0))
		used(t, ticket, c)
	})
}

func TestResumeMindsThePrefix(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		_, ticket := w.detach(c.Sub("app:"), time.Minute, "k")
		_, err := c.Sub("other:").Resume(w.ctx, ticket)
		wantError(t, err, hasp.ErrInvalid)
		_, err = c.Sub("app:k").Resume(w.ctx, ticket)
		wantError(t, err, hasp.ErrInvalid)
		l, err := c.Sub("app:").Resume(w.ctx, ticket) // nothing was lost by that
		wantError(t, err)
		if l.Keys()[0] != "k" {
			t.Errorf("keys %q", l.Keys())
		}
		wantError(t, l.Release(w.ctx))
		_, ticket = w.detach(c.Sub("app:"), time.Minute, "k")
		l, err = c.Resume(w.ctx, ticket)
		wantError(t, err)
		if l.Keys()[0] != "app:k" {
			t.Errorf("keys %q", l.Keys())
		}
		wantError(t, l.Release(w.ctx))
	})
}

func TestResumeKeepsTheKindOfLock(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.locks("a", hasp.LockOptions{Reentrant: true})
		r1, err := c.RWMutex("k").RLock(w.ctx)
		wantError(t, err)
		r2, err := c.RWMutex("k").RLock(w.ctx)
		wantError(t, err)
		ticket, err := r1.Detach(w.ctx, time.Minute)
		wantError(t, err)
		l, err := c.Resume(w.ctx, ticket)
		if err != nil {
			t.Fatal(err)
		}
		if !l.Shared() || r2.Err() != nil {
			t.Error("not a reader beside readers")
		}
		inner, err := c.RWMutex("k").RLock(l.Context(w.ctx))
		wantError(t, err)
		wantError(t, inner.Release(w.ctx))
		wantError(t, l.Release(w.ctx))
		wantError(t, r2.Release(w.ctx))
	})
}

func TestATicketCutOrAlteredIsInvalidAndNothingIsLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		_, ticket := w.detach(c, time.Hour, "k", "k2")
		text, err := ticket.MarshalText()
		wantError(t, err)
		before := line.total()
		for n := range text {
			var read hasp.Ticket
			if err := read.UnmarshalText(text[:n]); !errors.Is(err, hasp.ErrInvalid) {
				t.Errorf("cut at %d: %v", n, err)
			}
			altered := []byte(string(text))
			altered[n] ^= 1
			if err := read.UnmarshalText(altered); !errors.Is(err, hasp.ErrInvalid) {
				t.Errorf("altered at %d: %v", n, err)
			}
			_, err := c.Resume(w.ctx, read)
			wantError(t, err, hasp.ErrInvalid)
		}
		for _, wrong := range []string{"", "x", "hello world", string(text) + "A", string(text) + string(text), "=" + string(text)} {
			var read hasp.Ticket
			if err := read.UnmarshalText([]byte(wrong)); !errors.Is(err, hasp.ErrInvalid) {
				t.Errorf("%.20q: %v", wrong, err)
			}
		}
		if _, err := (hasp.Ticket{}).MarshalText(); !errors.Is(err, hasp.ErrInvalid) {
			t.Errorf("an empty ticket: %v", err)
		}
		if n := line.total() - before; n != 0 {
			t.Errorf("%d calls", n)
		}
		var read hasp.Ticket
		wantError(t, read.UnmarshalText([]byte("\n "+string(text)+" \n"))) // as it comes out of a file
		l, err := c.Resume(w.ctx, read)
		wantError(t, err)
		wantError(t, l.Release(w.ctx))
	})
}

func TestATicketOfANewerFormatSaysSo(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		_, ticket := w.detach(w.client("a"), time.Hour, "k")
		text, err := ticket.MarshalText()
		wantError(t, err)
		raw, err := base64.RawURLEncoding.DecodeString(string(text))
		wantError(t, err)
		raw[0] = 2
		var read hasp.Ticket
		err = read.UnmarshalText(sealed(raw[:len(raw)-8]))
		if !errors.Is(err, hasp.ErrInvalid) || !strings.Contains(err.Error(), "upgrade") {
			t.Errorf("error %v", err)
		}
	})
}

func TestP15_TheLastTokenOfABlockIsNotDetachedAndTheLeaseStays(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		l := w.lock(c, "k")
		last := l.Token()
		for range 63 {
			ticket, err := l.Detach(w.ctx, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if l, err = c.Resume(w.ctx, ticket); err != nil {
				t.Fatal(err)
			}
			if l.Token() <= last {
				t.Fatalf("token %d after %d", l.Token(), last)
			}
			last = l.Token()
		}
		_, err := l.Detach(w.ctx, time.Minute)
		wantError(t, err, hasp.ErrUnsupported)
		wantError(t, l.Err())
		w.store.Fail(errors.New("down"))
		<-l.Done()
		w.store.Fail(nil)
		_, err = l.Reclaim(w.ctx)
		wantError(t, err, hasp.ErrLost)
		wantError(t, l.Release(w.ctx), hasp.ErrLost)
		next := w.lock(c, "k")
		if next.Token() <= last {
			t.Errorf("token %d after %d", next.Token(), last)
		}
		wantError(t, next.Release(w.ctx))
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

func TestAnAnsweredButLostResumeIsRepeatedWithTheSameClaim(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		_, ticket := w.detach(w.client("a"), time.Minute, "k")
		c, line := w.wired("b")
		wantError(t, c.Ping(w.ctx))
		line.nth(join, 1, lostReply)
		l, err := c.Resume(w.ctx, ticket)
		wantError(t, err)
		if l != nil {
			wantError(t, l.Err())
			wantError(t, l.Release(w.ctx))
		}
		w.empty()
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
