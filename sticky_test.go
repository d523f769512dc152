package hasp_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
)

// sticky makes a client behind a wire that keeps what it releases for a minute.
func (w *world) sticky(name string) (*hasp.Client, *wire) {
	w.t.Helper()
	line := newWire(w.store.Driver())
	return w.clientWith(line, hasp.Options{Name: name, Lock: hasp.LockOptions{Sticky: time.Minute}}), line
}

func TestAStickyLeaseIsLockedAgainWithoutTheStore(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.sticky("a")
		lease := w.lock(c, "k")
		wantError(t, lease.Release(w.ctx))
		wantError(t, lease.Err(), hasp.ErrReleased)
		synctest.Wait() // it is asked once whether somebody has come
		before, last := line.total(), lease.Token()
		for range 62 {
			l := w.lock(c, "k")
			if l.Token() != last+1 {
				t.Fatalf("token %d after %d", l.Token(), last)
			}
			last = l.Token()
			wantError(t, l.Release(w.ctx))
			wantError(t, l.Release(w.ctx))
		}
		try, err := c.Mutex("k").TryLock(w.ctx)
		wantError(t, err)
		if line.total() != before {
			t.Errorf("%d calls", line.total()-before)
		}
		wantError(t, try.Release(w.ctx))
		next := w.lock(c, "k") // the block is used up
		if number(next) == number(lease) || line.made(join) != 2 || line.made(leave) != 0 {
			t.Errorf("after 63 local grants: %d joins, %d leaves, token %d", line.made(join), line.made(leave), next.Token())
		}
		wantError(t, next.Release(w.ctx))
		seen, err := w.client("op").Inspect(w.ctx, "k")
		if err != nil || len(seen.Holders) != 1 || seen.Holders[0].Name != "a" {
			t.Errorf("%+v, %v; want it held by a", seen, err)
		}
	})
}

func TestAStickyLeaseStaysForItsTimeAndNoLonger(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, _ := w.sticky("a")
		wantError(t, w.lock(c, "k").Release(w.ctx))
		time.Sleep(30 * time.Second)
		wantError(t, w.lock(c, "k").Release(w.ctx))
		time.Sleep(59 * time.Second)
		if w.rest("k") == 0 {
			t.Error("it was given back too soon")
		}
		time.Sleep(1100 * time.Millisecond)
		w.empty()
		w.gatesShut(c)
		if n := hasp.CountClaims(c); n != 0 {
			t.Errorf("%d claims are known", n)
		}
	})
}

func TestWhoWaitsForAStickyLeaseGetsIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deaf  bool
		limit time.Duration
	}{"at once by a signal": {false, 0}, "soon without": {true, 2 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				a, line := w.sticky("a")
				if c.deaf {
					line.sift = func(s driver.Signal) bool { return s.Kind != driver.Wanted }
				}
				lease := w.lock(a, "k")
				wantError(t, lease.Release(w.ctx))
				time.Sleep(5 * time.Second)
				other := w.waiting(w.client("b"), "k")
				l := w.held(other)
				within(t, "the wait", other.took, c.limit)
				if l.Token() <= lease.Token() {
					t.Errorf("token %d after %d", l.Token(), lease.Token())
				}
				back := w.waiting(a, "k")
				wantError(t, l.Release(w.ctx))
				wantError(t, w.held(back).Release(w.ctx))
			})
		})
	}
}

func TestAStickyLeaseInUseIsGivenBackAtItsRelease(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a, _ := w.sticky("a")
		lease := w.lock(a, "k")
		other := w.waiting(w.client("b"), "k")
		time.Sleep(10 * time.Second)
		wantError(t, lease.Release(w.ctx))
		l := w.held(other)
		if other.took > 10*time.Second {
			t.Errorf("it waited for %s, the lease was held for 10 s", other.took)
		}
		wantError(t, l.Release(w.ctx))
	})
}

func TestWhoCameBeforeTheFirstReleaseOfAStickyKeyGetsItAtOnce(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(w *world, a *hasp.Client) *hasp.Mutex{
		"of another client": func(w *world, _ *hasp.Client) *hasp.Mutex { return w.client("b").Mutex("k") },
		"of the same": func(_ *world, a *hasp.Client) *hasp.Mutex {
			return a.With(hasp.LockOptions{TTL: time.Minute}).Mutex("k")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				a, _ := w.sticky("a")
				lease := w.lock(a, "k")
				m := of(w, a)
				other := w.start(func() (*hasp.Lease, error) { return m.Lock(w.ctx) })
				wantError(t, lease.Release(w.ctx)) // no renewal has told yet that somebody waits
				l := w.held(other)
				within(t, "the wait", other.took, 0)
				wantError(t, l.Release(w.ctx))
			})
		})
	}
}

func TestAHotStickyKeyGoesToWhoWaitsWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a, line := w.sticky("a")
		line.sift = func(s driver.Signal) bool { return s.Kind != driver.Wanted }
		wantError(t, w.lock(a, "k").Release(w.ctx))
		other := w.waiting(w.client("b"), "k")
		for began := time.Now(); !other.ended(); {
			if time.Since(began) > 2*time.Second {
				t.Fatal("it waits beside a process that locks over and over")
			}
			l := w.start(func() (*hasp.Lease, error) {
				return a.With(hasp.LockOptions{Wait: 10 * time.Millisecond}).Mutex("k").Lock(w.ctx)
			})
			time.Sleep(60 * time.Millisecond)
			if <-l.done; l.err == nil {
				wantError(t, l.lease.Release(w.ctx))
			}
		}
		wantError(t, w.held(other).Release(w.ctx))
	})
}

func TestAnOperatorTakesAStickyLease(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(*world, *hasp.Client) error{
		"revoked": func(w *world, op *hasp.Client) error { return op.Revoke(w.ctx, "k", 0) },
		"forced":  func(w *world, op *hasp.Client) error { return op.ForceRelease(w.ctx, "k", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				var r recorder
				c := w.clientWith(w.store.Driver(), hasp.Options{Name: "a", Observe: r.observe, Lock: hasp.LockOptions{Sticky: time.Minute}})
				lease := w.lock(c, "k")
				wantError(t, lease.Release(w.ctx))
				wantError(t, take(w, w.client("op")))
				time.Sleep(10 * time.Millisecond)
				w.empty()
				w.gatesShut(c)
				if n := r.count(hasp.EventLost); n != 0 {
					t.Errorf("%d losses of a lease that nobody has", n)
				}
				again := w.lock(c, "k")
				if number(again) == number(lease) {
					t.Error("what was taken is used again")
				}
			})
		})
	}
}

func TestAStickyLeaseWhoseStoreForgotItIsNotUsedForLong(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, _ := w.sticky("a")
		lease := w.lock(c, "k")
		wantError(t, lease.Release(w.ctx))
		w.store.Drop("k")
		time.Sleep(time.Second)
		again := w.lock(c, "k")
		if number(again) == number(lease) {
			t.Error("the claim is gone and used again")
		}
	})
}

func TestAStickyLeaseOfASilentStoreEndsWithItsTrust(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.sticky("a")
		lease := w.lock(c, "k")
		wantError(t, lease.Release(w.ctx))
		line.every(swallowed)
		time.Sleep(ttl)
		_, err := c.Mutex("k").TryLock(w.ctx)
		wantError(t, err, hasp.ErrUnavailable)
		line.mend()
		time.Sleep(time.Second)
		if l := w.lock(c, "k"); number(l) == number(lease) {
			t.Error("it was used beyond its trust")
		}
	})
}

func TestCloseGivesStickyLeasesBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, _ := w.sticky("a")
		for i := range 3 {
			wantError(t, w.lock(c, key(i)).Release(w.ctx))
		}
		began := time.Now()
		wantError(t, c.Close(w.ctx))
		within(t, "Close", time.Since(began), 0)
		w.empty()
	})
}

func TestAClientKeeps256StickyLeasesAndGivesTheOldestBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, _ := w.sticky("a")
		for i := range 260 {
			wantError(t, w.lock(c, key(i)).Release(w.ctx))
			if i == 255 {
				wantError(t, w.lock(c, key(0)).Release(w.ctx)) // the newest again
			}
		}
		time.Sleep(time.Millisecond)
		if open, _ := hasp.Gates(c); open != 256 {
			t.Errorf("%d are kept", open)
		}
		for i, want := range map[int]bool{0: true, 1: false, 4: false, 5: true, 259: true} {
			if got := w.rest(key(i)) > 0; got != want {
				t.Errorf("%s is kept: %v, want %v", key(i), got, want)
			}
		}
	})
}

func TestWhatOthersHoldIsNotSticky(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, _ := w.sticky("a")
		read, err := c.RWMutex("r").RLock(w.ctx)
		wantError(t, errors.Join(err, read.Release(w.ctx)))
		two := w.lock(c, "x", "y")
		wantError(t, two.Release(w.ctx))
		fixed, err := c.With(hasp.LockOptions{NoRenew: true}).Mutex("f").Lock(w.ctx)
		wantError(t, errors.Join(err, fixed.Release(w.ctx)))
		none, err := c.With(hasp.LockOptions{Sticky: -1}).Mutex("n").Lock(w.ctx)
		wantError(t, errors.Join(err, none.Release(w.ctx)))
		long := w.lock(c, "e")
		wantError(t, long.Extend(w.ctx, time.Hour))
		wantError(t, long.Release(w.ctx))
		kept := w.lock(c, "kept")
		wantError(t, kept.Keep(w.ctx, time.Second))
		time.Sleep(time.Second)
		w.empty()
		w.gatesShut(c)
	})
}

func TestWhatLocalHandoffsAndStickyCannotBeIsInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		for _, o := range []hasp.LockOptions{{LocalHandoffs: 64}, {Sticky: 31 * 24 * time.Hour}, {Sticky: -1}} {
			_, err := hasp.New(w.store.Driver(), &hasp.Options{Lock: o})
			wantError(t, err, hasp.ErrInvalid)
			if o.Sticky < 0 {
				continue // With takes it for none
			}
			_, err = w.client("a").With(o).Mutex("k").Lock(w.ctx)
			wantError(t, err, hasp.ErrInvalid)
		}
		c := w.locks("b", hasp.LockOptions{LocalHandoffs: 63, Sticky: 30 * 24 * time.Hour})
		wantError(t, c.Sub("x").With(hasp.LockOptions{TTL: time.Second}).Mutex("k").Err())
		wantError(t, w.lock(c, "k").Release(w.ctx))
		if w.rest("k") == 0 {
			t.Error("Sticky is not kept")
		}
	})
}
