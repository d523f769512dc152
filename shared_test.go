package hasp_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
)

// read starts an RLock of key.
func (w *world) read(c *hasp.Client, key string) *attempt {
	return w.start(func() (*hasp.Lease, error) { return c.RWMutex(key).RLock(w.ctx) })
}

// write starts a Lock of the read/write lock on key.
func (w *world) write(c *hasp.Client, key string) *attempt {
	return w.start(func() (*hasp.Lease, error) { return c.RWMutex(key).Lock(w.ctx) })
}

func TestReadersShareAndAWriterExcludes(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		r1, r2 := w.held(w.read(c, "k")), w.held(w.read(w.client("b"), "k"))
		if !r1.Shared() || !r2.Shared() || r2.Token() <= r1.Token() {
			t.Errorf("%v and %v", r1, r2)
		}
		writer := w.write(c, "k")
		late := w.read(c, "k")
		if writer.ended() || late.ended() {
			t.Fatal("a writer beside readers, or a reader past the writer")
		}
		wantError(t, r1.Release(w.ctx))
		synctest.Wait()
		if writer.ended() {
			t.Fatal("a writer beside a reader")
		}
		wantError(t, r2.Release(w.ctx))
		lw := w.held(writer)
		if lw.Shared() || late.ended() {
			t.Error("the writer is not alone")
		}
		wantError(t, lw.Release(w.ctx))
		wantError(t, w.held(late).Release(w.ctx))
		w.empty()
	})
}

func TestRW1_OneReadersRenewalsKeepNoOtherAlive(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		o := hasp.LockOptions{TTL: time.Second}
		d := w.store.Driver()
		dies := w.clientWith(d, hasp.Options{Lock: o})
		w.held(w.read(dies, "k"))
		r2 := w.held(w.read(w.locks("b", o), "k"))
		writer := w.write(w.locks("c", o), "k")
		d.Stall()
		time.Sleep(5 * time.Second)
		if n := len(w.line("k").Holders); n != 1 {
			t.Errorf("%d readers hold", n)
		}
		if writer.ended() {
			t.Fatal("a writer beside a reader")
		}
		released := time.Now()
		wantError(t, r2.Release(w.ctx))
		lw := w.held(writer)
		within(t, "the writer's grant", time.Since(released), 0)
		wantError(t, lw.Release(w.ctx))
	})
}

func TestRW4_AWriterThatGivesUpLetsTheReadersBehindItIn(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		r1 := w.held(w.read(c, "k"))
		writer := w.write(w.locks("b", hasp.LockOptions{Wait: time.Second}), "k")
		time.Sleep(500 * time.Millisecond)
		r2 := w.read(c, "k")
		w.refused(writer, hasp.ErrHeld)
		synctest.Wait()
		if !r2.ended() {
			t.Fatal("the second reader still waits")
		}
		if r2.took > 500*time.Millisecond {
			t.Errorf("the second reader came in after %s", r2.took)
		}
		wantError(t, r1.Release(w.ctx))
		wantError(t, w.held(r2).Release(w.ctx))
	})
}

func TestRW2_AWriterIsNeverWithAnybody(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var readers, writers atomic.Int64
		inside := func(ctx context.Context, mine, other *atomic.Int64, limit int64) {
			if n := mine.Add(1); n > limit || other.Load() > 0 {
				t.Errorf("%d of a kind and %d of the other", n, other.Load())
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(rand.IntN(300)) * time.Millisecond):
			}
			mine.Add(-1)
		}
		var wg sync.WaitGroup
		for i := range 9 {
			d := w.store.Driver()
			c := w.clientWith(d, hasp.Options{Lock: hasp.LockOptions{TTL: 400 * time.Millisecond, Grace: 100 * time.Millisecond}})
			rw := c.RWMutex("k")
			wg.Go(func() {
				for range rounds(300) {
					if rand.IntN(20) == 0 {
						goOn := d.Stall()
						time.AfterFunc(time.Duration(rand.IntN(1500))*time.Millisecond, goOn)
					}
					if i < 6 {
						_ = rw.RDo(w.ctx, func(ctx context.Context) error { inside(ctx, &readers, &writers, 6); return nil })
					} else {
						_ = rw.Do(w.ctx, func(ctx context.Context) error { inside(ctx, &writers, &readers, 1); return nil })
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestAMutexOnAReadWriteLocksKeyIsAWriter(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		r := w.held(w.read(c, "k"))
		_, err := c.Mutex("k").TryLock(w.ctx)
		wantError(t, err, hasp.ErrHeld)
		wantError(t, r.Release(w.ctx))
		m := w.lock(c, "k")
		_, err = c.RWMutex("k").TryRLock(w.ctx)
		wantError(t, err, hasp.ErrHeld)
		wantError(t, m.Release(w.ctx))
	})
}

func TestML1_AllOrNothingLeavesNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		line := newWire(w.store.Driver())
		c := w.clientWith(line, hasp.Options{Lock: hasp.LockOptions{Wait: time.Second}})
		b := w.lock(w.client("b"), "k2")
		a := w.waiting(c, "k1", "k2", "k3")
		_, err := w.client("c").Mutex("k1").TryLock(w.ctx) // it stands in every line
		wantError(t, err, hasp.ErrHeld)
		w.refused(a, hasp.ErrHeld)
		_, err = c.Mutex("k1", "k2", "k3").TryLock(w.ctx)
		wantError(t, err, hasp.ErrHeld)
		time.Sleep(100 * time.Millisecond)
		before := line.total()
		for _, k := range []string{"k1", "k3"} {
			l, err := w.client("c").Mutex(k).TryLock(w.ctx)
			wantError(t, err)
			wantError(t, l.Release(w.ctx))
		}
		time.Sleep(5 * ttl)
		if n := line.total() - before; n != 0 {
			t.Errorf("%d calls go on", n)
		}
		wantError(t, b.Release(w.ctx))
	})
}

func TestML3_OneKeyLostIsTheWholeLeaseLost(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.client("a"), "a", "b", "c")
		w.store.Drop("b")
		began := time.Now()
		<-l.Done()
		within(t, "the news", time.Since(began), ttl/3)
		wantError(t, l.Release(w.ctx), hasp.ErrLost)
		w.empty()
	})
}

func TestML4_AStoreThatDiesInTheMiddleHasNothingAfterATTL(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		wantError(t, c.Ping(w.ctx))
		line.every(silentReply, join)
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		_, err := c.Mutex("x", "y", "z").Lock(ctx)
		wantError(t, err, hasp.ErrUnavailable, context.DeadlineExceeded)
		line.every(swallowed)
		time.Sleep(ttl)
		w.empty()
	})
}

func TestSeveralKeysInAnyOrderDoNotDeadlock(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var wg sync.WaitGroup
		var held [5]atomic.Bool
		for range 6 {
			c := w.client("a")
			wg.Go(func() {
				for range rounds(500) {
					order := rand.Perm(5)[:2+rand.IntN(3)]
					keys := make([]string, len(order))
					for i, n := range order {
						keys[i] = key(n)
					}
					err := c.Mutex(keys[0], keys[1:]...).Do(w.ctx, func(context.Context) error {
						for _, n := range order {
							if held[n].Swap(true) {
								t.Errorf("key %d is held twice", n)
							}
						}
						for _, n := range order {
							held[n].Store(false)
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		w.empty()
	})
}

func TestSeveralKeysWithEverySignalLostAreGrantedSoon(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "x")
		c, line := w.wired("b")
		b := w.waiting(c, "x", "y")
		line.deaf()
		time.Sleep(time.Second)
		wantError(t, a.Release(w.ctx))
		released := time.Now()
		lb := w.held(b)
		within(t, "the grant", time.Since(released), 2*time.Second)
		wantError(t, lb.Release(w.ctx))
	})
}

func TestXR1_TheNextHoldsWhenTheTTLOfADeadHolderIsOverWhateverItHeld(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(ctx context.Context, c *hasp.Client) (*hasp.Lease, error){
		"mutex": func(ctx context.Context, c *hasp.Client) (*hasp.Lease, error) { return c.Mutex("k").Lock(ctx) },
		"read":  func(ctx context.Context, c *hasp.Client) (*hasp.Lease, error) { return c.RWMutex("k").RLock(ctx) },
		"write": func(ctx context.Context, c *hasp.Client) (*hasp.Lease, error) { return c.RWMutex("k").Lock(ctx) },
		"permit": func(ctx context.Context, c *hasp.Client) (*hasp.Lease, error) {
			return c.Semaphore("k", 4).Acquire(ctx, 1)
		},
		"several": func(ctx context.Context, c *hasp.Client) (*hasp.Lease, error) { return c.Mutex("k", "k2").Lock(ctx) },
	}
	for name, take := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				d := w.store.Driver()
				_, err := take(w.ctx, w.clientWith(d, hasp.Options{}))
				wantError(t, err)
				time.Sleep(10*ttl + 300*time.Millisecond)
				next := w.waiting(w.client("next"), "k", "k2")
				d.Stall()
				died := time.Now()
				rest := w.rest("k")
				l := w.held(next)
				if took := time.Since(died); took < rest || took > ttl+500*time.Millisecond {
					t.Errorf("granted after %s, the rest was %s", took, rest)
				}
				wantError(t, l.Release(w.ctx))
			})
		})
	}
}
