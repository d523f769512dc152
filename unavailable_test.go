package hasp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
)

func TestBH1_CallsOnASilentStoreEndInTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.locks("a", hasp.LockOptions{TTL: time.Hour})
		l := w.lock(c, "held")
		defer w.store.Stall()()
		brief := c.With(hasp.LockOptions{Wait: time.Second})
		none := func(err error) error { return err }
		calls := []struct {
			name  string
			limit time.Duration
			call  func() error
		}{
			{"TryLock", 5 * time.Second, func() error { _, err := c.Mutex("k").TryLock(w.ctx); return err }},
			{"Lock", 5 * time.Second, func() error { _, err := c.Mutex("k").Lock(w.ctx); return err }},
			{"Lock with Wait", time.Second, func() error { _, err := brief.Mutex("k").Lock(w.ctx); return err }},
			{"Do", 5 * time.Second, func() error {
				return c.Mutex("k").Do(w.ctx, func(context.Context) error { t.Error("fn ran"); return nil })
			}},
			{"Extend", 5 * time.Second, func() error { return l.Extend(w.ctx, time.Hour) }},
			{"Inspect", 5 * time.Second, func() error { _, err := c.Inspect(w.ctx, "k"); return err }},
			{"Revoke", 5 * time.Second, func() error { return c.Revoke(w.ctx, "k", 0) }},
			{"ForceRelease", 5 * time.Second, func() error { return c.ForceRelease(w.ctx, "k", 64) }},
			{"Ping", 5 * time.Second, func() error { return c.Ping(w.ctx) }},
			{"List", 5 * time.Second, func() error {
				for _, err := range c.List(w.ctx, "") {
					return none(err)
				}
				return nil
			}},
			{"Release", 5 * time.Second, func() error { return l.Release(w.ctx) }},
		}
		for _, c := range calls {
			began := time.Now()
			err := c.call()
			within(t, c.name, time.Since(began), c.limit+200*time.Millisecond)
			wantError(t, err, hasp.ErrUnavailable)
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v reads as the end of the caller's context, which goes on", c.name, err)
			}
		}
		began := time.Now()
		_, _, _, _, _ = l.Err(), l.Token(), l.TrustedUntil(), l.Keys(), l.Ref()
		within(t, "accessors", time.Since(began), 0)
	})
}

func TestBH1_AWaiterOfAStoreThatFallsSilentIsTold(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.lock(w.locks("a", hasp.LockOptions{TTL: time.Hour}), "k")
		for _, life := range []time.Duration{time.Second, 2 * time.Second, time.Hour} {
			b := w.waiting(w.locks("b", hasp.LockOptions{TTL: life}), "k")
			time.Sleep(10*time.Second + 100*time.Millisecond)
			goOn := w.store.Stall()
			silent := time.Now()
			w.refused(b, hasp.ErrUnavailable)
			within(t, "the news", time.Since(silent), 5*time.Second)
			goOn()
		}
	})
}

func TestTheReasonWhyAStoreIsUnavailableOutlivesASilence(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.locks("a", hasp.LockOptions{})
		w.store.Fail(errors.New("connection refused by the test"))
		goOn := make(chan func(), 1)
		time.AfterFunc(time.Second, func() {
			goOn <- w.store.Stall()
			w.store.Fail(nil)
		})
		_, err := c.Mutex("k").TryLock(w.ctx)
		(<-goOn)()
		wantError(t, err, hasp.ErrUnavailable)
		if !strings.Contains(err.Error(), "connection refused by the test") {
			t.Errorf("%v does not say why", err)
		}
	})
}

func TestG10_AWaiterWhoseRenewalsAreRefusedIsToldSo(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.lock(w.locks("a", hasp.LockOptions{TTL: time.Hour}), "k")
		d := w.store.Driver()
		b := w.waiting(w.clientWith(d, hasp.Options{}), "k")
		d.Fail(fmt.Errorf("%w: read-only", driver.ErrRefused))
		w.refused(b, hasp.ErrRefused)
		within(t, "the news", b.took, 6*time.Second)
		d.Fail(nil)
	})
}

func TestBH1_ManyCallsAtOnceOnASilentStoreAllEndInTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		defer w.store.Stall()()
		var all []*attempt
		for i := range 10 {
			all = append(all, w.start(func() (*hasp.Lease, error) { return c.Mutex(key(i)).TryLock(w.ctx) }))
		}
		for _, a := range all {
			w.refused(a, hasp.ErrUnavailable)
			within(t, "TryLock", a.took, 5200*time.Millisecond)
		}
	})
}

func TestBH2_AStoreThatIsDownAtTheStartIsToldByTheCallAndUsedOnceItIsUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.store.Fail(errors.New("connection refused"))
		c := w.client("a") // New does no I/O
		_, err := c.Mutex("k").TryLock(w.ctx)
		wantError(t, err, hasp.ErrUnavailable)
		wantError(t, c.Ping(w.ctx), hasp.ErrUnavailable)
		b := w.waiting(c, "k")
		time.Sleep(3 * time.Second)
		w.store.Fail(nil)
		lb := w.held(b)
		within(t, "Lock", b.took, 3600*time.Millisecond)
		wantError(t, lb.Release(w.ctx))
		wantError(t, c.Ping(w.ctx))
	})
}

func TestSL4_AStoreThatRefusesIsToldAtOnceAndAskedOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		line := newWire(w.store.Driver())
		c := w.clientWith(line, hasp.Options{})
		l := w.lock(c, "held")
		before := line.total()
		w.store.Fail(fmt.Errorf("%w: out of memory", driver.ErrRefused))
		began := time.Now()
		_, err := c.Mutex("k").Lock(w.ctx)
		wantError(t, err, hasp.ErrRefused)
		within(t, "Lock", time.Since(began), 0)
		if n := line.total() - before; n != 1 {
			t.Errorf("%d calls", n)
		}
		w.store.Fail(nil)
		wantError(t, l.Err())
		wantError(t, l.Release(w.ctx))
	})
}

func TestTR4_AnAnswerThatTakesLongerThanTheLifeIsNoLease(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		line := newWire(w.store.Driver())
		c := w.clientWith(line, hasp.Options{Lock: hasp.LockOptions{TTL: time.Second}})
		wantError(t, c.Ping(w.ctx))
		line.every(fault{request: 750 * time.Millisecond, reply: 750 * time.Millisecond}, join)
		l, err := c.Mutex("k").TryLock(w.ctx)
		if l != nil {
			t.Errorf("a lease of the past: %v", l)
		}
		wantError(t, err, hasp.ErrUnavailable)
		line.mend()
		time.Sleep(2 * time.Second)
		w.empty()
		wantError(t, w.lock(c, "k").Release(w.ctx))
	})
}

func TestAM1_ALostAnswerToAJoinIsNoHolderInTheWay(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"request": lostRequest, "reply": lostReply, "silent": swallowed, "mute": silentReply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				line := newWire(w.store.Driver())
				c := w.clientWith(line, hasp.Options{Lock: hasp.LockOptions{TTL: 10 * time.Second}})
				wantError(t, c.Ping(w.ctx))
				for _, keys := range [][]string{{"k"}, {"k", "k2"}} {
					line.nth(join, 1, f)
					l, err := c.Mutex(keys[0], keys[1:]...).TryLock(w.ctx)
					wantError(t, err)
					if l == nil {
						return
					}
					if n := len(w.line("k").Holders); n != 1 {
						t.Errorf("%d holders", n)
					}
					wantError(t, l.Release(w.ctx))
					w.empty()
				}
			})
		})
	}
}

func TestAM4_AStorePausedDuringAJoinEndsInOneHold(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		wantError(t, c.Ping(w.ctx))
		goOn := w.store.Stall()
		a := w.waiting(c, "k")
		time.Sleep(4500 * time.Millisecond)
		goOn()
		l := w.held(a)
		if n := len(w.line("k").Holders); n != 1 {
			t.Errorf("%d holders", n)
		}
		wantError(t, l.Release(w.ctx))
		time.Sleep(ttl)
		w.empty()
	})
}

func TestACallThatGivesUpOnASilentStoreLeavesAsSoonAsThatAnswers(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		line := newWire(w.store.Driver())
		c := w.clientWith(line, hasp.Options{Lock: hasp.LockOptions{TTL: time.Hour}})
		wantError(t, c.Ping(w.ctx))
		line.every(silentReply, join, leave)
		_, err := c.Mutex("k").TryLock(w.ctx)
		wantError(t, err, hasp.ErrUnavailable)
		line.mend()
		time.Sleep(4 * time.Second)
		w.empty()
		synctest.Wait()
		if n := hasp.CountClaims(c); n != 0 {
			t.Errorf("%d claims are kept", n)
		}
	})
}

func TestOP4_EveryClassOfFailureIsItsOwn(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		l := w.lock(c, "held")
		_, err := c.Mutex("held").TryLock(w.ctx)
		wantError(t, err, hasp.ErrHeld)
		wantError(t, c.ForceRelease(w.ctx, "free", 64), hasp.ErrNotHeld)
		_, err = c.Mutex("").TryLock(w.ctx)
		wantError(t, err, hasp.ErrInvalid)
		_, err = c.With(hasp.LockOptions{TTL: 1}).Mutex("k").TryLock(w.ctx)
		wantError(t, err, hasp.ErrInvalid)
		w.store.Fail(fmt.Errorf("%w: the table is missing", driver.ErrRefused))
		_, err = c.Mutex("k").TryLock(w.ctx)
		wantError(t, err, hasp.ErrRefused)
		w.store.Fail(fmt.Errorf("%w: such keys together", driver.ErrUnsupported))
		_, err = c.Mutex("k").TryLock(w.ctx)
		wantError(t, err, hasp.ErrUnsupported, errors.ErrUnsupported)
		w.store.Fail(errors.New("no route to host"))
		_, err = c.Mutex("k").TryLock(w.ctx)
		wantError(t, err, hasp.ErrUnavailable)
		w.store.Fail(nil)
		<-l.Done()
		wantError(t, l.Err(), hasp.ErrLost)
		wantError(t, l.Release(w.ctx), hasp.ErrLost)
		l = w.lock(c, "k")
		wantError(t, l.Release(w.ctx))
		wantError(t, l.Extend(w.ctx, ttl), hasp.ErrReleased)
		wantError(t, c.Close(w.ctx))
		_, err = c.Mutex("k").TryLock(w.ctx)
		wantError(t, err, hasp.ErrClosed)
	})
}

func TestADriverThatIsWrongIsToldByNew(t *testing.T) {
	t.Parallel()
	_, err := hasp.New(nil, nil)
	wantError(t, err, hasp.ErrInvalid)
	wantOp(t, err, "new", "")
	bubble(t, func(w *world) {
		wrong := fmt.Errorf("%w: a Ring is no store", driver.ErrInvalid)
		_, err := hasp.New(wrongDriver{w.store.Driver(), wrong}, nil)
		wantError(t, err, hasp.ErrInvalid)
		if !errors.Is(err, wrong) {
			t.Errorf("error %v does not wrap what the driver says", err)
		}
	})
}

// wrongDriver has found something wrong when it was made.
type wrongDriver struct {
	driver.Driver
	err error
}

func (d wrongDriver) Features() driver.Features {
	f := d.Driver.Features()
	f.Err = d.err
	return f
}
