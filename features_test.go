package hasp_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
)

// lesser is a driver that can do less.
type lesser struct {
	*wire
	change func(*driver.Features)
}

func (d lesser) Features() driver.Features {
	f := d.wire.Features()
	d.change(&f)
	return f
}

// lesser makes a client of a store that lacks something.
func (w *world) lesser(change func(*driver.Features)) (*hasp.Client, *wire) {
	w.t.Helper()
	line := newWire(w.store.Driver())
	return w.clientWith(lesser{line, change}, hasp.Options{}), line
}

func TestAStoreWithoutSharedLocksHasMutexesOnly(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, _ := w.lesser(func(f *driver.Features) { f.Shared = false })
		_, err := c.RWMutex("k").TryRLock(w.ctx)
		wantError(t, err, hasp.ErrUnsupported, errors.ErrUnsupported)
		_, err = c.Semaphore("k", 3).TryAcquire(w.ctx, 1)
		wantError(t, err, hasp.ErrUnsupported)
		wantError(t, w.lock(c, "k").Release(w.ctx))
	})
}

func TestAStoreThatCannotFenceGivesTokenZero(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, _ := w.lesser(func(f *driver.Features) { f.Tokens = false })
		l := w.lock(c, "k")
		if l.Token() != 0 {
			t.Errorf("token %d", l.Token())
		}
		wantError(t, l.Release(w.ctx))
	})
}

func TestAStoreThatTakesFewKeysTogetherSaysSo(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		apart := fmt.Errorf("%w: set Options.HashTag", driver.ErrUnsupported)
		c, line := w.lesser(func(f *driver.Features) {
			f.MaxKeys = 2
			f.Together = func(keys []string) error {
				if keys[0][0] != keys[1][0] {
					return apart
				}
				return nil
			}
		})
		_, err := c.Mutex("a", "b", "c").Lock(w.ctx)
		wantError(t, err, hasp.ErrUnsupported)
		_, err = c.Mutex("a1", "b2").Lock(w.ctx)
		wantError(t, err, hasp.ErrUnsupported)
		if !errors.Is(err, apart) {
			t.Errorf("error %v does not name what mends it", err)
		}
		if n := line.total(); n != 0 {
			t.Errorf("%d calls", n)
		}
		wantError(t, w.lock(c, "a1", "a2").Release(w.ctx))
	})
}

func TestAStoreThatKeepsNoShortLivesSaysSo(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.lesser(func(f *driver.Features) { f.MinLife = time.Second })
		_, err := c.With(hasp.LockOptions{TTL: 500 * time.Millisecond}).Mutex("k").Lock(w.ctx)
		wantError(t, err, hasp.ErrInvalid)
		if n := line.total(); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestP19_AGrantToBeConfirmedIsRenewedBeforeItIsUsed(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, line := w.lesser(func(f *driver.Features) { f.ConfirmGrant = true })
		b := w.waiting(c, "k")
		line.every(swallowed, renew)
		wantError(t, a.Release(w.ctx))
		synctest.Wait()
		if b.ended() {
			t.Fatal("a signal alone was believed")
		}
		line.mend()
		l := w.held(b)
		if n := line.made(renew); n < 2 {
			t.Errorf("%d renewals", n)
		}
		wantError(t, l.Release(w.ctx))
	})
}

func TestWaitEndsAlsoWhereAGrantIsNotConfirmed(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, line := w.wired("b")
		b := w.waiting(c.With(hasp.LockOptions{NoRenew: true, Wait: 500 * time.Millisecond}), "k")
		line.every(swallowed, renew)
		time.Sleep(400 * time.Millisecond)
		wantError(t, a.Release(w.ctx))
		w.refused(b, hasp.ErrUnavailable)
		within(t, "Lock", b.took, 700*time.Millisecond)
	})
}

func TestWaitDoesNotThrowAGrantAwayThatIsBeingConfirmed(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		c, line := w.wired("b")
		b := w.waiting(c.With(hasp.LockOptions{NoRenew: true, Wait: 500 * time.Millisecond}), "k")
		line.every(fault{request: 60 * time.Millisecond}, renew)
		time.Sleep(490 * time.Millisecond)
		wantError(t, a.Release(w.ctx))
		wantError(t, w.held(b).Release(w.ctx))
	})
}

func TestAStoreWithoutSignalsIsPolled(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		for _, poll := range []time.Duration{0, 10 * time.Millisecond} {
			line := newWire(w.store.Driver())
			c := w.clientWith(struct{ driver.Driver }{lesser{line, func(f *driver.Features) { f.Poll = poll }}}, hasp.Options{})
			a := w.lock(w.client("a"), "k")
			b := w.waiting(c, "k")
			time.Sleep(time.Minute)
			released := time.Now()
			wantError(t, a.Release(w.ctx))
			l := w.held(b)
			limit := 2 * time.Second
			if poll > 0 {
				limit = 25 * poll
			}
			within(t, "the grant", time.Since(released), limit)
			if n := line.made(renew); n > 60*1000/240+20 {
				t.Errorf("%d looks in a minute", n)
			}
			wantError(t, l.Release(w.ctx))
		}
	})
}

// deafDriver is never heard.
type deafDriver struct{ *wire }

func (d deafDriver) Listen(ctx context.Context, _ [6]byte, _ func(driver.Signal)) error {
	<-ctx.Done()
	return ctx.Err()
}

// brokenDriver cannot listen.
type brokenDriver struct {
	*wire
	listens *int
}

func (d brokenDriver) Listen(context.Context, [6]byte, func(driver.Signal)) error {
	*d.listens++
	return errors.New("no connection for signals")
}

func TestAStoreThatIsNeverHeardCostsASecondOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.clientWith(deafDriver{newWire(w.store.Driver())}, hasp.Options{})
		began := time.Now()
		l := w.lock(c, "k")
		within(t, "the first lock", time.Since(began), time.Second)
		began = time.Now()
		b := w.waiting(c, "k")
		wantError(t, l.Release(w.ctx))
		wantError(t, w.held(b).Release(w.ctx))
		within(t, "the second", time.Since(began), 2*time.Second)
		brief := w.clientWith(deafDriver{newWire(w.store.Driver())}, hasp.Options{Lock: hasp.LockOptions{Wait: 20 * time.Millisecond}})
		began = time.Now()
		wantError(t, w.lock(brief, "k").Release(w.ctx))
		within(t, "a lock with a short Wait", time.Since(began), 200*time.Millisecond)
	})
}

func TestAListenerThatFailsIsBegunAgainWithoutAHotLoop(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		listens := 0
		c := w.clientWith(brokenDriver{newWire(w.store.Driver()), &listens}, hasp.Options{})
		l := w.lock(c, "k")
		time.Sleep(time.Minute)
		wantError(t, l.Release(w.ctx))
		wantError(t, c.Close(w.ctx))
		if listens < 10 || listens > 150 {
			t.Errorf("%d tries to listen in a minute", listens)
		}
	})
}
