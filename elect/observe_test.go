package elect_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/elect"
)

// sight is one thing an observer was told.
type sight struct {
	elect.Leader
	err error
}

// observer is a loop that notes what it is told.
type observer struct {
	told []sight
	end  context.CancelFunc
	done chan struct{}
}

// observe starts a loop and lets it come to rest.
func (w *world) observe(c *hasp.Client) *observer {
	ctx, cancel := context.WithCancel(w.ctx)
	o := &observer{end: cancel, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		for leader, err := range elect.Observe(ctx, c, "e") {
			o.told = append(o.told, sight{leader, err})
		}
	}()
	synctest.Wait()
	return o
}

// names ends the loop and answers whom it was told of; "" is nobody, "!" an error.
func (o *observer) names() []string {
	synctest.Wait()
	o.end()
	<-o.done
	var names []string
	for _, s := range o.told {
		if s.err != nil {
			s.Name = "!"
		}
		names = append(names, s.Name)
	}
	return names
}

func TestObserveTellsEachLeaderInOrder(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		eye, _ := w.client("eye")
		o := w.observe(eye)
		a := w.node("a", elect.Stay, nil)
		time.Sleep(20 * time.Millisecond)
		b := w.node("b", elect.Stay, nil) // a candidate is no change
		time.Sleep(20 * time.Millisecond)
		resignedAt := time.Now()
		_ = a.Resign(w.ctx)
		time.Sleep(20 * time.Millisecond)
		_ = b.Resign(w.ctx)
		time.Sleep(20 * time.Millisecond)
		_, _ = b.end(), a.end()
		time.Sleep(20 * time.Millisecond)
		if got := o.names(); !slices.Equal(got, []string{"", "a", "b", "a", ""}) {
			t.Errorf("told of %q, want nobody, a, b, a, nobody", got)
		}
		if !o.told[0].Nobody() || o.told[1].Nobody() {
			t.Error("nobody is not told from somebody")
		}
		if o.told[2].Token <= o.told[1].Token || o.told[2].Since.Before(resignedAt) || o.told[2].ExpiresIn <= 0 {
			t.Errorf("told of %+v, want token, time and expiry of the term", o.told[2])
		}
	})
}

func TestObserveTellsANewTermOfTheSameProcess(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		eye, _ := w.client("eye")
		a := w.node("a", elect.Stay, nil)
		o := w.observe(eye)
		_ = a.Resign(w.ctx)
		time.Sleep(20 * time.Millisecond)
		_ = a.end()
		if got := o.names(); len(got) < 2 || got[0] != "a" || got[1] != "a" || o.told[1].Token <= o.told[0].Token {
			t.Errorf("told of %+v, want two terms of a", o.told)
		}
	})
}

func TestObserveTellsAnOutageOnceAndThenWhoLeads(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		eye, way := w.client("eye")
		a := w.node("a", elect.Stay, nil)
		o := w.observe(eye)
		way.Fail(errors.New("away"))
		time.Sleep(time.Minute)
		way.Fail(nil)
		time.Sleep(10 * time.Second)
		got := o.names()
		if !slices.Equal(got, []string{"a", "!", "a"}) {
			t.Fatalf("told %q, want a, an error, a", got)
		}
		wantClass(t, o.told[1].err, hasp.ErrUnavailable)
		wantOp(t, o.told[1].err, "observe")
		if o.told[2].Since != o.told[0].Since {
			t.Error("the same term has another beginning after an outage")
		}
		_ = a.end()
	})
}

func TestObserveNeverTellsAnOlderTermAfterANewer(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		backup := memlease.NewStore() // made first, so its numbers are smaller
		old, err := hasp.New(backup.Driver(), &hasp.Options{Name: "old"})
		if err != nil {
			t.Fatal(err)
		}
		lease, err := old.Mutex("e").Lock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		a := w.node("a", elect.Stay, nil)
		d := &switched{memory: w.store.Driver(), other: backup.Driver()}
		o := w.observe(w.clientOn("eye", d))
		d.switchOver(true)
		time.Sleep(5 * time.Second)
		d.switchOver(false)
		time.Sleep(5 * time.Second)
		got := o.names()
		if !slices.Equal(got, []string{"a", "!", "a"}) {
			t.Fatalf("told %q, want a, an error, a", got)
		}
		wantClass(t, o.told[1].err, hasp.ErrRefused)
		_ = a.end()
		_ = lease.Release(w.ctx)
		_ = old.Close(w.ctx)
	})
}

func TestObserveEndsWhereItCannotGoOn(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, _ := w.client("eye")
		for name, seq := range map[string]iter.Seq2[elect.Leader, error]{
			"no client": elect.Observe(w.ctx, nil, "e"),
			"no name":   elect.Observe(w.ctx, c, ""),
		} {
			n := 0
			for _, err := range seq {
				n++
				wantClass(t, err, hasp.ErrInvalid)
			}
			if n != 1 {
				t.Errorf("%s: told %d times, want one error", name, n)
			}
		}
		o := w.observe(c)
		_ = c.Close(w.ctx)
		if got := o.names(); !slices.Equal(got, []string{"", "!"}) {
			t.Errorf("told %q, want nobody and the end of the client", got)
		}
		wantClass(t, o.told[1].err, hasp.ErrClosed)
	})
}

func TestASlowObserverHoldsNoElectorUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		eye, _ := w.client("eye")
		next, stop := iter.Pull2(elect.Observe(w.ctx, eye, "e"))
		defer stop()
		if _, err, _ := next(); err != nil {
			t.Fatal(err)
		}
		nodes := []*node{w.node("a", elect.Stay, nil), w.node("b", elect.Stay, nil)}
		began := time.Now()
		for i := range 100 {
			wantClass(t, nodes[i%2].Resign(w.ctx))
			synctest.Wait()
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("100 hand-overs took %s", took)
		}
		leader, err, _ := next()
		if now, _ := nodes[0].Leader(w.ctx); err != nil || leader.Token != now.Token {
			t.Errorf("the slow observer is told of %+v, %v; want the present leader %+v", leader, err, now)
		}
		_, _ = nodes[1].end(), nodes[0].end()
	})
}

func TestLeaderAnswersWhoLeadsAndSinceWhen(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.node("a", elect.Stay, nil)
		b := w.node("b", elect.Stay, nil)
		began := a.Status().Since
		time.Sleep(time.Second)
		own, err := a.Leader(w.ctx)
		wantClass(t, err)
		first, err := b.Leader(w.ctx)
		wantClass(t, err)
		time.Sleep(time.Second)
		second, err := b.Leader(w.ctx)
		wantClass(t, err)
		if own.Name != "a" || own.Token != a.Status().Token || own.Since != began || own.InLine != time.Second {
			t.Errorf("a says %+v, want itself since the beginning of its term", own)
		}
		if first.Token != own.Token || second.Since != first.Since {
			t.Errorf("b says %+v and then %+v, want one leader, first seen once", first, second)
		}
		_ = a.end()
		_ = b.end()
		none, err := b.Leader(w.ctx)
		if wantClass(t, err); !none.Nobody() {
			t.Errorf("%+v leads, want nobody", none)
		}
		w.store.Fail(hasp.ErrRefused)
		_, err = b.Leader(w.ctx)
		wantClass(t, err, hasp.ErrRefused)
		wantOp(t, err, "leader")
	})
}

func TestResignWithoutATerm(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a, b := w.node("a", elect.Stay, nil), w.node("b", elect.Stay, nil)
		err := b.Resign(w.ctx)
		wantClass(t, err, hasp.ErrNotHeld)
		wantOp(t, err, "resign")
		_, _ = b.end(), a.end()
		wantClass(t, a.Resign(w.ctx), hasp.ErrNotHeld)
	})
}

func TestResignWaitsForTheWorkUnlessTheWorkCallsIt(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, _ := w.client("a")
		var e *elect.Elector
		var inside, outside error
		lead := func(ctx context.Context) error {
			inside = e.Resign(ctx)
			wantClass(t, context.Cause(ctx), elect.ErrResigned, hasp.ErrLost)
			time.Sleep(time.Second)
			return errors.New("unimportant")
		}
		e, err := elect.New(c, "e", lead, &elect.Options{Once: true})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- e.Run(w.ctx) }()
		synctest.Wait()
		short, cancel := context.WithTimeout(w.ctx, 10*time.Millisecond)
		defer cancel()
		wantClass(t, e.Resign(short), context.DeadlineExceeded)
		began := time.Now()
		outside = e.Resign(w.ctx)
		if time.Since(began) < 900*time.Millisecond {
			t.Error("Resign did not wait for the work")
		}
		wantClass(t, inside)
		wantClass(t, outside)
		wantClass(t, <-done, elect.ErrResigned)
	})
}

func TestResignOfALostTermSaysSo(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		d := newDiary()
		a := w.node("a", d.work("a", time.Second), nil)
		w.store.Drop("e")
		wantClass(t, a.Resign(w.ctx), hasp.ErrLost)
		_ = a.end()
	})
}

// switched is a driver whose readings can come from another store: a replica that is
// behind.
type switched struct {
	memory
	other *memlease.Driver
	over  atomic.Bool // the other one is read
}

func (d *switched) switchOver(other bool) { d.over.Store(other) }

// Lines implements driver.Driver.
func (d *switched) Lines(ctx context.Context, q driver.Query) (driver.Page, error) {
	if d.over.Load() {
		return d.other.Lines(ctx, q)
	}
	return d.memory.Lines(ctx, q)
}
