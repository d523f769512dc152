package elect_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/elect"
)

func TestRunLeadsWithTheTokenInItsContext(t *testing.T) { // PZ-4
	t.Parallel()
	bubble(t, func(w *world) {
		c, _ := w.client("a")
		var token int64
		err := elect.Run(w.ctx, c, "e", func(ctx context.Context) error {
			lease, _ := hasp.FromContext(ctx, "e")
			token = lease.Token()
			line, err := c.Inspect(ctx, "e")
			if err != nil || len(line.Holders) != 1 || line.Holders[0].Token != token {
				t.Errorf("the store has %+v, %v; want the token %d of the context", line, err, token)
			}
			return nil
		}, nil)
		wantClass(t, err)
		if token == 0 {
			t.Error("the work did not run with a token")
		}
		w.wants("0+0")
	})
}

func TestPN4_WorkThatReturnsGivesUpLeadership(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	for name, c := range map[string]struct {
		lead func(context.Context) error
		want []error
	}{
		"nil":       {func(context.Context) error { return nil }, nil},
		"an error":  {func(context.Context) error { return own }, []error{own}},
		"a panic":   {func(context.Context) error { panic(own) }, []error{own}},
		"no return": {func(context.Context) error { runtime.Goexit(); return nil }, []error{errAny}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				d := newDiary()
				over := make(chan struct{})
				a := w.node("a", func(ctx context.Context) error { <-over; return c.lead(ctx) }, nil)
				next := w.node("b", d.work("b", 0), nil)
				close(over)
				<-a.done
				switch {
				case c.want == nil || !errors.Is(errAny, c.want[0]):
					wantClass(t, a.err, c.want...)
				case a.err == nil:
					t.Error("no error")
				}
				synctest.Wait()
				if !next.IsLeader() {
					t.Error("the next in line does not lead at once")
				}
				_ = next.end()
				w.wants("0+0")
			})
		})
	}
}

// errAny stands for any error.
var errAny = errors.New("any")

func TestAPanicIsReturnedWithItsStack(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, _ := w.client("a")
		err := elect.Run(w.ctx, c, "e", func(context.Context) error { panic("oops") }, nil)
		var p *elect.PanicError
		if !errors.As(err, &p) || p.Value != "oops" || len(p.Stack) == 0 {
			t.Errorf("error %v, want a *PanicError with value and stack", err)
		}
	})
}

func TestAPanicAfterALossIsReturned(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.node("a", func(ctx context.Context) error { <-ctx.Done(); panic("oops") }, nil)
		w.store.Drop("e")
		<-a.done
		if p := (*elect.PanicError)(nil); !errors.As(a.err, &p) {
			t.Errorf("error %v, want a *PanicError", a.err)
		}
		wantClass(t, a.err, hasp.ErrLost)
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a, b := w.node("a", elect.Stay, nil), w.node("b", elect.Stay, nil)
		wantClass(t, b.end(), context.Canceled)
		w.wants("1+0")
		wantClass(t, a.end(), context.Canceled)
		w.wants("0+0")
	})
}

func TestSR1_LeadershipIsKeptWhileTheWorkDrains(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		d := newDiary()
		a, b := w.node("a", d.work("a", 3*ttl), nil), w.node("b", d.work("b", 0), nil)
		a.stop()
		for range 29 {
			time.Sleep(ttl / 10)
			if w.wants("1+1"); b.IsLeader() || a.IsLeader() {
				t.Errorf("a leads: %t, b leads: %t; want neither while a drains", a.IsLeader(), b.IsLeader())
			}
		}
		if s := a.Status(); s.State != elect.Draining || s.Token == 0 {
			t.Errorf("status %+v, want draining", s)
		}
		<-a.done
		synctest.Wait()
		if !b.IsLeader() {
			t.Error("the successor does not lead when the work has returned")
		}
		_ = b.end()
		d.judge(t)
	})
}

func TestSR2_LeadershipIsNotReleasedWhileWorkRuns(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		hang := make(chan struct{})
		a := w.node("a", func(context.Context) error { <-hang; return nil }, &elect.Options{Drain: ttl})
		b := w.node("b", elect.Stay, nil)
		began := time.Now()
		err := a.end()
		wantClass(t, err, elect.ErrOverrun)
		wantOp(t, err, "elect")
		if d := time.Since(began); d != ttl {
			t.Errorf("Run returned after %s, want %s", d, ttl)
		}
		time.Sleep(3 * ttl)
		if b.IsLeader() {
			t.Error("somebody leads while the work runs")
		}
		wantClass(t, a.Run(w.ctx), hasp.ErrInvalid)
		close(hang)
		synctest.Wait()
		if !b.IsLeader() || a.Status().State != elect.Stopped {
			t.Errorf("b leads: %t, a is %s; want a handed over and stopped", b.IsLeader(), a.Status().State)
		}
		_ = b.end()
	})
}

func TestSR2_AProcessThatGivesUpOnItsWorkExpires(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		hang := make(chan struct{})
		a := w.node("a", func(context.Context) error { <-hang; return nil }, &elect.Options{Drain: ttl})
		b := w.node("b", elect.Stay, nil)
		_ = a.end()
		ctx, cancel := context.WithTimeout(w.ctx, time.Millisecond)
		defer cancel()
		if err := a.client.Close(ctx); err == nil {
			t.Error("Close does not say that the work still leads")
		}
		closed := time.Now()
		for !b.IsLeader() {
			time.Sleep(10 * time.Millisecond)
		}
		if d := time.Since(closed); d < ttl/2 || d > ttl+100*time.Millisecond {
			t.Errorf("the next leads %s after the last renewal could be, want what was left of the TTL", d)
		}
		close(hang)
		_ = b.end()
	})
}

func TestSR4_EveryTermEndsOnceHoweverItIsEnded(t *testing.T) {
	t.Parallel()
	for round := range rounds(1000) {
		bubble(t, func(w *world) {
			d := newDiary()
			a := w.node("a", d.work("a", 0), nil)
			go func() { _ = a.Resign(w.ctx) }()
			go w.store.Drop("e")
			if round%2 == 0 {
				go a.stop()
			} else {
				defer a.stop()
			}
			time.Sleep(ttl)
			_ = a.end()
			d.judge(t)
			if starts := d.starts(); len(starts) < 1 || len(starts) > 3 {
				t.Errorf("%d terms, want 1 to 3", len(starts))
			}
		})
	}
}

func TestSR7_RunEndsInTimeWhenTheStoreIsAway(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(w *world){
		"silent":  func(w *world) { w.t.Cleanup(w.store.Stall()) },
		"failing": func(w *world) { w.store.Fail(errors.New("away")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				a, b := w.node("a", elect.Stay, nil), w.node("b", elect.Stay, nil)
				away(w)
				began := time.Now()
				_ = b.end()
				within(t, "the end of a candidate", time.Since(began), 50*time.Millisecond)
				_ = a.end()
				within(t, "the end of the leader", time.Since(began), 5050*time.Millisecond)
			})
		})
	}
}

func TestOnceEndsAfterOneTerm(t *testing.T) {
	t.Parallel()
	once := &elect.Options{Once: true}
	for name, c := range map[string]struct {
		end  func(w *world, n *node)
		op   string
		want []error
	}{
		"lost":     {func(w *world, _ *node) { w.store.Drop("e") }, "hold", []error{hasp.ErrLost, context.Canceled}},
		"resigned": {func(w *world, n *node) { _ = n.Resign(w.ctx) }, "elect", []error{elect.ErrResigned}},
		"closed":   {func(w *world, n *node) { _ = n.client.Close(w.ctx) }, "elect", []error{hasp.ErrClosed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				n := w.node("a", elect.Stay, once)
				c.end(w, n)
				<-n.done
				wantClass(t, n.err, c.want...)
				wantOp(t, n.err, c.op)
			})
		})
	}
}

func TestG11_ClosingTheClientLetsTheWorkDrain(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		d := newDiary()
		a, b := w.node("a", d.work("a", 2*ttl), nil), w.node("b", d.work("b", 0), nil)
		wantClass(t, a.client.Close(w.ctx))
		<-a.done
		wantClass(t, a.err, hasp.ErrClosed)
		synctest.Wait()
		if got := d.starts(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("terms of %v, want a then b", got)
		}
		if err := d.all()[1].cause; !errors.Is(err, hasp.ErrClosed) {
			t.Errorf("cause %v, want ErrClosed", err)
		}
		_ = b.client.Close(w.ctx)
		<-b.done
		wantClass(t, b.err, hasp.ErrClosed)
	})
}

func TestWorkThatWasLostAtItsEndIsSaidToBe(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.node("a", func(context.Context) error { w.store.Drop("e"); return nil }, nil)
		<-a.done
		wantClass(t, a.err, hasp.ErrLost)
		wantOp(t, a.err, "hold")
	})
}

func TestBadInputStartsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, _ := w.client("a")
		closed, _ := w.client("closed")
		_ = closed.Close(w.ctx)
		for name, run := range map[string]func() error{
			"no client":       func() error { return elect.Run(w.ctx, nil, "e", elect.Stay, nil) },
			"empty name":      func() error { return elect.Run(w.ctx, c, "", elect.Stay, nil) },
			"bad name":        func() error { return elect.Run(w.ctx, c, "a\x00", elect.Stay, nil) },
			"no work":         func() error { return elect.Run(w.ctx, c, "e", nil, nil) },
			"negative TTL":    func() error { return elect.Run(w.ctx, c, "e", elect.Stay, &elect.Options{TTL: -1}) },
			"negative grace":  func() error { return elect.Run(w.ctx, c, "e", elect.Stay, &elect.Options{Grace: -1}) },
			"negative drain":  func() error { return elect.Run(w.ctx, c, "e", elect.Stay, &elect.Options{Drain: -1}) },
			"negative report": func() error { return elect.Run(w.ctx, c, "e", elect.Stay, &elect.Options{Overrun: -1}) },
			"short TTL":       func() error { return elect.Run(w.ctx, c, "e", elect.Stay, &elect.Options{TTL: 1}) },
			"long grace":      func() error { return elect.Run(w.ctx, c, "e", elect.Stay, &elect.Options{Grace: 1 << 62}) },
		} {
			err := run()
			if wantClass(t, err, hasp.ErrInvalid); errors.Is(err, hasp.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantClass(t, elect.Run(w.ctx, closed, "e", elect.Stay, nil), hasp.ErrClosed)
		w.wants("0+0")
	})
}

func TestRunTwiceIsInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.node("a", elect.Stay, nil)
		err := a.Run(w.ctx)
		wantClass(t, err, hasp.ErrInvalid)
		wantOp(t, err, "elect")
		if !a.IsLeader() {
			t.Error("the second Run disturbed the first")
		}
		_ = a.end()
		a.run(w) // after its end it may run again
		if !a.IsLeader() {
			t.Error("a candidate does not run again")
		}
		_ = a.end()
	})
}

func TestTheClientsLimitsAreForLocksNotForElections(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, err := hasp.New(w.store.Driver(), &hasp.Options{
			Lock: hasp.LockOptions{TTL: ttl, Wait: hasp.NoWait, MaxHold: ttl, MaxLine: 1, NoRenew: true, Reentrant: true, LocalHandoffs: 63, Sticky: time.Minute},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(w.ctx)
		var terms atomic.Int64
		for range 4 {
			go func() {
				_ = elect.Run(ctx, c, "e", func(ctx context.Context) error { terms.Add(1); return elect.Stay(ctx) }, nil)
			}()
		}
		time.Sleep(10 * ttl)
		if w.wants("1+3"); terms.Load() != 1 {
			t.Errorf("%d terms, want one that lasts", terms.Load())
		}
		stop()
		_ = c.Close(w.ctx)
	})
}

// Observers tell terms apart by their numbers, so two candidates of one process do not hand
// leadership on between themselves.
func TestTheTermsOfOneProcessHaveNumbersOfTheirOwn(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, err := hasp.New(w.store.Driver(), &hasp.Options{Lock: hasp.LockOptions{TTL: ttl, LocalHandoffs: 63, Sticky: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(w.ctx)
		var both [2]*elect.Elector
		for i := range both {
			if both[i], err = elect.New(c, "e", elect.Stay, nil); err != nil {
				t.Fatal(err)
			}
			go func() { _ = both[i].Run(ctx) }()
			synctest.Wait()
		}
		number := int64(0)
		for i := range 6 {
			now := both[i%2]
			if n := now.Status().Token / 64; !now.IsLeader() || n <= number {
				t.Errorf("term %d has number %d after %d", i, n, number)
			} else {
				number = n
			}
			w.wants("1+1")
			wantClass(t, now.Resign(w.ctx))
			synctest.Wait()
		}
		stop()
		_ = c.Close(w.ctx)
	})
}

// A candidate that shared the term it stands in would be a second leader with one token.
func TestACandidateInsideATermOfItsElectionIsInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, err := hasp.New(w.store.Driver(), &hasp.Options{Prefix: "p:", Lock: hasp.LockOptions{Reentrant: true}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close(w.ctx) }()
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		err = elect.Run(ctx, c.Sub("e:"), "f", func(ctx context.Context) error {
			return elect.Run(ctx, c, "e:f", elect.Stay, nil) // the same key
		}, nil)
		wantClass(t, err, hasp.ErrInvalid)
	})
}

// rounds is n, or a tenth of it with -short.
func rounds(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}
