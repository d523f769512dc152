package schedule_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/schedule"
)

func TestTheLeaderRunsAtAFixedRateAndAnotherTakesOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		job := schedule.Job{Name: "job", Every: time.Minute, Initial: 10 * time.Second}
		a := f.node("a", skewed(0)).add(job, 20*time.Second).start()
		time.Sleep(time.Second)
		b := f.node("b", skewed(0)).add(job, 20*time.Second).start()
		time.Sleep(3*time.Minute - time.Second)
		runs, err := b.sched.Runs(t.Context(), "job")
		if err != nil || runs.Last.By != "a" || !runs.Last.Running {
			t.Errorf("%+v, %v", runs, err)
		}
		a.stop()
		stopped := time.Now()
		time.Sleep(time.Minute)
		b.stop()
		var late []time.Duration
		for _, r := range f.runs {
			if r.node == "a" {
				late = append(late, r.began.Sub(stopped)+3*time.Minute)
			} else if r.began.Sub(stopped) != 10*time.Second {
				t.Errorf("b began %s after a stopped", r.began.Sub(stopped))
			}
		}
		if len(late) != 3 || late[0] != 10*time.Second || late[1] != 70*time.Second || late[2] != 130*time.Second || len(f.runs) != 4 {
			t.Errorf("a began at %v, %d runs", late, len(f.runs))
		}
	})
}

func TestTheLeaderRunsWithAFixedDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		a := f.node("a", skewed(0)).add(schedule.Job{Name: "job", After: time.Minute}, 20*time.Second).start()
		time.Sleep(3 * time.Minute)
		a.stop()
		for i := 1; i < len(f.runs); i++ {
			if d := f.runs[i].began.Sub(f.runs[i-1].end); d != time.Minute {
				t.Errorf("run %d began %s after the one before", i, d)
			}
		}
		if len(f.runs) != 3 {
			t.Errorf("%d runs, want 3", len(f.runs))
		}
	})
}

func TestALeaderThatDiedIsFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		job := schedule.Job{Name: "job", Every: 5 * time.Second}
		a := f.node("a", skewed(0)).add(job, 0).start()
		time.Sleep(time.Second)
		b := f.node("b", skewed(0)).add(job, 0).start()
		time.Sleep(20 * time.Second)
		a.kill()
		died := time.Now()
		time.Sleep(30 * time.Second)
		lastOfA, firstOfB := time.Time{}, time.Time{}
		synctest.Wait()
		for _, r := range f.runs {
			if r.node == "a" {
				lastOfA = r.began
			} else if firstOfB.IsZero() {
				firstOfB = r.began
			}
		}
		if firstOfB.IsZero() || firstOfB.Sub(died) > 15*time.Second || !lastOfA.Before(firstOfB) {
			t.Errorf("a died at %s, ran until %s; b ran from %s on", died, lastOfA, firstOfB)
		}
		a.bury()
		b.stop()
	})
}

func TestAClosedClientEndsTheScheduler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		n := f.node("a", skewed(0)).add(schedule.Job{Name: "job", Every: time.Minute}, 0).start()
		time.Sleep(time.Second)
		if err := n.client.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-n.ended; !errors.Is(err, hasp.ErrClosed) {
			t.Errorf("Run: %v", err)
		}
		n.cancel()
	})
}
