package hasp_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
)

func TestALeaseTellsWhatItIs(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a").Sub("app:")
		l := w.lock(c, "z", "a", "m")
		keys := l.Keys()
		if !slices.Equal(keys, []string{"z", "a", "m"}) {
			t.Errorf("keys %q, want them as they were given", keys)
		}
		keys[0] = "other"
		if l.Keys()[0] != "z" {
			t.Error("Keys gave its own slice away")
		}
		if l.Token() <= 0 || l.Token()%64 != 0 {
			t.Errorf("token %d, want the first of a block", l.Token())
		}
		if l.Shared() {
			t.Error("a mutex is not shared")
		}
		if ref := l.Ref(); !slices.Equal(ref.Keys, []string{"app:a", "app:m", "app:z"}) || ref.Number != l.Token()/64 {
			t.Errorf("ref %v, want full keys, sorted, and the number", ref)
		}
		wantError(t, l.Err())
		select {
		case <-l.Done():
			t.Error("Done is closed")
		default:
		}
		if d := time.Until(l.TrustedUntil()); d != ttl-margin {
			t.Errorf("trusted for %s", d)
		}
		wantError(t, l.Release(w.ctx))
		wantError(t, l.Err(), hasp.ErrReleased)
		<-l.Done()
		if l.Token() == 0 || len(l.Keys()) != 3 {
			t.Error("a released lease has forgotten what it was")
		}
	})
}

func TestATryOnAHeldKeyIsHeldAndSaysByWhomAndForHowLong(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("the holder"), "k")
		b, err := w.client("b").Mutex("k").TryLock(w.ctx)
		if b != nil {
			t.Error("a lease and an error")
		}
		wantError(t, err, hasp.ErrHeld)
		wantOp(t, err, "acquire", "k")
		var held *hasp.HeldError
		if !errors.As(err, &held) || held.Key != "k" || held.Holder != "the holder" || held.ExpiresIn != ttl || held.Waited != 0 {
			t.Errorf("%#v", held)
		}
		wantError(t, a.Release(w.ctx))
		w.empty()
	})
}

func TestTR5_ATryOnAFreeKeyIsOneRealAttempt(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a").With(hasp.LockOptions{Wait: hasp.NoWait})
		one, err := c.Mutex("k").Lock(w.ctx) // NoWait: as the Try form
		wantError(t, err)
		several, err := c.Mutex("x", "y", "z").TryLock(w.ctx)
		wantError(t, err)
		_, err = c.Mutex("k").Lock(w.ctx)
		wantError(t, err, hasp.ErrHeld)
		wantError(t, one.Release(w.ctx))
		wantError(t, several.Release(w.ctx))
	})
}

func TestATryDoesNotOvertakeThoseWhoWait(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		reader, err := c.RWMutex("k").RLock(w.ctx)
		wantError(t, err)
		writer := w.waiting(w.client("b"), "k")
		_, err = c.RWMutex("k").TryRLock(w.ctx)
		wantError(t, err, hasp.ErrHeld)
		wantError(t, reader.Release(w.ctx))
		wantError(t, w.held(writer).Release(w.ctx))
	})
}

func TestG3_TokensRiseFromGrantToGrantWhateverEndedTheLastOne(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		last := int64(0)
		for i := range 60 {
			c := w.client(key(i))
			l := w.lock(c, "k")
			if l.Token() <= last {
				t.Fatalf("token %d after %d in round %d", l.Token(), last, i)
			}
			last = l.Token()
			time.Sleep(time.Microsecond) // a real grant takes longer than that
			switch i % 5 {
			case 0:
				wantError(t, l.Release(w.ctx))
			case 1:
				w.store.Drop("k")
			case 2:
				w.store.Wipe()
			case 3:
				wantError(t, c.ForceRelease(w.ctx, "k", 0))
			case 4:
				wantError(t, l.Keep(w.ctx, time.Second))
			}
		}
	})
}

func TestRI1_AnyGoroutineMayRelease(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.client("a"), "k")
		var wg sync.WaitGroup
		wg.Go(func() { wantError(t, l.Release(w.ctx)) })
		wg.Wait()
		w.empty()
	})
}

func TestRI2_GoroutinesOfOneClientExcludeEachOther(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		inside, done := 0, 0
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range rounds(2500) {
					err := c.Mutex("k").Do(w.ctx, func(context.Context) error {
						inside++
						if inside != 1 {
							t.Error("two at once")
						}
						runtime.Gosched()
						inside--
						done++
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if done != 4*rounds(2500) {
			t.Errorf("%d rounds", done)
		}
	})
}

func TestRI4_ClientsThatShareANameAreDifferentOwners(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a, b := w.client("same"), w.client("same")
		la := w.lock(a, "k")
		_, err := b.Mutex("k").TryLock(w.ctx)
		wantError(t, err, hasp.ErrHeld)
		_, err = a.Mutex("k").TryLock(w.ctx)
		wantError(t, err, hasp.ErrHeld)
		wantError(t, la.Release(w.ctx))
		lb := w.lock(b, "k")
		wantError(t, la.Release(w.ctx)) // SR-5: a no-op by now
		wantError(t, lb.Err())
		if w.rest("k") != ttl {
			t.Error("the second release touched the next holder")
		}
		wantError(t, lb.Release(w.ctx))
	})
}

func TestKT4_TenThousandKeysAreHeldAtOnceAndNoneIsTakenForAnother(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		line := newWire(w.store.Driver())
		c := w.clientWith(line, hasp.Options{Lock: hasp.LockOptions{TTL: time.Minute}})
		leases := make([]*hasp.Lease, rounds(10_000))
		for i := range leases {
			l, err := c.Mutex(key(i)).TryLock(w.ctx)
			if err != nil {
				t.Fatal(err)
			}
			leases[i] = l
		}
		time.Sleep(5 * time.Minute)
		rand.Shuffle(len(leases), func(i, j int) { leases[i], leases[j] = leases[j], leases[i] })
		for _, l := range leases {
			if err := l.Release(w.ctx); err != nil {
				t.Fatal(err)
			}
		}
		if n := hasp.CountClaims(c); n != 0 {
			t.Errorf("%d claims are kept", n)
		}
		w.empty()
	})
}

func TestTM8_OneOfManyTriesWins(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		clients := []*hasp.Client{w.client("a"), w.client("b"), w.client("c"), w.client("d")}
		for range rounds(500) {
			var mu sync.Mutex
			var won []*hasp.Lease
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					l, err := clients[i%4].Mutex("k").TryLock(w.ctx)
					if err != nil {
						if !errors.Is(err, hasp.ErrHeld) {
							t.Error(err)
						}
						return
					}
					mu.Lock()
					defer mu.Unlock()
					won = append(won, l)
				})
			}
			wg.Wait()
			if len(won) != 1 {
				t.Fatalf("%d won", len(won))
			}
			wantError(t, won[0].Release(w.ctx))
		}
	})
}

func TestOneClientsCloseIsNoneOfAnothers(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.client("a")
		l := w.lock(w.client("b"), "k")
		wantError(t, w.lock(a, "other").Release(w.ctx))
		wantError(t, a.Close(w.ctx))
		wantError(t, l.Err())
		wantError(t, l.Release(w.ctx))
	})
}

func TestLeaseContextEndsWithItsParentAndTellsTheParentsCause(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.client("a"), "k")
		parent, cancel := context.WithCancelCause(w.ctx)
		ctx := l.Context(parent)
		why := errors.New("enough")
		cancel(why)
		<-ctx.Done()
		if context.Cause(ctx) != why { //nolint:errorlint // the very value
			t.Errorf("cause %v", context.Cause(ctx))
		}
		wantError(t, l.Err())
		wantError(t, l.Release(w.ctx))
	})
}

func TestLeaseContextHasTheValuesAndTheDeadlineOfItsParent(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		type k struct{}
		l := w.lock(w.client("a"), "k")
		parent, cancel := context.WithTimeout(context.WithValue(w.ctx, k{}, "v"), time.Second)
		defer cancel()
		ctx := l.Context(parent)
		want, _ := parent.Deadline()
		if got, ok := ctx.Deadline(); !ok || got != want || ctx.Value(k{}) != "v" {
			t.Errorf("deadline %s, value %v", got, ctx.Value(k{}))
		}
		wantError(t, l.Release(w.ctx))
		if !errors.Is(context.Cause(ctx), hasp.ErrReleased) || !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("cause %v, error %v", context.Cause(ctx), ctx.Err())
		}
	})
}

func TestLeaseContextOfALeaseThatIsOverIsOver(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.client("a"), "k")
		wantError(t, l.Release(w.ctx))
		ctx := l.Context(w.ctx)
		wantError(t, context.Cause(ctx), hasp.ErrReleased)
		if _, ok := hasp.FromContext(ctx, "k"); !ok {
			t.Error("the context carries no lease")
		}
	})
}

func TestG12_ContextsThatEndedDoNotCollectInALongLease(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.client("a"), "k")
		for range 1000 {
			ctx, cancel := context.WithCancel(w.ctx)
			_ = l.Context(ctx)
			cancel()
		}
		synctest.Wait()
		if n := hasp.Parts(l); n != 0 {
			t.Errorf("%d contexts hang on the lease", n)
		}
		wantError(t, l.Release(w.ctx))
	})
}

func TestG12_MemoryIsBackToItsBaseAfterManyLocks(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		use := func(from, to int) uint64 {
			for i := from; i < to; i++ {
				l := w.lock(c, key(i))
				ctx, cancel := context.WithCancel(w.ctx)
				_ = l.Context(ctx)
				wantError(t, l.Release(w.ctx))
				cancel()
			}
			time.Sleep(time.Minute) // the store forgets the last numbers
			w.lock(c, "sweep")
			for range 200 { // a step forgets a few
				wantError(t, w.lock(c, "k").Release(w.ctx))
			}
			w.store.Wipe()
			synctest.Wait()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := use(0, 2000)
		after := use(2000, 2000+rounds(20_000))
		if n := hasp.CountClaims(c); n > 2 {
			t.Errorf("%d claims are kept", n)
		}
		// other tests run beside this one, so that only a leak of kilobytes a lock would show
		if grown := int64(after) - int64(before); grown > 64<<20 {
			t.Errorf("the heap has grown by %d bytes", grown)
		}
	})
}
