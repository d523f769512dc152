package schedule_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/schedule"
)

func TestATickIsTakenOverAlthoughTheKeyOfTheJobExpiresLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		start := time.Now()
		job := schedule.Job{Name: "job", Cron: "@every 1m"}
		a := f.node("a", skewed(0)).add(job, 20*time.Second).start()
		b := f.node("b", skewed(-time.Second)).add(job, 20*time.Second).start()
		late := f.node("late", skewed(0))
		time.Sleep(70 * time.Second) // a runs the first tick, b watches
		go func() {                  // what is left of a lives three seconds longer
			lease, err := late.client.With(hasp.LockOptions{TTL: 3 * time.Second, NoRenew: true}).Mutex("schedule:run:job").Lock(t.Context())
			if err != nil || lease.Token() == 0 {
				t.Error(err)
			}
		}()
		a.kill()
		time.Sleep(45 * time.Second)
		synctest.Wait()
		last := f.runs[len(f.runs)-1]
		if took := last.began.Sub(start.Add(70 * time.Second)); last.node != "b" || !last.tick.Equal(start.Add(time.Minute)) || took > 16*time.Second {
			t.Errorf("%s ran the tick of %s, %s after the death", last.node, last.tick.Sub(start), took)
		}
		a.bury()
		b.stop()
		if err := late.client.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestTheLeasesOfARunAreThoseOfItsTickAndItsJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for overlap, want := range map[schedule.Overlap]int{schedule.OverlapSkip: 2, schedule.OverlapWait: 2, schedule.OverlapAllow: 1} {
			f := newFleet(t)
			ran := 0
			job := schedule.Job{Name: "job", Cron: "@every 1m", Overlap: overlap, Run: func(ctx context.Context) error {
				ran++
				leases := schedule.Leases(ctx)
				if len(leases) != want || leases[0].Keys()[0] != fmt.Sprintf("schedule:tick:job:%013d", time.Now().UnixMilli()) {
					t.Errorf("the leases are %v, want %d", leases, want)
				}
				for _, l := range leases {
					if l.Err() != nil {
						t.Error(l.Err())
					}
				}
				return leases[0].Release(ctx) // the work is left to another process
			}}
			a := f.node("a", skewed(0)).add(job, 0).start()
			b := f.node("b", skewed(-time.Second)).add(schedule.Job{Name: "job", Cron: "@every 1m", Overlap: overlap}, 0).start()
			time.Sleep(65 * time.Second)
			a.stop()
			b.stop()
			if last := f.runs[len(f.runs)-1]; ran == 0 || last.node != "b" {
				t.Errorf("a ran %d ticks, and %s the last one", ran, last.node)
			}
		}
		if got := schedule.Leases(t.Context()); got != nil {
			t.Errorf("outside of a run there are %v", got)
		}
	})
}

// The lease of a run is renewed also where the client's locks are not.
func TestTheClientsOptionsAreForLocksNotForRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.lock = hasp.LockOptions{
			NoRenew: true, Reentrant: true, MaxHold: time.Second, MaxLine: 1, Wait: hasp.NoWait, LocalHandoffs: 63, Sticky: time.Minute,
		}
		job := schedule.Job{Name: "job", Cron: "@every 1h"}
		a := f.node("a", skewed(0)).add(job, 40*time.Second).start()
		b := f.node("b", skewed(0)).add(job, 40*time.Second).start()
		time.Sleep(time.Hour + 2*time.Minute)
		a.stop()
		b.stop()
		if len(f.runs) != 1 || f.runs[0].end.IsZero() {
			t.Errorf("runs %+v, want one, to its end", f.runs)
		}
	})
}
