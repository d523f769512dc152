package elect_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/elect"
)

// calls notes the callbacks of a contender, and whether two ran at once.
type calls struct {
	mu      sync.Mutex
	names   []string
	running int
	clash   bool
}

// note runs f as the callback called name.
func (c *calls) note(name string, f func(context.Context)) func(context.Context) {
	return func(ctx context.Context) {
		c.mu.Lock()
		c.names = append(c.names, name)
		c.running++
		c.clash = c.clash || c.running > 1
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.running--
		}()
		if f != nil {
			f(ctx)
		}
	}
}

// wants compares the callbacks so far.
func (c *calls) wants(t *testing.T, want ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.names, want) || c.clash {
		t.Errorf("callbacks %q, at once: %t; want %q, never at once", c.names, c.clash, want)
	}
}

func (w *world) contender(c *calls, opts *elect.Options) *elect.Contender {
	client, _ := w.client("a")
	return &elect.Contender{
		Client: client, Name: "e", Options: opts,
		OnAcquired: c.note("acquired", nil), OnReleased: c.note("released", nil),
	}
}

func TestAContenderStartsStopsAndStartsAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var c calls
		k := w.contender(&c, nil)
		if k.State() != elect.Initial {
			t.Errorf("state %s before Start", k.State())
		}
		for range 3 {
			wantClass(t, k.Start(w.ctx))
			synctest.Wait()
			if k.State() != elect.Running || !k.Elector().IsLeader() {
				t.Errorf("state %s, leads: %t", k.State(), k.Elector().IsLeader())
			}
			wantClass(t, k.Stop(w.ctx))
			if k.State() != elect.Initial {
				t.Errorf("state %s after Stop", k.State())
			}
			w.wants("0+0")
		}
		c.wants(t, "acquired", "released", "acquired", "released", "acquired", "released")
	})
}

func TestAContenderReleasesOnceForEachTerm(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var c calls
		k := w.contender(&c, nil)
		k.OnAcquired = c.note("acquired", func(context.Context) { time.Sleep(ttl) }) // longer than the term
		wantClass(t, k.Start(w.ctx))
		synctest.Wait()
		w.store.Drop("e") // lost while it is being acquired
		time.Sleep(2 * ttl)
		c.wants(t, "acquired", "released", "acquired")
		_ = k.Elector().Resign(w.ctx)
		synctest.Wait()
		c.wants(t, "acquired", "released", "acquired", "released", "acquired")
		wantClass(t, k.Stop(w.ctx))
		c.wants(t, "acquired", "released", "acquired", "released", "acquired", "released")
	})
}

func TestAContenderKeepsLeadershipUntilReleasedReturned(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var c calls
		k := w.contender(&c, nil)
		k.OnReleased = c.note("released", func(ctx context.Context) {
			if ctx.Err() == nil {
				t.Error("the context has not ended")
			}
			time.Sleep(3 * ttl)
		})
		wantClass(t, k.Start(w.ctx))
		synctest.Wait()
		b := w.node("b", elect.Stay, nil)
		stopped := make(chan error, 1)
		go func() { stopped <- k.Stop(w.ctx) }()
		time.Sleep(3*ttl - time.Millisecond)
		if k.State() != elect.Stopping || b.IsLeader() {
			t.Errorf("state %s, the next leads: %t; want stopping and not yet", k.State(), b.IsLeader())
		}
		wantClass(t, k.Start(w.ctx), hasp.ErrInvalid)
		wantClass(t, <-stopped)
		synctest.Wait()
		if !b.IsLeader() {
			t.Error("the next does not lead")
		}
		_ = b.end()
	})
}

func TestAContenderInTheWrongStateSaysSo(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var c calls
		k := w.contender(&c, nil)
		wantClass(t, k.Stop(w.ctx), hasp.ErrInvalid)
		wantOp(t, k.Stop(w.ctx), "stop")
		wantClass(t, k.Start(w.ctx))
		wantClass(t, k.Start(w.ctx), hasp.ErrInvalid)
		wantOp(t, k.Start(w.ctx), "start")
		wantClass(t, k.Stop(w.ctx))
		wantClass(t, k.Stop(w.ctx), hasp.ErrInvalid)
		for _, bad := range []*elect.Contender{
			{Name: "e", OnAcquired: k.OnAcquired},
			{Client: k.Client, OnAcquired: k.OnAcquired},
			{Client: k.Client, Name: "e"},
			{Client: k.Client, Name: "e", OnAcquired: k.OnAcquired, Options: &elect.Options{Drain: -1}},
		} {
			wantClass(t, bad.Start(w.ctx), hasp.ErrInvalid)
			if bad.State() != elect.Initial {
				t.Errorf("state %s after a Start that failed", bad.State())
			}
		}
	})
}

func TestACallbackMayStopItsContender(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var c calls
		k := w.contender(&c, nil)
		k.OnAcquired = c.note("acquired", func(ctx context.Context) { wantClass(t, k.Stop(ctx)) })
		k.OnReleased = c.note("released", func(ctx context.Context) { wantClass(t, k.Stop(ctx)) })
		wantClass(t, k.Start(w.ctx))
		synctest.Wait()
		c.wants(t, "acquired", "released")
		if k.State() != elect.Initial {
			t.Errorf("state %s", k.State())
		}
	})
}

func TestAContenderStopsByItself(t *testing.T) {
	t.Parallel()
	oops := errors.New("oops")
	for name, x := range map[string]struct {
		end  func(w *world, k *elect.Contender, cancel context.CancelFunc)
		want error
	}{
		"its context ends":  {func(_ *world, _ *elect.Contender, cancel context.CancelFunc) { cancel() }, hasp.ErrInvalid},
		"the client closes": {func(w *world, k *elect.Contender, _ context.CancelFunc) { _ = k.Client.Close(w.ctx) }, hasp.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				var c calls
				k := w.contender(&c, nil)
				ctx, cancel := context.WithCancel(w.ctx)
				defer cancel()
				wantClass(t, k.Start(ctx))
				synctest.Wait()
				x.end(w, k, cancel)
				synctest.Wait()
				if k.State() != elect.Initial {
					t.Errorf("state %s", k.State())
				}
				wantClass(t, k.Stop(w.ctx), x.want)
				c.wants(t, "acquired", "released")
			})
		})
	}
	t.Run("a callback panics", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(w *world) {
			var c calls
			k := w.contender(&c, nil)
			k.OnAcquired = c.note("acquired", func(context.Context) { panic(oops) })
			wantClass(t, k.Start(w.ctx))
			synctest.Wait()
			c.wants(t, "acquired", "released")
			wantClass(t, k.Stop(w.ctx), oops)
			w.wants("0+0")
		})
	})
}

func TestStopGivesUpWaitingForACallback(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var c calls
		k := w.contender(&c, &elect.Options{Drain: time.Second})
		hang := make(chan struct{})
		k.OnReleased = c.note("released", func(context.Context) { <-hang })
		wantClass(t, k.Start(w.ctx))
		synctest.Wait()
		short, cancel := context.WithTimeout(w.ctx, time.Millisecond)
		defer cancel()
		wantClass(t, k.Stop(short), context.DeadlineExceeded)
		wantClass(t, k.Stop(w.ctx), elect.ErrOverrun) // by Options.Drain
		wantClass(t, k.Start(w.ctx), hasp.ErrInvalid) // or two callbacks could run at once
		close(hang)
		synctest.Wait()
		if k.State() != elect.Initial {
			t.Errorf("state %s", k.State())
		}
		c.wants(t, "acquired", "released")
	})
}
