package elect_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/elect"
)

func TestLL7_ATermEndsBeforeTheNextBegins(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		d := newDiary()
		a := w.node("a", d.work("a", 10*time.Millisecond), nil)
		for range 5 { // another holder in its place, who gives it back while the work still drains
			other, _ := w.client("other")
			w.store.Drop("e")
			lease, err := other.Mutex("e").Lock(w.ctx)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(ttl/3 + time.Millisecond)
			_ = lease.Release(w.ctx)
			time.Sleep(ttl)
			w.store.Drop("e") // and nobody: it wins again at once
			time.Sleep(ttl)
		}
		_ = a.end()
		d.judge(t)
		if n := len(d.starts()); n != 11 {
			t.Errorf("%d terms, want 11", n)
		}
	})
}

func TestLL8_AnOldRecordIsNotTakenUpAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		d := newDiary()
		a := w.node("a", d.work("a", 0), nil)
		resume := a.way.Stall()
		time.Sleep(3 * ttl) // its record has expired, and stands there as nobody else has come
		resume()
		time.Sleep(ttl)
		if !a.IsLeader() {
			t.Error("it does not lead again")
		}
		_ = a.end()
		d.judge(t) // which wants a larger token
		if n := len(d.starts()); n != 2 {
			t.Errorf("%d terms, want 2", n)
		}
	})
}

func TestASilentStoreEndsTheTermInTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		d := newDiary()
		a, b := w.node("a", d.work("a", 0), nil), w.node("b", d.work("b", 0), nil)
		resume := a.way.Stall()
		defer resume()
		for !b.IsLeader() {
			if time.Sleep(time.Millisecond); a.IsLeader() && b.IsLeader() {
				t.Fatal("two lead")
			}
		}
		if got := d.all(); len(got) != 3 || got[1].who != "a" || got[1].until > ttl {
			t.Errorf("the diary says %+v, want the end of a's term before b's began", got)
		}
		if s := a.Status(); s.State != elect.Following {
			t.Errorf("a is %s, want following", s.State)
		}
		_ = b.end()
		_ = a.end()
	})
}

func TestAnElectionGoesOnWhenTheStoreIsBack(t *testing.T) { // TM-4
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		class error
	}{
		"unreachable": {errors.New("away"), hasp.ErrUnavailable},
		"refusing":    {hasp.ErrRefused, hasp.ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				var log lines
				d := newDiary()
				a := w.node("a", d.work("a", 0), &elect.Options{Logger: log.logger()})
				b := w.node("b", d.work("b", 0), nil)
				w.store.Fail(c.err)
				time.Sleep(time.Minute)
				if a.ended() || b.ended() || a.IsLeader() || b.IsLeader() {
					t.Error("the campaigns ended, or somebody leads without a store")
				}
				if s := a.Status(); s.State != elect.Following || !errors.Is(s.Err, c.class) {
					t.Errorf("status %+v, want following and why not", s)
				}
				if n := log.count("campaign failed"); n < 1 || n > 2 {
					t.Errorf("logged %d times that the campaign fails, want it said once", n)
				}
				w.store.Fail(nil)
				time.Sleep(10 * time.Second)
				if a.IsLeader() == b.IsLeader() {
					t.Errorf("a leads: %t, b leads: %t; want one of them", a.IsLeader(), b.IsLeader())
				}
				if s := a.Status(); s.Err != nil {
					t.Errorf("the status still says %v", s.Err)
				}
				_, _ = a.end(), b.end()
				d.judge(t)
			})
		})
	}
}

func TestTM1_AStoreThatIsNotReadyIsAskedAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		w.store.Fail(hasp.ErrRefused)
		a := w.node("a", elect.Stay, nil)
		time.Sleep(time.Minute)
		wantClass(t, a.Status().Err, hasp.ErrRefused)
		w.store.Fail(nil)
		time.Sleep(3 * time.Second)
		if !a.IsLeader() {
			t.Error("it does not lead when the store has become ready")
		}
		_ = a.end()
	})
}

func TestBH4_ShortOutagesMoveNoLeadership(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		d := newDiary()
		a, b := w.node("a", d.work("a", 0), nil), w.node("b", d.work("b", 0), nil)
		for range 20 {
			resume := w.store.Stall()
			time.Sleep(ttl / 2)
			resume()
			time.Sleep(3 * ttl)
		}
		if got := d.starts(); !slices.Equal(got, []string{"a"}) || !a.IsLeader() {
			t.Errorf("terms of %v, want one of a", got)
		}
		_, _ = b.end(), a.end()
	})
}

func TestGraceLetsTheOldLeaderBeginANewTerm(t *testing.T) { // Simba's transition
	t.Parallel()
	grace := &elect.Options{Grace: 6 * time.Second}
	bubble(t, func(w *world) {
		d := newDiary()
		a := w.node("a", d.work("a", 50*time.Millisecond), grace)
		time.Sleep(ttl/3 + time.Millisecond) // Grace counts from the first renewal
		b := w.node("b", d.work("b", 0), grace)
		resume := a.way.Stall()
		time.Sleep(ttl + 3*time.Second)
		if a.IsLeader() || b.IsLeader() {
			t.Error("somebody leads inside Grace")
		}
		resume()
		time.Sleep(time.Second)
		if got := d.starts(); !slices.Equal(got, []string{"a", "a"}) || !a.IsLeader() {
			t.Errorf("terms of %v, want two of a", got)
		}
		pages := d.all()
		if len(pages) == 3 && (pages[2].token != pages[0].token+1 || pages[2].at < pages[1].at) {
			t.Errorf("the terms are %+v, want the next token of the same place, after the work has returned", pages)
		}
		_, _ = b.end(), a.end()
		d.judge(t)
	})
}

func TestGraceEndsForOthersToo(t *testing.T) {
	t.Parallel()
	grace := &elect.Options{Grace: 6 * time.Second}
	bubble(t, func(w *world) {
		d := newDiary()
		a := w.node("a", d.work("a", 0), grace)
		time.Sleep(ttl/3 + time.Millisecond)
		b := w.node("b", d.work("b", 0), grace)
		resume := a.way.Stall()
		defer resume()
		began := time.Now()
		for !b.IsLeader() {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(began); took < 6*time.Second || took > ttl+7*time.Second {
			t.Errorf("b leads after %s, want TTL and Grace", took)
		}
		_, _ = b.end(), a.end()
	})
}

func TestGraceIsOfNoUseToWorkThatOverruns(t *testing.T) {
	t.Parallel()
	grace := &elect.Options{Grace: 6 * time.Second}
	bubble(t, func(w *world) {
		d := newDiary()
		a := w.node("a", d.work("a", 20*time.Second), grace)
		b := w.node("b", d.work("b", 0), grace)
		resume := a.way.Stall()
		time.Sleep(ttl + time.Second)
		resume()
		time.Sleep(15 * time.Second)
		if got := d.starts(); !slices.Equal(got, []string{"a", "b"}) || !b.IsLeader() {
			t.Errorf("terms of %v, want b to lead while a's work goes on", got)
		}
		_ = b.end()
		_ = a.end()
		d.judge(t)
	})
}

func TestALeaderThatResignedDoesNotTakeUpItsPlaceAgain(t *testing.T) {
	t.Parallel()
	grace := &elect.Options{Grace: 10 * time.Second}
	bubble(t, func(w *world) {
		d := newDiary()
		a := w.node("a", d.work("a", 3*time.Second), grace)
		b := w.node("b", d.work("b", 0), grace)
		go func() { _ = a.Resign(w.ctx) }()
		resume := a.way.Stall() // and the term is lost while the work drains
		time.Sleep(ttl + 500*time.Millisecond)
		resume()
		time.Sleep(time.Second)
		if got := d.starts(); !slices.Equal(got, []string{"a", "b"}) || !b.IsLeader() {
			t.Errorf("terms of %v, want b to follow", got)
		}
		_, _ = b.end(), a.end()
		d.judge(t)
	})
}

func TestWorkThatOverrunsIsReportedAndNotDoubled(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var log lines
		d := newDiary()
		a := w.node("a", d.work("a", time.Minute), &elect.Options{Overrun: time.Second, Logger: log.logger()})
		w.store.Drop("e")
		time.Sleep(ttl)
		if s := a.Status(); !s.Overrun || s.State != elect.Draining || log.count("the work goes on") != 1 {
			t.Errorf("status %+v and log %q, want an overrun reported", s, log.all())
		}
		time.Sleep(30 * time.Second)
		w.wants("0+0") // it does not stand in line meanwhile
		time.Sleep(30 * time.Second)
		if s := a.Status(); s.Overrun || !a.IsLeader() || len(d.starts()) != 2 {
			t.Errorf("status %+v after %d terms, want a second term", s, len(d.starts()))
		}
		a.stop()
		time.Sleep(time.Hour)
		_ = a.end()
		d.judge(t)
	})
}

func TestARevokedLeaderLeavesAndGoesToTheEndOfTheLine(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		d := newDiary()
		a, b := w.node("a", d.work("a", 30*time.Millisecond), nil), w.node("b", d.work("b", 0), nil)
		if err := b.client.Revoke(w.ctx, "e", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		if got := d.starts(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("terms of %v, want a then b", got)
		}
		w.wants("1+1")
		_, _ = a.end(), b.end()
		d.judge(t)
	})
}

func TestAnErrorOfWorkThatWasLostEndsNoCampaign(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var terms atomic.Int64
		a := w.node("a", func(ctx context.Context) error {
			terms.Add(1)
			<-ctx.Done()
			return errors.New("connection reset")
		}, nil)
		w.store.Drop("e")
		time.Sleep(ttl)
		if terms.Load() != 2 || a.ended() {
			t.Errorf("%d terms, Run returned: %t, %v; want a second term", terms.Load(), a.ended(), a.err)
		}
		if err := a.end(); err == nil || err.Error() != "connection reset" {
			t.Errorf("Run returned %v, want what the work returned when it led last", err)
		}
	})
}

// lines is a log that is read by tests.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// Write is for the handler.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) count(what string) int { return strings.Count(l.all(), what) }

func TestTheLogTellsOfTerms(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var log lines
		a := w.node("a", elect.Stay, &elect.Options{Logger: log.logger()})
		synctest.Wait()
		_ = a.end()
		if log.count("term began") != 1 || log.count("term ended") != 1 {
			t.Errorf("the log is %q, want one term", log.all())
		}
	})
}
