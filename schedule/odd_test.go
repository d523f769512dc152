package schedule_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/hasp-dev/hasp/schedule"
)

// settable is a clock as machines have it: its times have a monotonic reading, too, which
// goes on when the clock is set. Here it begins at a full hour.
type settable struct {
	base, start time.Time
	set         atomic.Int64 // by how many seconds
}

// newSettable makes a clock of a time with a monotonic reading; it is called in the bubble.
func newSettable(t *testing.T, real time.Time) *settable {
	t.Helper()
	c := &settable{base: real.Add(real.Truncate(time.Hour).Add(time.Hour).Sub(real.Round(0))), start: time.Now()}
	a := c.now()
	c.set.Store(-3600)
	if b := c.now(); !b.Round(0).Equal(a.Round(0).Add(-time.Hour)) || b.Sub(a) != 0 {
		t.Fatalf("%s and %s: the layout of time.Time is another one", a, b)
	}
	c.set.Store(0)
	return c
}

func (c *settable) now() time.Time {
	at := c.base.Add(time.Since(c.start))
	wall := (*uint64)(unsafe.Pointer(&at)) // seconds above 30 bits of nanoseconds
	*wall += uint64(c.set.Load() << 30)
	return at
}

func TestDR8_AClockThatIsSetBackRepeatsNoTick(t *testing.T) {
	t.Parallel()
	real := time.Now()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		c := newSettable(t, real)
		n := f.node("a", schedule.Options{Now: c.now})
		n.add(schedule.Job{Name: "job", Cron: "*/10 * * * *"}, time.Second).start()
		time.Sleep(65 * time.Minute)
		before := len(f.ticks())
		c.set.Store(-3600)
		time.Sleep(50 * time.Minute)
		n.stop()
		if got := f.ticks(); before != 6 || len(got) != before {
			t.Errorf("ran %d ticks, and then %v", before, got[before:])
		}
	})
}

func TestAClockThatIsSetFarAheadCostsLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		var ahead atomic.Int64
		var log strings.Builder
		n := f.node("a", schedule.Options{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Now:    func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		})
		n.add(schedule.Job{Name: "job", Cron: "*/30 * * * * *"}, time.Second).start()
		time.Sleep(45 * time.Second)
		ahead.Store(int64(30 * 24 * time.Hour)) // 86,400 ticks
		time.Sleep(5 * time.Minute)
		n.stop()
		if lines := strings.Count(log.String(), "missed"); lines != 1 {
			t.Errorf("%d lines tell of missed ticks: %.500s", lines, log.String())
		}
		if got := f.ticks(); len(got) < 10 {
			t.Errorf("ran %v", got)
		}
	})
}

func TestPN5_AJobThatEndsItsGoroutineLeavesNothingHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		n := f.node("a", schedule.Options{})
		job := schedule.Job{Name: "job", Cron: "@every 1m", Run: func(context.Context) error {
			runtime.Goexit()
			return nil
		}}
		n.add(job, time.Second).start()
		time.Sleep(3*time.Minute + 10*time.Second)
		if got := f.ticks(); len(got) != 3 {
			t.Errorf("ran %v", got)
		}
		known, err := n.sched.Runs(t.Context(), "job")
		var panicked *schedule.PanicError
		if err != nil || known.Here.Running || !errors.As(known.Here.Err, &panicked) || known.Last.Running {
			t.Errorf("%+v, %v", known, err)
		}
		n.stop()
	})
}

func TestEveryIsTheSameForAllHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"@every 90s", " @every 90s", "@every\t90s", "@every  90s ", "@EVERY 90s"} {
		got, err := schedule.Next(text, "", 0, time.Unix(100, 0), 1)
		if err == nil && !got[0].Equal(time.Unix(180, 0)) {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestAJitterMayBeLongerThanATickMayBeLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		job := schedule.Job{Name: "job", Cron: "@hourly", Jitter: 30 * time.Minute}
		a := f.node("a", skewed(0)).add(job, time.Second).start()
		b := f.node("b", skewed(-time.Second)).add(job, time.Second).start()
		start := time.Now()
		time.Sleep(20*time.Hour + 45*time.Minute)
		a.stop()
		b.stop()
		f.once(start, time.Hour, 21) // the first is the one of the slower clock
	})
}

func TestTicksAreKeptAsLongAsTheyCanBeMadeUpFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		catch := schedule.CatchUp{Ticks: 1, Within: 30 * 24 * time.Hour}
		n := f.node("a", schedule.Options{Tolerance: time.Hour, TTL: time.Hour})
		n.add(schedule.Job{Name: "job", Cron: "@hourly", CatchUp: catch}, time.Second).start()
		time.Sleep(time.Hour + time.Minute)
		known, err := n.sched.Runs(t.Context(), "job")
		if err != nil || known.Last.At.IsZero() || known.Last.Running {
			t.Errorf("%+v, %v", known, err)
		}
		n.stop()
	})
}
