package hasp_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
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
