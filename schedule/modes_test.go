package schedule_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp/schedule"
)

// However the options of a job are put together, no tick runs twice.
func TestTM5_NoCombinationOfOptionsRunsATickTwice(t *testing.T) {
	t.Parallel()
	for overlap := schedule.OverlapSkip; overlap <= schedule.OverlapAllow; overlap++ {
		for bits := range 16 {
			on := func(bit int, d time.Duration) time.Duration { return time.Duration(bits>>bit&1) * d }
			job := schedule.Job{
				Name: "job", Cron: "@every 10s", Overlap: overlap,
				Jitter: on(0, 3*time.Second), AtLeast: on(1, 15*time.Second), AtMost: on(2, time.Minute),
			}
			if bits>>3&1 == 1 {
				job.CatchUp = schedule.CatchUp{Ticks: 3, Within: 10 * time.Minute}
			}
			t.Run(fmt.Sprintf("%d-%04b", overlap, bits), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { neverTwice(t, job) })
			})
		}
	}
}

func neverTwice(t *testing.T, job schedule.Job) {
	t.Helper()
	f := newFleet(t)
	a := f.node("a", skewed(0)).add(job, 12*time.Second).start() // a run is longer than the time to the next tick
	b := f.node("b", skewed(-2*time.Second)).add(job, 12*time.Second).start()
	time.Sleep(10 * time.Minute)
	a.stop()
	time.Sleep(5 * time.Minute)
	b.stop()
	ran := make(map[time.Time]int)
	for _, r := range f.runs {
		if !r.end.IsZero() {
			ran[r.tick]++
		}
	}
	for tick, n := range ran {
		if n > 1 {
			t.Errorf("tick %s ran %d times", tick, n)
		}
	}
	if len(ran) < 20 {
		t.Errorf("%d ticks ran: too little happened for a verdict", len(ran))
	}
}
