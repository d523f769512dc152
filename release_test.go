package hasp_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
)

func TestFR1_AReleaseAfterTheEndTouchesNobodyElse(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.locks("a", hasp.LockOptions{TTL: time.Second, NoRenew: true}), "k")
		b := w.held(w.waiting(w.client("b"), "k"))
		time.Sleep(time.Second)
		before := w.rest("k")
		wantError(t, a.Release(w.ctx), hasp.ErrLost)
		synctest.Wait()
		if after := w.rest("k"); after != before {
			t.Errorf("b's rest went from %s to %s", before, after)
		}
		if got := w.line("k").Holders; len(got) != 1 || got[0].Token != b.Token() {
			t.Errorf("holders %+v", got)
		}
		_, err := w.client("c").Mutex("k").TryLock(w.ctx)
		wantError(t, err, hasp.ErrHeld)
		wantError(t, b.Err())
		wantError(t, b.Release(w.ctx))
	})
}

func TestFR2_AHolderThatComesBackLateNeitherRenewsNorEndsTheNext(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		d := w.store.Driver()
		a := w.lock(w.clientWith(d, hasp.Options{}), "k")
		goOn := d.Stall()
		b := w.held(w.waiting(w.locks("b", hasp.LockOptions{NoRenew: true, TTL: time.Minute}), "k"))
		time.Sleep(3*ttl - time.Second)
		goOn()
		last := w.rest("k")
		for range 50 {
			time.Sleep(20 * time.Millisecond)
			if rest := w.rest("k"); rest > last {
				t.Fatalf("b's rest rose from %s to %s", last, rest)
			} else {
				last = rest
			}
		}
		lost(t, a)
		wantError(t, a.Release(w.ctx), hasp.ErrLost)
		wantError(t, b.Err())
		wantError(t, b.Release(w.ctx))
	})
}

func TestReleaseHandsOverAtOnceAndTwiceIsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		r := &recorder{}
		c := w.clientWith(w.store.Driver(), hasp.Options{Observe: r.observe})
		a := w.lock(c, "k")
		wantError(t, a.Release(w.ctx))
		b := w.lock(w.client("b"), "k")
		for range 3 {
			wantError(t, a.Release(w.ctx))
		}
		wantError(t, b.Err())
		if n := r.count(hasp.EventReleased); n != 1 {
			t.Errorf("%d releases told", n)
		}
		wantError(t, b.Release(w.ctx))
	})
}

func TestCL2_ReleaseUsesOnlyTheValuesOfItsContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.ctx)
		l, err := w.client("a").Mutex("k").Lock(ctx)
		wantError(t, err)
		cancel()
		wantError(t, l.Release(ctx))
		w.empty()
	})
}

func TestPN7_ReleaseFromManyGoroutinesIsOneRelease(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		wantError(t, c.Ping(w.ctx))
		line.every(fault{request: time.Millisecond, reply: time.Millisecond}, leave)
		for range 50 {
			l := w.lock(c, "k")
			before := line.made(leave)
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() { wantError(t, l.Release(w.ctx)) })
				wg.Go(func() {
					if err := l.Extend(w.ctx, ttl); err != nil && !errors.Is(err, hasp.ErrReleased) {
						t.Errorf("Extend: %v", err)
					}
				})
				wg.Go(func() { _, _, _ = l.Err(), l.Token(), l.TrustedUntil() })
			}
			wg.Wait()
			if n := line.made(leave) - before; n != 1 {
				t.Errorf("%d leaves", n)
			}
		}
		w.empty()
	})
}

func TestPN7_ReleaseOfALostLeaseFromManyGoroutinesIsLostForAll(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.client("a"), "k")
		w.store.Drop("k")
		<-l.Done()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { wantError(t, l.Release(w.ctx), hasp.ErrLost) })
			wg.Go(func() { wantError(t, l.Extend(w.ctx, ttl), hasp.ErrLost) })
		}
		wg.Wait()
	})
}

func TestReleaseOfAClaimTheStoreHasLostIsLostAlsoBeforeTheNews(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.client("a"), "k")
		w.store.Drop("k")
		wantError(t, l.Err())
		err := l.Release(w.ctx)
		wantError(t, err, hasp.ErrLost)
		wantOp(t, err, "release", "k")
		wantError(t, l.Release(w.ctx), hasp.ErrLost)
	})
}

func TestAM2_AReleaseWhoseAnswerIsLostIsRepeatedAndSucceeds(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		l := w.lock(c, "k")
		line.nth(leave, 1, lostReply)
		wantError(t, l.Release(w.ctx))
		wantError(t, l.Release(w.ctx))
		w.empty()
	})
}

func TestAM2_AReleaseThatIsNeverAnsweredIsUnavailableAndMayBeCalledAgain(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"request": lostRequest, "reply": lostReply, "silent": swallowed, "mute": silentReply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				c, line := w.wired("a")
				l := w.lock(c.With(hasp.LockOptions{TTL: time.Minute}), "k")
				line.every(f, leave)
				renewals := line.made(renew)
				began := time.Now()
				err := l.Release(w.ctx)
				wantError(t, err, hasp.ErrUnavailable)
				wantOp(t, err, "release", "k")
				if d := time.Since(began); d > 5*time.Second {
					t.Errorf("took %s", d)
				}
				wantError(t, l.Err(), hasp.ErrReleased)
				line.mend()
				wantError(t, l.Release(w.ctx))
				w.empty()
				time.Sleep(time.Minute)
				if n := line.made(renew) - renewals; n != 0 {
					t.Errorf("%d renewals after the release", n)
				}
			})
		})
	}
}

func TestP10_AReleaseThatWasNotAnsweredGoesOnInTheBackground(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		l := w.lock(c.With(hasp.LockOptions{TTL: time.Hour}), "k")
		line.every(swallowed, leave)
		wantError(t, l.Release(w.ctx), hasp.ErrUnavailable)
		b := w.waiting(w.client("b"), "k")
		time.Sleep(time.Minute)
		line.mend()
		mended := time.Now()
		lb := w.held(b)
		within(t, "the next grant", time.Since(mended), 4*time.Second)
		wantError(t, l.Release(w.ctx))
		wantError(t, lb.Release(w.ctx))
		synctest.Wait()
		if n := hasp.CountClaims(c); n != 0 {
			t.Errorf("%d claims are kept", n)
		}
	})
}

func TestSL5_AReleaseThatIsRefusedMayBeCalledAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		d := w.store.Driver()
		l := w.lock(w.clientWith(d, hasp.Options{}), "k")
		d.Fail(fmt.Errorf("%w: NOREPLICAS", driver.ErrRefused))
		began := time.Now()
		wantError(t, l.Release(w.ctx), hasp.ErrRefused)
		within(t, "Release", time.Since(began), 0)
		d.Fail(nil)
		wantError(t, l.Release(w.ctx))
		w.empty()
	})
}

func TestP12_ARepeatedNotThereOutsideTheTrustWindowIsLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		l := w.lock(c, "k")
		line.every(lostRequest, leave)
		wantError(t, l.Release(w.ctx), hasp.ErrUnavailable) // 5 s: longer than the TTL
		b := w.lock(w.client("b"), "k")
		line.mend()
		wantError(t, l.Release(w.ctx), hasp.ErrLost)
		wantError(t, b.Err())
		wantError(t, b.Release(w.ctx))
	})
}

func TestP11_ALateJoinOfAClaimThatLeftIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		wantError(t, c.Ping(w.ctx))
		line.nth(join, 1, fault{request: time.Minute}) // its request arrives much later
		late := newLate(line)
		ctx, cancel := context.WithTimeout(w.ctx, 50*time.Millisecond)
		defer cancel()
		_, err := c.Mutex("k").Lock(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		time.Sleep(100 * time.Millisecond) // the Leave overtakes
		late.deliver(w.ctx)
		w.empty()
	})
}

// late keeps the first Join, to deliver it when nobody expects it any more.
type late struct {
	line *wire
	j    driver.Join
}

func newLate(line *wire) *late {
	l := &late{line: line}
	line.seen = func(j driver.Join) {
		if l.j.Keys == nil {
			l.j = j
		}
	}
	return l
}

func (l *late) deliver(ctx context.Context) { _, _ = l.line.Driver.Join(ctx, l.j) }

func TestP11_ATryThatHoldsWhileAnEarlierSendIsUnansweredSaysSoWhenItLeaves(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		wantError(t, c.Ping(w.ctx))
		late := newLate(line)
		line.nth(join, 1, lostRequest)
		l, err := c.Mutex("k").TryLock(w.ctx)
		wantError(t, err)
		wantError(t, l.Release(w.ctx))
		late.deliver(w.ctx)
		w.empty()
	})
}

func TestP10_AGrantOfAnUnknownClaimIsLeft(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, line := w.wired("b")
		wantError(t, c.Ping(w.ctx))
		late := newLate(line)
		line.nth(join, 1, lostRequest)
		ctx, cancel := context.WithTimeout(w.ctx, 5*time.Millisecond)
		defer cancel()
		_, err := c.Mutex("k").Lock(ctx)
		wantError(t, err, hasp.ErrUnavailable)
		time.Sleep(15 * time.Second) // the store has forgotten the id, and so has the client
		late.deliver(w.ctx)
		if n := w.line("k").Waiting; n != 1 {
			t.Fatalf("%d ghosts wait, want 1", n)
		}
		wantError(t, a.Release(w.ctx))
		time.Sleep(100 * time.Millisecond)
		w.empty()
		if n := hasp.CountClaims(c); n != 0 {
			t.Errorf("%d claims are kept", n)
		}
	})
}

func TestXR2_ACrashAfterAnyCallLeavesNothingWithoutAnExpiry(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 8; n++ {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				a := w.lock(w.client("a"), "k")
				line := newWire(w.store.Driver())
				c := w.clientWith(line, hasp.Options{})
				line.faults(func(call) fault {
					if len(line.calls) > n { // the wire's lock is held
						return swallowed
					}
					return fault{}
				})
				ctx, cancel := context.WithCancel(w.ctx)
				defer cancel()
				b := w.start(func() (*hasp.Lease, error) {
					l, err := c.Mutex("k", "k2").Lock(ctx)
					if err == nil {
						time.Sleep(ttl)
						_ = l.Release(w.ctx)
					}
					return l, err
				})
				time.Sleep(ttl / 2)
				wantError(t, a.Release(w.ctx))
				<-b.done
				time.Sleep(6*time.Second + ttl)
				w.empty()
			})
		})
	}
}

func TestErrorsOfALeaseNameOperationAndKey(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.client("a").Sub("app:"), "k", "other")
		wantError(t, l.Release(w.ctx))
		for op, call := range map[string]func() error{
			"extend": func() error { return l.Extend(w.ctx, ttl) },
			"keep":   func() error { return l.Keep(w.ctx, ttl) },
			"detach": func() error {
				_, err := l.Detach(w.ctx, ttl)
				return err
			},
			"reclaim": func() error {
				_, err := l.Reclaim(w.ctx)
				return err
			},
		} {
			err := call()
			wantError(t, err, hasp.ErrReleased)
			wantOp(t, err, op, "k")
			if err != nil && !strings.HasPrefix(err.Error(), "hasp: "+op+` "k": `) {
				t.Errorf("text %q", err)
			}
		}
	})
}
