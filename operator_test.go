package hasp_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
)

func TestOP1_InspectShowsWhoHoldsAndWhoWaits(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.client("host-1:17").Sub("app:")
		l := w.lock(a, "k")
		time.Sleep(time.Minute)
		b := w.waiting(w.client("host-2:4").Sub("app:"), "k")
		c := w.waiting(w.client("host-3:8").Sub("app:"), "k")
		time.Sleep(100 * time.Millisecond)
		line, err := w.client("op").Sub("app:").Inspect(w.ctx, "k")
		wantError(t, err)
		if line.Key != "k" || line.Waiting != 2 || len(line.Holders) != 1 || len(line.Waiters) != 2 {
			t.Fatalf("%+v", line)
		}
		h := line.Holders[0]
		if h.Name != "host-1:17" || h.Token != l.Token() || h.Weight != 1 || h.Capacity != 1 || h.Kept || h.Revoked {
			t.Errorf("holder %+v", h)
		}
		if h.InLine != time.Minute+100*time.Millisecond || h.ExpiresIn < ttl/3 || h.ExpiresIn > ttl {
			t.Errorf("holder %+v", h)
		}
		if line.Waiters[0].Name != "host-2:4" || line.Waiters[1].Name != "host-3:8" || line.Waiters[0].Token >= line.Waiters[1].Token {
			t.Errorf("waiters %+v", line.Waiters)
		}
		wantError(t, l.Release(w.ctx))
		lb := w.held(b)
		if lb.Token() != line.Waiters[0].Token {
			t.Errorf("token %d, listed as %d", lb.Token(), line.Waiters[0].Token)
		}
		wantError(t, lb.Release(w.ctx))
		wantError(t, w.held(c).Release(w.ctx))
		line, err = w.client("op").Inspect(w.ctx, "nobody wants it")
		if err != nil || line.Key != "nobody wants it" || len(line.Holders)+len(line.Waiters)+line.Waiting != 0 {
			t.Errorf("%+v, %v", line, err)
		}
	})
}

func TestInspectListsTheFirstHundredWaitersAndCountsAll(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.locks("a", hasp.LockOptions{Wait: time.Minute, LocalHandoffs: -1}) // each with a claim of its own
		w.lock(c, "k")
		for range 130 {
			w.waiting(c, "k")
		}
		line, err := c.Inspect(w.ctx, "k")
		if err != nil || len(line.Waiters) != 100 || line.Waiting != 130 {
			t.Errorf("%d waiters of %d, %v", len(line.Waiters), line.Waiting, err)
		}
	})
}

func TestListGoesThroughAllPagesInOrderAndNoFurtherThanAsked(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		line := newWire(w.store.Driver())
		c := w.clientWith(line, hasp.Options{Lock: hasp.LockOptions{TTL: time.Hour}})
		sub := c.Sub("app:")
		for i := range 2500 {
			w.lock(sub, fmt.Sprintf("job:%04d", i))
		}
		w.lock(sub, "other")
		w.lock(c, "job:outside")
		var keys []string
		for line, err := range sub.List(w.ctx, "job:") {
			wantError(t, err)
			keys = append(keys, line.Key)
		}
		if len(keys) != 2500 || !slices.IsSorted(keys) || keys[0] != "job:0000" || keys[2499] != "job:2499" {
			t.Errorf("%d keys, %q to %q", len(keys), keys[0], keys[len(keys)-1])
		}
		before := line.made(lines)
		for _, err := range sub.List(w.ctx, "") {
			wantError(t, err)
			break
		}
		if n := line.made(lines) - before; n != 1 {
			t.Errorf("%d pages for one line", n)
		}
		n := 0
		for _, err := range c.List(w.ctx, "") {
			wantError(t, err)
			n++
		}
		if n != 2502 {
			t.Errorf("%d lines in all", n)
		}
		for line, err := range c.List(w.ctx, "none") {
			t.Errorf("line %+v, error %v", line, err)
		}
	})
}

func TestListEndsWithTheErrorItMeets(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		w.lock(c, "k")
		w.store.Fail(fmt.Errorf("%w: no right", driver.ErrRefused))
		n := 0
		for line, err := range c.List(w.ctx, "p") {
			n++
			wantError(t, err, hasp.ErrRefused)
			wantOp(t, err, "list", "p")
			if line.Key != "" {
				t.Errorf("line %+v beside an error", line)
			}
		}
		if n != 1 {
			t.Errorf("%d rounds", n)
		}
		w.store.Fail(nil)
	})
}

func TestOP2_ForceReleaseGoesByTheTokenAndTheHolderIsToldAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		r := &recorder{}
		c := w.clientWith(w.store.Driver(), hasp.Options{Observe: r.observe})
		l := w.lock(c, "k")
		op := w.client("op")
		for _, wrong := range []int64{l.Token() + 64, l.Token() - 64, 1} {
			err := op.ForceRelease(w.ctx, "k", wrong)
			wantError(t, err, hasp.ErrNotHeld)
			wantOp(t, err, "force", "k")
		}
		wantError(t, l.Err())
		b := w.waiting(w.client("b"), "k")
		wantError(t, op.ForceRelease(w.ctx, "k", l.Token()))
		synctest.Wait()
		lost(t, l)
		lb := w.held(b)
		if lb.Token() <= l.Token() {
			t.Errorf("token %d after %d", lb.Token(), l.Token())
		}
		wantError(t, op.ForceRelease(w.ctx, "k", l.Token()), hasp.ErrNotHeld) // again: not the next one's
		wantError(t, lb.Err())
		wantError(t, l.Release(w.ctx), hasp.ErrLost)
		wantError(t, lb.Release(w.ctx))
		if got, want := r.kinds(), "acquired lost "; got != want {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

func TestP16_RevokeLetsNobodyOverlap(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.client("a"), "k")
		b := w.waiting(w.client("b"), "k")
		wantError(t, w.client("op").Revoke(w.ctx, "k", l.Token()))
		synctest.Wait()
		lost(t, l)
		var e *hasp.LostError
		if !errors.As(l.Err(), &e) || !e.Revoked {
			t.Errorf("loss %v, want one by revocation", l.Err())
		}
		if b.ended() {
			t.Fatal("the next holds before the old one has left")
		}
		line, err := w.client("op").Inspect(w.ctx, "k")
		if err != nil || !line.Holders[0].Revoked {
			t.Errorf("%+v, %v", line, err)
		}
		wantError(t, l.Release(w.ctx), hasp.ErrLost)
		synctest.Wait()
		if !b.ended() {
			t.Error("the next does not hold though the old one has left")
		}
		wantError(t, w.held(b).Release(w.ctx))
	})
}

func TestP16_ARevokedHolderThatDoesNotLeaveExpires(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		d := w.store.Driver()
		l := w.lock(w.clientWith(d, hasp.Options{}), "k")
		d.Stall() // it never hears of it
		b := w.waiting(w.client("b"), "k")
		wantError(t, w.client("op").Revoke(w.ctx, "k", 0))
		rest := w.rest("k")
		lb := w.held(b)
		if b.took < rest || b.took > rest+10*time.Millisecond {
			t.Errorf("granted after %s, the rest was %s", b.took, rest)
		}
		lost(t, l)
		wantError(t, lb.Release(w.ctx))
	})
}

func TestRevokeWithoutATokenEndsTheHoldersOfTheMomentOnly(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		r1, r2 := w.held(w.read(c, "k")), w.held(w.read(c, "k"))
		writer := w.write(w.client("b"), "k")
		wantError(t, c.ForceRelease(w.ctx, "k", 0))
		synctest.Wait()
		lost(t, r1)
		lost(t, r2)
		wantError(t, w.held(writer).Release(w.ctx))
		wantError(t, c.Revoke(w.ctx, "k", 0), hasp.ErrNotHeld)
		wantError(t, c.ForceRelease(w.ctx, "k", 0), hasp.ErrNotHeld)
	})
}

func TestP16_ARepeatedForceReleaseSucceedsAndTouchesNobodyElse(t *testing.T) {
	t.Parallel()
	for _, force := range []bool{false, true} {
		t.Run(strconv.FormatBool(force), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				l := w.lock(w.client("a"), "k")
				b := w.waiting(w.client("b"), "k")
				op, line := w.wired("op")
				line.nth(end, 1, lostReply)
				call := op.Revoke
				if force {
					call = op.ForceRelease
				}
				wantError(t, call(w.ctx, "k", 0))
				synctest.Wait()
				lost(t, l)
				wantError(t, l.Release(w.ctx), hasp.ErrLost)
				lb := w.held(b)
				time.Sleep(3 * ttl)
				wantError(t, lb.Err())
				wantError(t, lb.Release(w.ctx))
			})
		})
	}
}

func TestAKeptClaimIsEndedByAnOperator(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		l := w.lock(c, "k")
		wantError(t, l.Keep(w.ctx, time.Hour))
		wantError(t, c.ForceRelease(w.ctx, "k", l.Token()))
		wantError(t, w.lock(c, "k").Release(w.ctx))
	})
}

func TestAForcedHolderOnADeafClientIsToldByItsNextRenewal(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		l := w.lock(c, "k")
		line.deaf()
		wantError(t, w.client("op").ForceRelease(w.ctx, "k", 0))
		began := time.Now()
		<-l.Done()
		within(t, "the news", time.Since(began), ttl/3)
	})
}

func TestAStoreWithoutOperatorsSaysSo(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.clientWith(struct{ driver.Driver }{w.store.Driver()}, hasp.Options{})
		err := c.Revoke(w.ctx, "k", 64)
		wantError(t, err, hasp.ErrUnsupported, errors.ErrUnsupported)
		wantOp(t, err, "revoke", "k")
	})
}
