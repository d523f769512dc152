package hasp_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
)

// restless is a store that asks a waiting claim to look again sooner than it must.
type restless struct {
	*memlease.Driver

	sooner func(time.Duration) time.Duration
	looks  chan time.Time
}

func (w *world) restless(sooner func(time.Duration) time.Duration) restless {
	return restless{w.store.Driver(), sooner, make(chan time.Time, 1e5)}
}

func (d restless) Renew(ctx context.Context, items []driver.Renewal, answer func(int, driver.Standing, error)) {
	d.Driver.Renew(ctx, items, func(i int, s driver.Standing, err error) {
		if s.State == driver.Waiting {
			s.LookAgain = d.sooner(s.LookAgain)
			d.looks <- time.Now()
		}
		answer(i, s, err)
	})
}

func TestLooksThatChangeNothingComeEverLater(t *testing.T) {
	t.Parallel()
	for _, in := range []time.Duration{time.Nanosecond, 10 * time.Millisecond} {
		bubble(t, func(w *world) {
			held := w.lock(w.locks("a", hasp.LockOptions{TTL: time.Minute}), "k")
			d := w.restless(func(time.Duration) time.Duration { return in })
			b := w.waiting(w.clientWith(d, hasp.Options{Lock: hasp.LockOptions{TTL: time.Minute}}), "k")
			time.Sleep(30 * time.Second)
			if n := len(d.looks); n < 15 || n > 30 {
				t.Errorf("told to look again in %s, it looked %d times in 30s, want about one in 2s", in, n)
			}
			wantError(t, held.Release(w.ctx))
			wantError(t, w.held(b).Release(w.ctx))
		})
	}
}

func TestLooksGoOnAtTheirPaceWhileSomethingChanges(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		const dead = 100
		for i := range dead { // each dies a moment after the one before it
			time.Sleep(3 * time.Millisecond)
			j := driver.Join{Claim: driver.Claim{
				Ref: driver.Ref{ID: driver.ID{0: 1, 15: byte(i)}, Keys: []string{"k"}}, Weight: 1, Capacity: 1,
				Life: driver.Life{Hold: ttl, Wait: ttl},
			}}
			if _, err := w.store.Driver().Join(w.ctx, j); err != nil {
				t.Fatal(err)
			}
		}
		d := w.restless(func(look time.Duration) time.Duration {
			if look < 400*time.Millisecond {
				return 3 * time.Millisecond
			}
			return look
		})
		began := time.Now()
		b := w.waiting(w.clientWith(d, hasp.Options{}), "k")
		wantError(t, w.held(b).Release(w.ctx))
		within(t, "the way through the dead", time.Since(began), ttl+10*time.Millisecond)
	})
}

func TestLooksForAHolderOfShortLifeStayInTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		const life = 90 * time.Millisecond
		d := w.store.Driver()
		c := driver.Claim{Ref: driver.Ref{ID: driver.ID{1}, Keys: []string{"k"}}, Weight: 1, Capacity: 1, Life: driver.Life{Hold: life, Wait: life}}
		if _, err := d.Join(w.ctx, driver.Join{Claim: c}); err != nil {
			t.Fatal(err)
		}
		b := w.waiting(w.locks("b", hasp.LockOptions{TTL: time.Minute}), "k")
		for range 200 {
			time.Sleep(life / 3)
			d.Renew(w.ctx, []driver.Renewal{{Ref: c.Ref, Mode: driver.Extend, Life: c.Life}}, func(int, driver.Standing, error) {})
		}
		died := time.Now().Add(life)
		lease := w.held(b)
		within(t, "after the holder's death, the grant", time.Since(died), time.Millisecond)
		wantError(t, lease.Release(w.ctx))
	})
}

func TestACallWhoseAnswerIsLostReturnsWhenItIsKnownToHold(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"mute": silentReply, "slow": {reply: 1900 * time.Millisecond}} {
		bubble(t, func(w *world) {
			held := w.lock(w.client("a"), "k")
			c, line := w.wired("b")
			line.nth(join, 1, f)
			b := w.waiting(c, "k")
			began := time.Now()
			wantError(t, held.Release(w.ctx))
			lease := w.held(b)
			within(t, name+": the return", time.Since(began), 60*time.Millisecond)
			if n := line.made(join); n != 1 {
				t.Errorf("%s: %d Joins", name, n)
			}
			wantError(t, lease.Err())
			time.Sleep(3 * ttl)
			wantError(t, lease.Err())
			wantError(t, lease.Release(w.ctx))
			synctest.Wait()
			w.empty()
		})
	}
}

func TestACallWhoseAnswerIsLostGoesOnWhenItsClaimIsKnownToBeOver(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		held := w.lock(w.client("a"), "k")
		c, line := w.wired("b")
		line.nth(join, 1, silentReply)
		b := w.waiting(c, "k")
		page, err := w.store.Driver().Lines(w.ctx, driver.Query{Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		waiter := page.Lines[0].Waiters[0].Number
		if _, err := w.store.Driver().End(w.ctx, "k", []int64{waiter}, false); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := line.made(join); n != 2 {
			t.Errorf("%d Joins when the first was known to be over, want 2", n)
		}
		wantError(t, held.Release(w.ctx))
		wantError(t, w.held(b).Release(w.ctx))
	})
}
