package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/schedule"
)

// fleet is some processes over one store, in a bubble of synctest.
type fleet struct {
	*testing.T
	store *memlease.Store
	lock  hasp.LockOptions                  // of the clients
	wrap  func(driver.Driver) driver.Driver // what stands between clients and store; nil: nothing

	mu   sync.Mutex
	runs []run // guarded by mu, in the order of their begins
}

// run is one run of a job.
type run struct {
	node       string
	tick       time.Time
	began, end time.Time
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	return &fleet{T: t, store: memlease.NewStore()}
}

// node is one process.
type node struct {
	fleet  *fleet
	name   string
	driver *memlease.Driver
	client *hasp.Client
	sched  *schedule.Scheduler
	cancel context.CancelFunc
	ended  chan error
}

func (f *fleet) node(name string, o schedule.Options) *node {
	f.Helper()
	n := &node{fleet: f, name: name, driver: f.store.Driver(), ended: make(chan error, 1)}
	var err error
	d := driver.Driver(n.driver)
	if f.wrap != nil {
		d = f.wrap(d)
	}
	if n.client, err = hasp.New(d, &hasp.Options{Name: name, Lock: f.lock}); err != nil {
		f.Fatal(err)
	}
	if n.sched, err = schedule.New(n.client, &o); err != nil {
		f.Fatal(err)
	}
	return n
}

// skewed is a clock that is ahead by d.
func skewed(d time.Duration) schedule.Options {
	return schedule.Options{Now: func() time.Time { return time.Now().Add(d) }}
}

// add adds a job that is noted and takes that long.
func (n *node) add(j schedule.Job, took time.Duration) *node {
	n.fleet.Helper()
	work := j.Run
	j.Run = func(ctx context.Context) error {
		at, ok := schedule.At(ctx)
		if !ok {
			n.fleet.Error("the context has no tick")
		}
		i := n.fleet.begin(run{node: n.name, tick: at, began: time.Now()})
		if took > 0 {
			select {
			case <-time.After(took):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		n.fleet.end(i)
		if work != nil {
			return work(ctx)
		}
		return nil
	}
	if err := n.sched.Add(j); err != nil {
		n.fleet.Fatal(err)
	}
	return n
}

func (f *fleet) begin(r run) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs = append(f.runs, r)
	return len(f.runs) - 1
}

func (f *fleet) end(i int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs[i].end = time.Now()
}

func (n *node) start() *node {
	ctx, cancel := context.WithCancel(n.fleet.Context())
	n.cancel = cancel
	go func() { n.ended <- n.sched.Run(ctx) }()
	return n
}

// stop ends a process in good order.
func (n *node) stop() {
	n.fleet.Helper()
	n.cancel()
	if err := <-n.ended; err != nil {
		n.fleet.Errorf("%s: %v", n.name, err)
	}
	if err := n.client.Close(context.WithoutCancel(n.fleet.Context())); err != nil {
		n.fleet.Errorf("%s: Close: %v", n.name, err)
	}
}

// kill makes a process silent for ever: what it says is lost.
func (n *node) kill() { n.driver.Fail(errors.New("dead")) }

// bury ends a killed process, so that the bubble can end.
func (n *node) bury() {
	n.cancel()
	if err := <-n.ended; err != nil {
		n.fleet.Errorf("%s: %v", n.name, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(n.fleet.Context()), time.Second)
	defer cancel()
	_ = n.client.Close(ctx)
}

// ticks answers the ticks that were run to their end, sorted.
func (f *fleet) ticks() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []time.Time
	for _, r := range f.runs {
		if !r.end.IsZero() {
			all = append(all, r.tick)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// once says whether each tick of a row was run once, and none else.
func (f *fleet) once(first time.Time, every time.Duration, n int) {
	f.Helper()
	got := f.ticks()
	want := make([]time.Time, n)
	for i := range want {
		want[i] = first.Add(time.Duration(i) * every)
	}
	if !slices.EqualFunc(got, want, time.Time.Equal) {
		f.Errorf("%d runs, want %d; the first that differ: %s", len(got), n, differ(got, want))
	}
}

func differ(got, want []time.Time) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("none, want %s", want[i])
		case i >= len(want):
			return fmt.Sprintf("%s, want none", got[i])
		case !got[i].Equal(want[i]):
			return fmt.Sprintf("%s, want %s", got[i], want[i])
		}
	}
	return "none"
}
