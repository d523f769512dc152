package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/schedule"
)

func TestEachTickRunsOnceOnClocksThatDiffer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ticks = 1000
		f := newFleet(t)
		start := time.Now()
		var nodes []*node
		for i := range 5 {
			n := f.node(fmt.Sprint("node", i), skewed(time.Duration(i-2)*time.Second))
			job := schedule.Job{Name: "job", Cron: "@every 1s", Overlap: schedule.OverlapAllow}
			nodes = append(nodes, n.add(job, 10*time.Millisecond).start())
		}
		time.Sleep((ticks-4)*time.Second + 500*time.Millisecond)
		for _, n := range nodes {
			n.stop()
		}
		// From the first tick of the slowest clock to the last of the fastest.
		f.once(start.Add(-time.Second), time.Second, ticks)
	})
}

func TestATickOfAProcessThatDiedRunsInAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		start := time.Now()
		job := schedule.Job{Name: "job", Cron: "@every 1m", Overlap: schedule.OverlapAllow}
		a := f.node("a", skewed(0)).add(job, 20*time.Second).start()
		b := f.node("b", skewed(-time.Second)).add(job, 20*time.Second).start()
		time.Sleep(70 * time.Second) // a runs the first tick, b watches
		a.kill()
		time.Sleep(45 * time.Second)
		if got := f.ticks(); len(got) != 2 || !got[1].Equal(start.Add(time.Minute)) {
			t.Errorf("ran %v", got) // a does not know that it is dead, and ran it, too
		}
		last := f.runs[len(f.runs)-1]
		if late := last.began.Sub(start.Add(70 * time.Second)); last.node != "b" || late < 0 || late > 12*time.Second {
			t.Errorf("%s took over after %s", last.node, late)
		}
		a.bury()
		b.stop()
	})
}

func TestALongRunIsWatchedUntilItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		job := schedule.Job{Name: "job", Cron: "@every 1h", Overlap: schedule.OverlapAllow}
		a := f.node("a", skewed(0)).add(job, 30*time.Minute).start()
		time.Sleep(time.Second)
		b := f.node("b", skewed(-time.Second)).add(job, 10*time.Minute).start()
		time.Sleep(time.Hour + 20*time.Minute)
		died := time.Now()
		a.kill()
		time.Sleep(time.Minute)
		synctest.Wait()
		last := f.runs[len(f.runs)-1]
		if late := last.began.Sub(died); last.node != "b" || late < 0 || late > 12*time.Second {
			t.Errorf("%s took over after %s", last.node, late)
		}
		a.bury()
		b.stop()
	})
}

func TestNoTickIsLostOrRunTwiceWhereNodesDieAndComeAtRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				f := newFleet(t)
				job := schedule.Job{Name: "job", Cron: "@every 5s", Overlap: schedule.OverlapAllow}
				start := time.Now()
				steady := f.node("steady", skewed(0)).add(job, time.Second).start()
				var dead []*node
				for i := range 20 {
					skew := time.Duration(random.Int64N(int64(4*time.Second))) - 2*time.Second
					n := f.node(fmt.Sprint("node", i), skewed(skew)).add(job, time.Second).start()
					time.Sleep(time.Duration(random.Int64N(int64(12 * time.Second))))
					if random.IntN(2) == 0 {
						n.stop() // what it had not finished is left to another
						continue
					}
					n.kill()
					dead = append(dead, n)
				}
				time.Sleep(time.Minute)
				end := time.Now()
				for _, n := range dead {
					n.bury()
				}
				steady.stop()
				f.judge(start, end, dead)
			})
		})
	}
}

// judge says whether each tick was run, and only those twice whose process died in the
// middle or had not got round to saying so.
func (f *fleet) judge(start, end time.Time, dead []*node) {
	f.Helper()
	runs := make(map[time.Time]map[string]int)
	for _, r := range f.runs {
		if r.end.IsZero() {
			continue
		}
		if runs[r.tick] == nil {
			runs[r.tick] = make(map[string]int)
		}
		runs[r.tick][r.node]++
	}
	for at := start.Add(5 * time.Second); at.Before(end.Add(-30 * time.Second)); at = at.Add(5 * time.Second) {
		total, living := 0, 0
		for name, n := range runs[at] {
			total += n
			alive := true
			for _, d := range dead {
				alive = alive && d.name != name
			}
			if alive {
				living += n
			}
		}
		if total == 0 || living > 1 {
			f.Errorf("tick %s was run %d times, %d of them by nodes that live: %v", at.Sub(start), total, living, runs[at])
		}
	}
}

func TestATickThatIsCutShortRunsInAnotherProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		start := time.Now()
		time.Sleep(10 * time.Second)
		job := schedule.Job{Name: "job", Cron: "@every 1h"}
		a := f.node("a", skewed(0)).add(job, time.Minute).start()
		b := f.node("b", skewed(-time.Second)).add(job, time.Minute).start()
		time.Sleep(time.Hour)
		a.stop()
		time.Sleep(2 * time.Minute)
		b.stop()
		f.once(start.Add(time.Hour), time.Hour, 1)
	})
}

func TestARunThatFailsOrPanicsIsARunAndTheScheduleGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		start := time.Now()
		oops := errors.New("oops")
		n := f.node("a", skewed(0))
		n.add(schedule.Job{Name: "fails", Cron: "@every 1m", Run: func(context.Context) error { return oops }}, 0)
		n.add(schedule.Job{Name: "panics", Cron: "@every 1m", Run: func(context.Context) error { panic(oops) }}, 0).start()
		time.Sleep(2*time.Minute + time.Second)
		for _, name := range []string{"fails", "panics"} {
			runs, err := n.sched.Runs(t.Context(), name)
			if err != nil || !errors.Is(runs.Here.Err, oops) || !runs.Here.Tick.Equal(start.Add(2*time.Minute)) {
				t.Errorf("%s: %+v, %v", name, runs, err)
			}
		}
		n.stop()
		if got := len(f.ticks()); got != 4 {
			t.Errorf("%d runs, want 4", got)
		}
	})
}

func TestTicksOfAJobThatStillRuns(t *testing.T) {
	t.Parallel()
	for overlap, want := range map[schedule.Overlap]int{
		schedule.OverlapSkip: 3, schedule.OverlapWait: 4, schedule.OverlapAllow: 8,
	} {
		t.Run(fmt.Sprint(overlap), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t)
				var nodes []*node
				for i := range 3 {
					n := f.node(fmt.Sprint("node", i), skewed(time.Duration(i)*time.Second))
					nodes = append(nodes, n.add(schedule.Job{Name: "job", Cron: "@every 1m", Overlap: overlap}, 150*time.Second).start())
				}
				time.Sleep(11*time.Minute + 5*time.Second)
				got := len(f.ticks())
				for _, n := range nodes {
					n.stop()
				}
				if got != want {
					t.Errorf("%d runs were over, want %d", got, want)
				}
				f.apart(overlap)
			})
		})
	}
}

// apart says whether runs overlapped that must not.
func (f *fleet) apart(overlap schedule.Overlap) {
	f.Helper()
	for i := 1; i < len(f.runs) && overlap != schedule.OverlapAllow; i++ {
		if before := f.runs[i-1]; before.end.IsZero() || f.runs[i].began.Before(before.end) {
			f.Errorf("run %d began at %s, before %d was over", i, f.runs[i].began, i-1)
		}
	}
}

func TestAtLeastKeepsTheNextRunAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		start := time.Now()
		n := f.node("a", skewed(0)).add(schedule.Job{Name: "job", Cron: "@every 1m", AtLeast: 150 * time.Second}, time.Second).start()
		time.Sleep(10 * time.Minute)
		n.stop()
		f.once(start.Add(time.Minute), 3*time.Minute, 3)
	})
}

func TestARunLongerThanAtMostIsToldAndLetsOthersRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		n := f.node("a", skewed(0))
		var told time.Duration
		err := n.sched.Add(schedule.Job{Name: "job", Cron: "0 * * * *", AtMost: time.Minute, Run: func(ctx context.Context) error {
			began := time.Now()
			<-ctx.Done()
			told = time.Since(began)
			if !errors.Is(context.Cause(ctx), hasp.ErrLost) {
				t.Errorf("the cause is %v", context.Cause(ctx))
			}
			return context.Cause(ctx)
		}})
		if err != nil {
			t.Fatal(err)
		}
		n.start()
		time.Sleep(time.Hour + 65*time.Second)
		synctest.Wait()
		if told < 50*time.Second || told > time.Minute {
			t.Errorf("told after %s", told)
		}
		n.stop()
	})
}

func TestAStoreThatIsAwayDelaysATickAndNoLongerThanLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		start := time.Now()
		n := f.node("a", skewed(0)).add(schedule.Job{Name: "job", Cron: "@every 10m"}, time.Second).start()
		time.Sleep(9 * time.Minute)
		f.store.Fail(hasp.ErrUnavailable)
		time.Sleep(90 * time.Second) // half a minute late
		f.store.Fail(nil)
		time.Sleep(8*time.Minute + 40*time.Second)
		f.store.Fail(hasp.ErrUnavailable)
		time.Sleep(10 * time.Minute) // much too late for the second tick
		f.store.Fail(nil)
		time.Sleep(5 * time.Minute)
		n.stop()
		f.once(start.Add(10*time.Minute), 20*time.Minute, 2)
	})
}

func TestMissedTicksAreMadeUpForAsSaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		catchUp schedule.CatchUp
		want    []int // hours
	}{
		{schedule.CatchUp{}, []int{1, 11}},
		{schedule.CatchUp{Ticks: 1, Within: 24 * time.Hour}, []int{0, 1, 10, 11}},
		{schedule.CatchUp{Ticks: 3, Within: 24 * time.Hour}, []int{-2, -1, 0, 1, 8, 9, 10, 11}},
		{schedule.CatchUp{Ticks: 3, Within: 2*time.Hour + time.Minute}, []int{-1, 0, 1, 9, 10, 11}},
	} {
		t.Run(fmt.Sprint(c.catchUp), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(30 * time.Minute)
				f := newFleet(t)
				zero := time.Now().Truncate(time.Hour)
				var alone []*node
				for round := range 2 { // two nodes for an hour, nobody for nine, two for an hour
					for i := range 2 {
						n := f.node(fmt.Sprint("node", round, i), skewed(time.Duration(i)*time.Second))
						alone = append(alone, n.add(schedule.Job{Name: "job", Cron: "@every 1h", CatchUp: c.catchUp}, time.Second).start())
					}
					time.Sleep(time.Hour)
					alone[0].stop()
					alone[1].stop()
					alone = nil
					time.Sleep(9 * time.Hour)
				}
				got := f.ticks()
				if len(got) != len(c.want) {
					t.Fatalf("ran %v, want %v", got, c.want)
				}
				for i, h := range c.want {
					if !got[i].Equal(zero.Add(time.Duration(h) * time.Hour)) {
						t.Errorf("run %d was of %s, want %d h", i, got[i], h)
					}
				}
			})
		})
	}
}

// In a rolling deploy nobody may be left who saw the tick begin. Who makes up for missed
// ticks takes it over all the same.
func TestMR5_ATickOutlivesAllWhoSawItBeginWhereItIsMadeUpFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		job := schedule.Job{Name: "job", Cron: "@every 1h", CatchUp: schedule.CatchUp{Ticks: 1, Within: 2 * time.Hour}}
		old := f.node("old", skewed(0)).add(job, 10*time.Minute).start()
		time.Sleep(time.Hour + 5*time.Minute)
		fresh := f.node("new", skewed(0)).add(job, 10*time.Minute).start()
		time.Sleep(time.Minute)
		old.stop()
		time.Sleep(20 * time.Minute)
		fresh.stop()
		// The first run is that of the tick that was missed before anybody was there.
		if len(f.ticks()) != 2 || len(f.runs) != 3 || f.runs[2].node != "new" || !f.runs[2].tick.Equal(f.runs[1].tick) {
			t.Errorf("runs %+v, want the second tick to be run to its end by the new process", f.runs)
		}
	})
}

func TestJitterDelaysARunAndNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		n := f.node("a", skewed(0)).add(schedule.Job{Name: "job", Cron: "@every 1m", Jitter: 20 * time.Second}, 0).start()
		time.Sleep(20*time.Minute + 30*time.Second)
		n.stop()
		spread := make(map[time.Duration]bool)
		for _, r := range f.runs {
			late := r.began.Sub(r.tick)
			if late < 0 || late > 20*time.Second {
				t.Errorf("late by %s", late)
			}
			spread[late.Truncate(time.Second)] = true
		}
		if len(f.runs) != 20 || len(spread) < 5 {
			t.Errorf("%d runs, late by %v", len(f.runs), spread)
		}
	})
}

func TestRunsAreKnownInTheWholeFleet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		start := time.Now()
		time.Sleep(10 * time.Second)
		job := schedule.Job{Name: "a job: daily", Cron: "@every 1m"}
		a := f.node("a", skewed(0)).add(job, 10*time.Second).start()
		b := f.node("b", skewed(-2*time.Second)).add(job, 10*time.Second).start()
		time.Sleep(55 * time.Second)
		runs, err := b.sched.Runs(t.Context(), job.Name)
		if want := (schedule.Tick{At: start.Add(time.Minute).In(time.UTC), By: "a", Running: true}); err != nil || runs.Last != want || !runs.Here.Tick.IsZero() {
			t.Errorf("while it runs: %+v, %v", runs, err)
		}
		time.Sleep(10 * time.Second)
		runs, err = a.sched.Runs(t.Context(), job.Name)
		if err != nil || runs.Last.Running || runs.Last.By != "a" || runs.Here.Took != 10*time.Second || !runs.Next.Equal(start.Add(2*time.Minute)) {
			t.Errorf("afterwards: %+v, %v", runs, err)
		}
		if _, err := a.sched.Runs(t.Context(), "other"); !errors.Is(err, hasp.ErrInvalid) {
			t.Errorf("another job: %v", err)
		}
		a.stop()
		b.stop()
	})
}
