package hasp_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
)

// number is the sequence number of a lease.
func number(l *hasp.Lease) int64 { return l.Token() / 64 }

// gatesShut wants no gate open.
func (w *world) gatesShut(c *hasp.Client) {
	w.t.Helper()
	if open, waiting := hasp.Gates(c); open+waiting > 0 {
		w.t.Errorf("%d gates are open, %d calls wait in them", open, waiting)
	}
}

func TestALeaseGoesOnInItsProcessWithoutTheStore(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		first := w.lock(c, "k")
		second := w.waiting(c, "k")
		third := w.waiting(c.Sub("").With(hasp.LockOptions{Label: "third"}), "k")
		before := line.total()
		wantError(t, first.Release(w.ctx))
		b := w.held(second)
		wantError(t, first.Err(), hasp.ErrReleased)
		wantError(t, first.Release(w.ctx))
		wantError(t, b.Release(w.ctx))
		c3 := w.held(third)
		if b.Token() != first.Token()+1 || c3.Token() != first.Token()+2 {
			t.Errorf("tokens %d, %d, %d; want one more each time", first.Token(), b.Token(), c3.Token())
		}
		if line.total() != before {
			t.Errorf("%d calls for two hand-overs", line.total()-before)
		}
		time.Sleep(3 * ttl) // it is renewed for its new owner
		wantError(t, c3.Err())
		wantError(t, c3.Release(w.ctx))
		w.empty()
		w.gatesShut(c)
	})
}

func TestWhileOthersWaitAReleaseLetsThemGoFirst(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		first := w.lock(c, "k")
		outside := w.waiting(w.client("b"), "k")
		inside := w.waiting(c, "k")
		time.Sleep(1100 * time.Millisecond) // a renewal tells of it
		wantError(t, first.Release(w.ctx))
		o := w.held(outside)
		if inside.ended() || w.line("k").Waiting != 1 {
			t.Errorf("%d wait behind, want the next of the first process", w.line("k").Waiting)
		}
		if line.made(leave) != 0 || line.made(join) != 2 {
			t.Errorf("%d leaves and %d joins, want one step", line.made(leave), line.made(join))
		}
		wantError(t, o.Release(w.ctx))
		i := w.held(inside)
		if i.Token() <= o.Token() || o.Token() <= first.Token() {
			t.Errorf("tokens %d, %d, %d do not rise", first.Token(), o.Token(), i.Token())
		}
		wantError(t, i.Release(w.ctx))
		w.empty()
	})
}

// A grant by signal says nothing of those who came behind, so they are taken to be there.
func TestWhatASignalGrantedGoesToThoseBehindFirst(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a, b, c := w.client("a"), w.client("b"), w.client("c")
		first := w.lock(a, "k")
		own := w.waiting(b, "k")
		inside := w.waiting(b, "k")
		outside := w.waiting(c, "k")
		wantError(t, first.Release(w.ctx))
		wantError(t, w.held(own).Release(w.ctx))
		o := w.held(outside)
		if inside.ended() {
			t.Error("a second one of the process holds, while somebody outside came before")
		}
		wantError(t, o.Release(w.ctx))
		wantError(t, w.held(inside).Release(w.ctx))
		w.empty()
	})
}

func TestLocalHandoffsLetThatManyGoBeforeOthers(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.locks("a", hasp.LockOptions{LocalHandoffs: 2})
		lease := w.lock(c, "k")
		outside := w.waiting(w.client("b"), "k")
		var inside []*attempt
		for range 3 {
			inside = append(inside, w.waiting(c, "k"))
		}
		time.Sleep(1100 * time.Millisecond)
		for i := range 2 {
			wantError(t, lease.Release(w.ctx))
			lease = w.held(inside[i])
		}
		wantError(t, lease.Release(w.ctx))
		o := w.held(outside)
		if inside[2].ended() {
			t.Error("a third one went before the other process")
		}
		wantError(t, o.Release(w.ctx))
		wantError(t, w.held(inside[2]).Release(w.ctx))
	})
}

func TestABlockOfTokensEndsAfter63LocalGrants(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		line := newWire(w.store.Driver())
		c := w.clientWith(line, hasp.Options{Name: "a", Lock: hasp.LockOptions{LocalHandoffs: 63}})
		lease := w.lock(c, "k")
		var inside []*attempt
		for range 70 {
			inside = append(inside, w.waiting(c, "k"))
		}
		before := lease.Token()
		for i, next := range inside {
			wantError(t, lease.Release(w.ctx))
			lease = w.held(next)
			if sameBlock := lease.Token()/64 == before/64; lease.Token() <= before || sameBlock != (i != 63) {
				t.Fatalf("grant %d has token %d after %d", i+1, lease.Token(), before)
			}
			before = lease.Token()
		}
		if line.made(join) != 2 || line.made(leave) != 0 {
			t.Errorf("%d joins and %d leaves, want a second join that leaves", line.made(join), line.made(leave))
		}
		wantError(t, lease.Release(w.ctx))
	})
}

func TestATryOfWhatThisProcessHoldsAsksNobody(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("me")
		lease := w.lock(c, "k")
		before := line.total()
		_, err := c.Mutex("k").TryLock(w.ctx)
		wantError(t, err, hasp.ErrHeld)
		var held *hasp.HeldError
		if !errors.As(err, &held) || held.Holder != "me" || held.ExpiresIn != ttl-margin || held.Waited != 0 {
			t.Errorf("%+v", held)
		}
		if line.total() != before {
			t.Errorf("%d calls", line.total()-before)
		}
		wantError(t, lease.Release(w.ctx))
		again, err := c.Mutex("k").TryLock(w.ctx)
		wantError(t, err)
		wantError(t, again.Release(w.ctx))
		w.gatesShut(c)
	})
}

// rude is a context that panics when it is asked for its end once too often.
type rude struct {
	context.Context

	left int
}

func (r *rude) Done() <-chan struct{} {
	if r.left--; r.left < 0 {
		panic("rude")
	}
	return r.Context.Done()
}

func TestAWaiterThatIsCancelledOrPanicsLeavesNoTrace(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		lease := w.lock(c, "k")
		ctx, cancel := context.WithCancel(w.ctx)
		gone := w.start(func() (*hasp.Lease, error) { return c.Mutex("k").Lock(ctx) })
		panicked := w.start(func() (l *hasp.Lease, err error) {
			defer func() {
				if recover() == nil {
					t.Error("it did not panic")
				}
			}()
			return c.Mutex("k").Lock(&rude{Context: w.ctx})
		})
		<-panicked.done
		short := w.start(func() (*hasp.Lease, error) {
			return c.With(hasp.LockOptions{Wait: 300 * time.Millisecond}).Mutex("k").Lock(w.ctx)
		})
		next := w.waiting(c, "k")
		before := line.total()
		cancel()
		w.refused(gone, hasp.ErrHeld)
		wantError(t, errors.Join(gone.err), hasp.ErrHeld)
		if !errors.Is(gone.err, context.Canceled) {
			t.Errorf("%v does not say that the context ended", gone.err)
		}
		w.refused(short, hasp.ErrHeld)
		var held *hasp.HeldError
		if !errors.As(short.err, &held) || held.Holder != "a" || held.Waited != 300*time.Millisecond {
			t.Errorf("%+v", held)
		}
		if line.total() != before {
			t.Errorf("%d calls for waiters that went", line.total()-before)
		}
		wantError(t, lease.Release(w.ctx))
		wantError(t, w.held(next).Release(w.ctx))
		w.gatesShut(c)
		w.empty()
	})
}

func TestWhoIsCancelledInLineGivesThePlaceToTheNextOfItsProcess(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		holder := w.lock(w.client("b"), "k")
		c := w.client("a")
		ctx, cancel := context.WithCancel(w.ctx)
		head := w.start(func() (*hasp.Lease, error) { return c.Mutex("k").Lock(ctx) })
		next := w.waiting(c, "k")
		outside := w.waiting(w.client("c"), "k")
		cancel()
		w.refused(head, hasp.ErrHeld)
		if n := w.line("k").Waiting; n != 2 {
			t.Errorf("%d wait, want the place kept", n)
		}
		time.Sleep(10 * ttl) // it is renewed
		wantError(t, holder.Release(w.ctx))
		n := w.held(next)
		if outside.ended() {
			t.Error("the place was lost")
		}
		wantError(t, n.Release(w.ctx))
		wantError(t, w.held(outside).Release(w.ctx))
		w.gatesShut(c)
	})
}

func TestWhatLivesOtherwiseGoesAroundTheGate(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]hasp.LockOptions{
		"fixed": {NoRenew: true}, "with another TTL": {TTL: time.Minute}, "with Grace": {Grace: time.Second}, "never handed on": {LocalHandoffs: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				c := w.client("a")
				lease := w.lock(c, "k")
				other := w.waiting(c.With(o), "k")
				if n := w.line("k").Waiting; n != 1 {
					t.Errorf("%d wait in the store, want 1", n)
				}
				wantError(t, lease.Release(w.ctx))
				wantError(t, w.held(other).Release(w.ctx))
			})
		})
	}
}

func TestTheObserverHearsOfAReleaseBeforeTheNextIsAcquired(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var r recorder
		c := w.clientWith(w.store.Driver(), hasp.Options{Name: "a", Observe: r.observe})
		lease := w.lock(c, "k")
		next := w.waiting(c, "k")
		wantError(t, lease.Release(w.ctx))
		wantError(t, w.held(next).Release(w.ctx))
		want := []hasp.EventKind{hasp.EventAcquired, hasp.EventReleased, hasp.EventAcquired, hasp.EventReleased}
		var kinds []hasp.EventKind
		for _, e := range r.all() {
			kinds = append(kinds, e.Kind)
		}
		if !slices.Equal(kinds, want) {
			t.Errorf("%v", kinds)
		}
	})
}

func TestAWriterGoesOnToTheNextWriterOfItsProcess(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		m := c.RWMutex("k")
		lease, err := m.Lock(w.ctx)
		wantError(t, err)
		next := w.start(func() (*hasp.Lease, error) { return m.Lock(w.ctx) })
		wantError(t, lease.Release(w.ctx))
		n := w.held(next)
		if n.Token() != lease.Token()+1 || n.Shared() {
			t.Errorf("token %d after %d", n.Token(), lease.Token())
		}
		read := w.start(func() (*hasp.Lease, error) { return m.RLock(w.ctx) })
		wantError(t, n.Release(w.ctx))
		wantError(t, w.held(read).Release(w.ctx))
	})
}
