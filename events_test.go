package hasp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
)

// life describes events by what matters: kind, operation and class of the error.
func (r *recorder) life() []string {
	var out []string
	for _, e := range r.all() {
		words := []string{e.Kind.String() + "/" + e.Op}
		for _, class := range []error{hasp.ErrHeld, hasp.ErrLost, hasp.ErrClosed, hasp.ErrUnavailable, hasp.ErrInvalid} {
			if errors.Is(e.Err, class) {
				words = append(words, class.Error())
			}
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

func TestEventsOfEveryLifeOfALease(t *testing.T) {
	t.Parallel()
	lives := map[string]struct {
		live func(w *world, c *hasp.Client, d *wire)
		want []string
	}{
		"held and released": {
			func(w *world, c *hasp.Client, _ *wire) { wantError(w.t, w.lock(c, "k").Release(w.ctx)) },
			[]string{"acquired/acquire", "released/release"},
		},
		"renewed": {
			func(w *world, c *hasp.Client, _ *wire) {
				l := w.lock(c, "k")
				time.Sleep(ttl - 100*time.Millisecond)
				wantError(w.t, l.Release(w.ctx))
			},
			[]string{"acquired/acquire", "renewed/renew", "renewed/renew", "released/release"},
		},
		"a renewal failed": {
			func(w *world, c *hasp.Client, d *wire) {
				l := w.lock(c, "k")
				d.nth(renew, 1, lostRequest)
				time.Sleep(ttl / 2)
				wantError(w.t, l.Release(w.ctx))
			},
			[]string{"acquired/acquire", "renew_failed/renew store unavailable", "renewed/renew", "released/release"},
		},
		"lost": {
			func(w *world, c *hasp.Client, _ *wire) {
				l := w.lock(c, "k")
				w.store.Drop("k")
				<-l.Done()
				wantError(w.t, l.Release(w.ctx), hasp.ErrLost)
			},
			[]string{"acquired/acquire", "lost/hold lease lost"},
		},
		"lost without an answer": {
			func(w *world, c *hasp.Client, d *wire) {
				l := w.lock(c.With(hasp.LockOptions{TTL: 100 * time.Millisecond, NoRenew: true}), "k")
				d.every(swallowed)
				<-l.Done()
			},
			[]string{"acquired/acquire", "lost/hold lease lost"},
		},
		"found lost by its release": {
			func(w *world, c *hasp.Client, _ *wire) {
				l := w.lock(c, "k")
				w.store.Drop("k")
				wantError(w.t, l.Release(w.ctx), hasp.ErrLost)
			},
			[]string{"acquired/acquire", "released/release lease lost"},
		},
		"released without an answer": {
			func(w *world, c *hasp.Client, d *wire) {
				l := w.lock(c, "k")
				d.every(lostRequest, leave)
				wantError(w.t, l.Release(w.ctx), hasp.ErrUnavailable)
				d.mend()
			},
			[]string{"acquired/acquire", "released/release store unavailable"},
		},
		"kept": {
			func(w *world, c *hasp.Client, _ *wire) {
				l := w.lock(c, "k")
				wantError(w.t, l.Keep(w.ctx, time.Second))
				wantError(w.t, l.Release(w.ctx))
			},
			[]string{"acquired/acquire", "ended/keep"},
		},
		"detached and resumed": {
			func(w *world, c *hasp.Client, _ *wire) {
				_, ticket := w.detach(c, time.Minute, "k")
				l, err := c.Resume(w.ctx, ticket)
				wantError(w.t, err)
				wantError(w.t, l.Release(w.ctx))
			},
			[]string{"acquired/acquire", "ended/detach", "acquired/resume", "released/release"},
		},
		"refused": {
			func(w *world, c *hasp.Client, _ *wire) {
				l := w.lock(w.client("other"), "k")
				_, err := c.Mutex("k").TryLock(w.ctx)
				wantError(w.t, err, hasp.ErrHeld)
				_, err = c.Mutex("").TryLock(w.ctx)
				wantError(w.t, err, hasp.ErrInvalid)
				wantError(w.t, l.Release(w.ctx))
			},
			[]string{"refused/acquire held", "refused/acquire invalid"},
		},
		"Do": {
			func(w *world, c *hasp.Client, _ *wire) {
				_ = c.Mutex("k").Do(w.ctx, func(context.Context) error { return io.EOF })
			},
			[]string{"acquired/acquire", "released/release"},
		},
		"revoked": {
			func(w *world, c *hasp.Client, _ *wire) {
				l := w.lock(c, "k")
				wantError(w.t, c.Revoke(w.ctx, "k", 0))
				<-l.Done()
				wantError(w.t, l.Release(w.ctx), hasp.ErrLost)
			},
			[]string{"acquired/acquire", "lost/hold lease lost"},
		},
		"closed while held": {
			func(w *world, c *hasp.Client, _ *wire) {
				w.lock(c, "k")
				ctx, cancel := context.WithCancel(w.ctx)
				cancel()
				if c.Close(ctx) == nil {
					w.t.Error("no error")
				}
			},
			[]string{"acquired/acquire", "closed/close"},
		},
	}
	for name, l := range lives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				r := &recorder{}
				line := newWire(w.store.Driver())
				c := w.clientWith(line, hasp.Options{Observe: r.observe})
				l.live(w, c, line)
				synctest.Wait()
				if got := r.life(); !slices.Equal(got, l.want) {
					t.Errorf("events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(l.want, "\n"))
				}
			})
		})
	}
}

func TestAnEventSaysWhatAndHowLong(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		r := &recorder{}
		c := w.clientWith(w.store.Driver(), hasp.Options{Prefix: "app:", Observe: r.observe, Lock: hasp.LockOptions{Label: "orders"}})
		other := w.lock(w.client("other"), "app:k")
		a := w.waiting(c, "k")
		time.Sleep(time.Second)
		wantError(t, other.Release(w.ctx))
		l := w.held(a)
		time.Sleep(500 * time.Millisecond)
		wantError(t, l.Release(w.ctx))
		events := slices.DeleteFunc(r.all(), func(e hasp.Event) bool { return e.Kind == hasp.EventRenewed })
		if len(events) != 2 {
			t.Fatalf("%d events", len(events))
		}
		for i, took := range []time.Duration{time.Second, 500 * time.Millisecond} {
			if e := events[i]; !slices.Equal(e.Keys, []string{"k"}) || e.Label != "orders" || e.Token != l.Token() || e.Took != took || e.Err != nil {
				t.Errorf("%+v, want it to have taken %s", e, took)
			}
		}
	})
}

func TestAnObserverThatBlocksDelaysNeitherRenewalsNorTheNewsOfALoss(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		release := make(chan struct{})
		c := w.clientWith(w.store.Driver(), hasp.Options{Observe: func(_ context.Context, e hasp.Event) {
			if e.Kind == hasp.EventRenewed {
				<-release
			}
		}})
		l, l2 := w.lock(c, "k"), w.lock(c, "k2")
		time.Sleep(10 * ttl)
		if rest := w.rest("k"); rest < ttl/3 {
			t.Errorf("rest %s", rest)
		}
		w.store.Drop("k")
		began := time.Now()
		<-l.Done()
		within(t, "the news", time.Since(began), ttl/3)
		began = time.Now()
		wantError(t, l2.Release(w.ctx)) // nor a caller
		_, err := c.Mutex("k").TryLock(w.ctx)
		wantError(t, err)
		within(t, "the calls", time.Since(began), 0)
		close(release)
	})
}

func TestEventsComeOneAtATimeAndInOrder(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var mu sync.Mutex
		order := map[string]string{}
		busy := false
		line := newWire(w.store.Driver())
		c := w.clientWith(line, hasp.Options{
			Lock: hasp.LockOptions{TTL: 100 * time.Millisecond},
			Observe: func(_ context.Context, e hasp.Event) {
				if e.Kind == hasp.EventClosed {
					return
				}
				mu.Lock()
				if busy {
					t.Error("two at once")
				}
				busy = true
				order[e.Keys[0]] += e.Kind.String() + " "
				mu.Unlock()
				time.Sleep(time.Millisecond)
				mu.Lock()
				busy = false
				mu.Unlock()
			},
		})
		wantError(t, c.Ping(w.ctx))
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				wantError(t, c.Mutex(key(i)).Do(w.ctx, func(context.Context) error {
					time.Sleep(time.Duration(i) * 10 * time.Millisecond)
					return nil
				}))
			})
		}
		wg.Wait()
		time.Sleep(time.Minute)
		for k, events := range order {
			if !strings.HasPrefix(events, "acquired ") || !strings.HasSuffix(events, " released ") || strings.Count(events, "acquired")+strings.Count(events, "released") != 2 {
				t.Errorf("%s: %s", k, events)
			}
		}
		if len(order) != 20 {
			t.Errorf("events of %d keys", len(order))
		}
	})
}

func TestSR4_ALeaseEndsOnceHoweverManyEndIt(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		for range rounds(1000) {
			r := &recorder{}
			c := w.clientWith(w.store.Driver(), hasp.Options{Observe: r.observe})
			l := w.lock(c, "k")
			var wg sync.WaitGroup
			wg.Go(func() { _ = l.Release(w.ctx) })
			wg.Go(func() { _ = l.Keep(w.ctx, time.Millisecond) })
			wg.Go(func() { _ = c.ForceRelease(w.ctx, "k", l.Token()) })
			wg.Go(func() { _ = c.Close(w.ctx) })
			wg.Go(func() { _ = l.Extend(w.ctx, ttl) })
			wg.Wait()
			synctest.Wait()
			if n := r.count(hasp.EventReleased) + r.count(hasp.EventLost) + r.count(hasp.EventEnded); n != 1 {
				t.Fatalf("events %q", r.kinds())
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
}

func TestAnObserverMayCallTheClient(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var c *hasp.Client
		again := make(chan *hasp.Lease, 1)
		c = w.clientWith(w.store.Driver(), hasp.Options{Observe: func(ctx context.Context, e hasp.Event) {
			if e.Kind == hasp.EventLost {
				l, err := c.Mutex("k").Lock(context.WithoutCancel(ctx))
				if err != nil {
					t.Error(err)
				}
				again <- l
			}
		}})
		w.lock(c, "k")
		w.store.Drop("k")
		wantError(t, (<-again).Release(w.ctx))
	})
}

func TestAnObserverThatPanicsEndsTheCallAndNothingElse(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var r recorder
		c := w.clientWith(w.store.Driver(), hasp.Options{Observe: func(ctx context.Context, e hasp.Event) {
			r.observe(ctx, e)
			if e.Kind == hasp.EventRefused {
				panic("observer")
			}
		}})
		func() {
			defer func() {
				if got := recover(); got != "observer" {
					t.Errorf("recovered %v", got)
				}
			}()
			_, _ = c.Mutex("").Lock(w.ctx)
		}()
		wantError(t, w.lock(c, "k").Release(w.ctx))
		synctest.Wait()
		if got, want := r.kinds(), "refused acquired released "; got != want {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

func TestEveryKindHasItsOwnWord(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for k := hasp.EventAcquired; k <= hasp.EventClosed; k++ {
		seen[k.String()] = true
	}
	want := []string{"acquired", "refused", "released", "lost", "renewed", "renew_failed", "ended", "closed"}
	for _, word := range want {
		if !seen[word] {
			t.Errorf("no kind is called %q", word)
		}
	}
	if len(seen) != len(want) || hasp.EventKind(99).String() != "event(99)" {
		t.Errorf("kinds %v, %s", seen, fmt.Sprint(hasp.EventKind(99)))
	}
}
