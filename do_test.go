package hasp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
)

func TestDoRunsOnceAndReleasesBeforeItReturns(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		ran := 0
		var inner *hasp.Lease
		err := c.Mutex("k").Do(w.ctx, func(ctx context.Context) error {
			ran++
			l, ok := hasp.FromContext(ctx, "k")
			if !ok || l.Err() != nil {
				t.Errorf("lease %v", l)
			}
			inner = l
			if got := w.line("k").Holders; len(got) != 1 || got[0].Token != l.Token() {
				t.Errorf("holders %+v", got)
			}
			return nil
		})
		wantError(t, err)
		if ran != 1 {
			t.Errorf("ran %d times", ran)
		}
		wantError(t, inner.Err(), hasp.ErrReleased)
		w.empty()
	})
}

func TestDoGivesFnsOwnErrorBackAsItIs(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		err := w.client("a").Mutex("k").Do(w.ctx, func(context.Context) error { return io.EOF })
		if err != io.EOF { //nolint:errorlint // the very value
			t.Errorf("error %v, want io.EOF itself", err)
		}
		w.empty()
	})
}

func TestKT7_DoDoesNotRunWhereItHasNoLease(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		fn := func(context.Context) error { t.Error("fn ran"); return nil }
		ended, cancel := context.WithCancel(w.ctx)
		cancel()
		holder := w.lock(w.client("holder"), "held")
		for name, err := range map[string]error{
			"held":           c.Mutex("held").TryDo(w.ctx, fn),
			"wait over":      c.With(hasp.LockOptions{Wait: time.Second}).Mutex("held").Do(w.ctx, fn),
			"context over":   c.Mutex("held").Do(ended, fn),
			"read":           c.RWMutex("held").TryRDo(w.ctx, fn),
			"write":          c.RWMutex("held").TryDo(w.ctx, fn),
			"permit":         c.Semaphore("held", 2).TryDo(w.ctx, 1, fn),
			"permits of few": c.Semaphore("held", 2).Do(w.ctx, 3, fn),
		} {
			if err == nil {
				t.Errorf("%s: no error", name)
			}
			wantOp(t, err, "acquire", "held")
		}
		wantError(t, holder.Release(w.ctx))
		w.store.Fail(io.ErrUnexpectedEOF)
		wantError(t, c.Mutex("k").Do(w.ctx, fn), hasp.ErrUnavailable)
		w.store.Fail(nil)
		wantError(t, c.Close(w.ctx))
		wantError(t, c.Mutex("k").Do(w.ctx, fn), hasp.ErrClosed)
	})
}

func TestDoTellsALossWhateverFnReturned(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		own := errors.New("own")
		for _, mine := range []error{nil, own} {
			returned := false
			err := c.Mutex("k").Do(w.ctx, func(ctx context.Context) error {
				w.store.Drop("k")
				<-ctx.Done()
				wantError(t, context.Cause(ctx), hasp.ErrLost)
				time.Sleep(time.Minute) // Do waits for fn also after the loss
				returned = true
				return mine
			})
			if !returned {
				t.Error("Do returned before fn")
			}
			wantError(t, err, hasp.ErrLost)
			wantOp(t, err, "hold", "k")
			if mine != nil && !errors.Is(err, mine) {
				t.Errorf("error %v does not have fn's own", err)
			}
			if e := (*hasp.Error)(nil); mine == nil && (!errors.As(err, &e) || error(e) != err) { //nolint:errorlint // the outermost
				t.Errorf("the outermost error is %T", err)
			}
		}
	})
}

func TestDoTellsALossThatOnlyTheReleaseFinds(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		err := w.client("a").Mutex("k").Do(w.ctx, func(context.Context) error {
			w.store.Wipe()
			return nil
		})
		wantError(t, err, hasp.ErrLost)
		wantOp(t, err, "hold", "k")
	})
}

func TestPN2_FnsErrorComesFirstAndTheReleasesIsThereToo(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		own := errors.New("own error")
		d := w.store.Driver()
		c := w.clientWith(d, hasp.Options{Lock: hasp.LockOptions{TTL: time.Minute}})
		err := c.Mutex("k").Do(w.ctx, func(context.Context) error {
			d.Fail(io.ErrUnexpectedEOF)
			return own
		})
		d.Fail(nil)
		if !errors.Is(err, own) || !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(err.Error(), "own error") {
			t.Errorf("error %v", err)
		}
		wantError(t, err, hasp.ErrUnavailable)
		wantOp(t, err, "release", "k")
	})
}

func TestDoIsNilWhereOnlyTheReleaseFailedAndTellsObserverAndLog(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		r := &recorder{}
		var log strings.Builder
		d := w.store.Driver()
		c := w.clientWith(d, hasp.Options{
			Lock: hasp.LockOptions{TTL: time.Minute}, Observe: r.observe,
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		err := c.Mutex("k").Do(w.ctx, func(context.Context) error {
			d.Fail(io.ErrUnexpectedEOF)
			return nil
		})
		synctest.Wait()
		d.Fail(nil)
		wantError(t, err)
		events := r.all()
		last := events[len(events)-1]
		if last.Kind != hasp.EventReleased || !errors.Is(last.Err, hasp.ErrUnavailable) {
			t.Errorf("last event %+v", last)
		}
		if !strings.Contains(log.String(), "lease released") || !strings.Contains(log.String(), "unexpected EOF") {
			t.Errorf("log %q", log.String())
		}
	})
}

func TestPN1_APanicReleasesAtOnceAndGoesOn(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		type value struct{ n int }
		want := &value{7}
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("recovered %v, want the very value", got)
				}
			}()
			_ = c.Mutex("k").Do(w.ctx, func(context.Context) error { panic(want) })
		}()
		w.empty()
		time.Sleep(5 * ttl)
		if n := line.made(renew); n != 0 {
			t.Errorf("%d renewals", n)
		}
	})
}

func TestPN1_GoexitReleasesAtOnceAndGoesOn(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		after := false
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.Mutex("k").Do(w.ctx, func(context.Context) error {
				runtime.Goexit()
				return nil
			})
			after = true
		}()
		<-done
		if after {
			t.Error("Do went on after Goexit")
		}
		w.empty()
	})
}

func TestPN1_APanicOnADeadStoreStillGoesOn(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		wantError(t, c.Ping(w.ctx))
		began := time.Now()
		func() {
			defer func() {
				if got := recover(); got != "boom" {
					t.Errorf("recovered %v", got)
				}
			}()
			_ = c.Mutex("k").Do(w.ctx, func(context.Context) error {
				w.store.Stall()
				panic("boom")
			})
		}()
		within(t, "the panic", time.Since(began), 5*time.Second)
	})
}

func TestDoLeavesALeaseAloneThatFnHasEnded(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		own := func(end func(ctx context.Context, l *hasp.Lease) error) error {
			return c.Mutex("k").Do(w.ctx, func(ctx context.Context) error {
				l, _ := hasp.FromContext(ctx, "k")
				return end(ctx, l)
			})
		}
		wantError(t, own(func(ctx context.Context, l *hasp.Lease) error { return l.Release(ctx) }))
		wantError(t, own(func(ctx context.Context, l *hasp.Lease) error { return l.Keep(ctx, time.Minute) }))
		if rest := w.rest("k"); rest != time.Minute {
			t.Errorf("rest %s, want what was kept", rest)
		}
	})
}

func TestDoEndsItsContextWhenItReturns(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		kept := make(chan context.Context, 1)
		wantError(t, w.client("a").Mutex("k").Do(w.ctx, func(ctx context.Context) error {
			kept <- ctx
			return ctx.Err()
		}))
		wantError(t, context.Cause(<-kept), hasp.ErrReleased)
	})
}

func TestDoOfEveryKindOfLock(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		ran := 0
		fn := func(ctx context.Context) error {
			if _, ok := hasp.FromContext(ctx, "k"); ok {
				ran++
			}
			return nil
		}
		rw, sem := c.RWMutex("k"), c.Semaphore("k", 5)
		for _, err := range []error{
			c.Mutex("k").Do(w.ctx, fn), c.Mutex("k").TryDo(w.ctx, fn), c.Mutex("k", "k2").Do(w.ctx, fn),
			rw.Do(w.ctx, fn), rw.TryDo(w.ctx, fn), rw.RDo(w.ctx, fn), rw.TryRDo(w.ctx, fn),
			sem.Do(w.ctx, 3, fn), sem.TryDo(w.ctx, 5, fn),
		} {
			wantError(t, err)
		}
		if ran != 9 {
			t.Errorf("%d ran with a lease", ran)
		}
		w.empty()
	})
}

func TestWrapLocksWhatTheArgumentNames(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		r := &recorder{}
		c := w.clientWith(w.store.Driver(), hasp.Options{Name: "a", Observe: r.observe})
		calls := 0
		square := hasp.Wrap(c, func(n int) (string, error) {
			if n < 0 {
				return "", fmt.Errorf("%d is negative", n)
			}
			return key(n), nil
		}, func(ctx context.Context, n int) (int, error) {
			calls++
			if _, ok := hasp.FromContext(ctx, key(n)); !ok {
				t.Error("no lease")
			}
			if n == 13 {
				return 1, io.EOF
			}
			return n * n, nil
		})
		got, err := square(w.ctx, 7)
		wantError(t, err)
		if got != 49 {
			t.Errorf("got %d", got)
		}
		if _, err = square(w.ctx, 13); err != io.EOF { //nolint:errorlint // the very value
			t.Errorf("error %v", err)
		}
		if _, err = square(w.ctx, -1); err == nil || !strings.Contains(err.Error(), "-1 is negative") {
			t.Errorf("error %v", err)
		}
		wantError(t, err, hasp.ErrInvalid)
		wantOp(t, err, "acquire", "")
		if n := r.count(hasp.EventRefused); n != 1 {
			t.Errorf("%d calls were told as refused, want that without a key", n)
		}
		holder := w.lock(w.client("b"), key(3))
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		_, err = square(ctx, 3)
		wantError(t, err, hasp.ErrHeld)
		if calls != 2 {
			t.Errorf("next ran %d times", calls)
		}
		wantError(t, holder.Release(w.ctx))
		synctest.Wait()
		w.empty()
	})
}

func TestWrapTellsALoss(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		f := hasp.Wrap(w.client("a"), func(string) (string, error) { return "k", nil },
			func(ctx context.Context, _ string) (string, error) {
				w.store.Drop("k")
				<-ctx.Done()
				return "done", nil
			})
		out, err := f(w.ctx, "")
		wantError(t, err, hasp.ErrLost)
		if out != "done" {
			t.Errorf("out %q", out)
		}
	})
}
