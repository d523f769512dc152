package schedule_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/schedule"
)

// late answers a Join when what it granted is over.
type late struct{ driver.Driver }

func (d late) Join(ctx context.Context, j driver.Join) (driver.Standing, error) {
	s, err := d.Driver.Join(ctx, j)
	time.Sleep(j.Life.Hold)
	return s, err
}

// holdJob lets another process have what the job's runs take, and keeps it.
func (f *fleet) holdJob() {
	f.Helper()
	other, err := hasp.New(f.store.Driver(), nil)
	if err != nil {
		f.Fatal(err)
	}
	lease, err := other.Mutex("schedule:run:job").Lock(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		ctx := context.WithoutCancel(f.Context())
		_, _ = lease.Release(ctx), other.Close(ctx)
	})
}

func TestKT7_AJobDoesNotRunWithoutItsLock(t *testing.T) {
	t.Parallel()
	for name, hinder := range map[string]func(*fleet){
		"nothing in the way":    nil,
		"held by somebody else": (*fleet).holdJob,
		"the store is away":     func(f *fleet) { f.store.Fail(hasp.ErrUnavailable) },
		"the store refuses":     func(f *fleet) { f.store.Fail(hasp.ErrRefused) },
		"lost before it starts": func(f *fleet) { f.wrap = func(d driver.Driver) driver.Driver { return late{d} } },
	} {
		for _, overlap := range []schedule.Overlap{schedule.OverlapSkip, schedule.OverlapWait} {
			t.Run(fmt.Sprint(name, overlap), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					f := newFleet(t)
					if hinder != nil {
						hinder(f)
					}
					n := f.node("a", skewed(0)).add(schedule.Job{Name: "job", Cron: "@every 10m", Overlap: overlap}, 0).start()
					time.Sleep(11 * time.Minute)
					got := len(f.ticks())
					f.store.Fail(nil)
					n.stop()
					if want := map[bool]int{true: 1}[hinder == nil]; got != want {
						t.Errorf("the job ran %d times, want %d", got, want)
					}
				})
			})
		}
	}
}

func TestKT1_AJobWithoutANameIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", " ", "\t\n"} {
		err := schedule.Job{Name: name, Cron: "@every 1m", Run: func(context.Context) error { return nil }}.Check()
		if err == nil || !strings.Contains(err.Error(), "the name is empty") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
