package hasp_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
)

// watched is a loop over a Watch that notes what it is told.
type watched struct {
	told []string
	at   []time.Duration
	end  context.CancelFunc
	done chan struct{}
}

// watch starts a loop on key and lets it come to rest.
func (w *world) watch(c *hasp.Client, key string) *watched {
	ctx, cancel := context.WithCancel(w.ctx)
	seen := &watched{end: cancel, done: make(chan struct{})}
	began := time.Now()
	go func() {
		defer close(seen.done)
		for line, err := range c.Watch(ctx, key) {
			seen.told = append(seen.told, describe(line, err))
			seen.at = append(seen.at, time.Since(began))
		}
	}()
	synctest.Wait()
	return seen
}

func describe(l hasp.Line, err error) string {
	if err != nil {
		for _, class := range []error{hasp.ErrUnavailable, hasp.ErrRefused, hasp.ErrInvalid, hasp.ErrClosed} {
			if errors.Is(err, class) {
				return class.Error()
			}
		}
		return err.Error()
	}
	names := make([]string, len(l.Holders))
	for i, h := range l.Holders {
		names[i] = h.Name
	}
	return fmt.Sprintf("%s+%d", strings.Join(names, ","), l.Waiting)
}

// wants ends the loop and compares what it was told.
func (seen *watched) wants(t *testing.T, want ...string) {
	t.Helper()
	seen.end()
	<-seen.done
	if !slices.Equal(seen.told, want) {
		t.Errorf("told %q at %v, want %q", seen.told, seen.at, want)
	}
}

func TestAWatchTellsWhatIsAndWhatChanges(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a, b := w.client("a"), w.client("b")
		seen := w.watch(w.client("eye"), "k")
		lease := w.lock(a, "k")
		time.Sleep(20 * time.Millisecond)
		next := w.waiting(b, "k")
		time.Sleep(20 * time.Millisecond)
		_ = lease.Release(w.ctx)
		time.Sleep(20 * time.Millisecond)
		_ = w.held(next).Release(w.ctx)
		time.Sleep(20 * time.Millisecond)
		seen.wants(t, "+0", "a+0", "a+1", "b+0", "+0")
	})
}

func TestAWatchSeesAChangeAtOnceBySignal(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		seen := w.watch(w.client("eye"), "k")
		time.Sleep(700 * time.Millisecond)
		w.lock(w.client("a"), "k")
		time.Sleep(watchPause)
		synctest.Wait()
		seen.wants(t, "+0", "a+0")
		if len(seen.at) == 2 && seen.at[1] > 700*time.Millisecond {
			t.Errorf("told at %v, want a change at 700ms, by signal", seen.at)
		}
	})
}

func TestAWatchWithoutSignalsLooksAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		seen := w.watch(w.clientWith(mute{w.store.Driver()}, hasp.Options{}), "k")
		w.lock(w.client("a"), "k")
		time.Sleep(2 * time.Second)
		seen.wants(t, "+0", "a+0")
	})
}

func TestAWatchSeesThatADeadHolderIsGone(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		d := w.store.Driver()
		w.lock(w.clientWith(d, hasp.Options{Name: "a"}), "k")
		seen := w.watch(w.client("eye"), "k")
		d.Stall() // for ever
		time.Sleep(ttl + 50*time.Millisecond)
		seen.wants(t, "a+0", "+0")
	})
}

func TestAWatchTellsAnOutageOnceAndGoesOn(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		d := w.store.Driver()
		seen := w.watch(w.clientWith(d, hasp.Options{}), "k")
		d.Fail(errors.New("away"))
		time.Sleep(30 * time.Second)
		d.Fail(nil)
		time.Sleep(6 * time.Second)
		d.Fail(hasp.ErrRefused)
		time.Sleep(30 * time.Second)
		seen.wants(t, "+0", "store unavailable", "+0", "refused by the store")
	})
}

func TestAWatchEndsWithTheClient(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("eye")
		seen := w.watch(c, "k")
		if err := c.Close(w.ctx); err != nil {
			t.Error(err)
		}
		<-seen.done
		seen.wants(t, "+0", "client closed")
	})
}

func TestAWatchOfNoKeyIsInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		seen := w.watch(w.client("eye"), "")
		<-seen.done
		seen.wants(t, "invalid")
	})
}

func TestASlowWatcherHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.client("a")
		next, stop := iter.Pull2(w.client("eye").Watch(w.ctx, "k"))
		defer stop()
		if _, err, ok := next(); err != nil || !ok {
			t.Fatal(err)
		}
		var last int64
		for range 100 {
			l := w.lock(a, "k")
			last = l.Token()
			_ = l.Release(w.ctx)
		}
		held := w.lock(a, "k")
		line, err, _ := next()
		if err != nil || len(line.Holders) != 1 || line.Holders[0].Token <= last {
			t.Errorf("the slow watcher saw %+v, %v; want the holder of now", line, err)
		}
		_ = held.Release(w.ctx)
	})
}

func TestAWatchOfABusyKeyLooksNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		d := &countedLines{signalling: w.store.Driver()}
		a := w.client("a")
		seen := w.watch(w.clientWith(d, hasp.Options{}), "k")
		for range 1000 {
			l := w.lock(a, "k")
			time.Sleep(time.Millisecond / 2)
			_ = l.Release(w.ctx)
			time.Sleep(time.Millisecond / 2)
		}
		seen.end()
		<-seen.done
		if d.looks < 50 || d.looks > 110 {
			t.Errorf("%d looks in 1 s of 2,000 changes, want about 100", d.looks)
		}
	})
}

func TestErrOfAMutexSaysWhatIsWrongBeforeAnyCall(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		wantError(t, c.Mutex("k").Err())
		wantError(t, c.Mutex("k", "k").Err(), hasp.ErrInvalid)
		wantError(t, c.With(hasp.LockOptions{TTL: time.Millisecond}).Mutex("k").Err(), hasp.ErrInvalid)
		wantOp(t, c.Mutex("").Err(), "acquire", "")
		_ = c.Close(w.ctx)
		wantError(t, c.Mutex("k").Err(), hasp.ErrClosed)
	})
}

// watchPause is longer than the least time between two looks.
const watchPause = 50 * time.Millisecond

// mute is a driver without signals.
type mute struct{ driver.Driver }

// countedLines counts the reads of lines.
type countedLines struct {
	signalling
	looks int
}

// signalling is a driver with signals.
type signalling interface {
	driver.Driver
	driver.Signaler
}

// Lines implements driver.Driver.
func (d *countedLines) Lines(ctx context.Context, q driver.Query) (driver.Page, error) {
	d.looks++
	return d.signalling.Lines(ctx, q)
}
