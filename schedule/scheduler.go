package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/keytmpl"
)

// Options configure a scheduler. Nil and the zero value mean the defaults. All processes
// of a fleet must have the same.
type Options struct {
	// Prefix is put before the keys of jobs. Defaults to "schedule:".
	Prefix string
	// TTL is how long the store keeps the lock of a run without a renewal, and so about
	// how long a tick waits whose process has died. From 100 ms to 1 h; defaults to 10 s.
	TTL time.Duration
	// Tolerance is how far the clocks of two processes may differ. Defaults to 5 s.
	Tolerance time.Duration
	// Late is how late a tick may still begin, when the store or every process was away;
	// after that it counts as missed, see [CatchUp]. Defaults to 1 min.
	Late time.Duration
	// Now is the clock that ticks are found by. Defaults to time.Now.
	Now func() time.Time
	// Logger is told of runs that failed, ticks that were dropped or given up, and a store
	// that does not answer. Defaults to discarding.
	Logger *slog.Logger
}

// Defaults and bounds of Options.
const (
	defaultPrefix    = "schedule:"
	defaultTTL       = 10 * time.Second
	maxTTL           = time.Hour
	defaultTolerance = 5 * time.Second
	defaultLate      = time.Minute
	maxLate          = 24 * time.Hour
)

// resolve checks o and fills in the defaults.
func (o *Options) resolve() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	r.Prefix = cmp.Or(r.Prefix, defaultPrefix)
	r.TTL = cmp.Or(r.TTL, defaultTTL)
	r.Tolerance = cmp.Or(r.Tolerance, defaultTolerance)
	r.Late = cmp.Or(r.Late, defaultLate)
	now := r.Now
	if now == nil {
		now = time.Now
	}
	r.Now = func() time.Time { return now().Round(0) } // what a clock shows, not a monotonic reading, which would hide that it was set
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	var errs []error
	if r.TTL < minTime || r.TTL > maxTTL {
		errs = append(errs, fmt.Errorf("option TTL is %s; it must be from %s to %s", r.TTL, minTime, maxTTL))
	}
	if r.Tolerance < 0 || r.Late < 0 || r.Tolerance > maxLate || r.Late > maxLate {
		errs = append(errs, fmt.Errorf("options Tolerance and Late must be from 0 to %s", maxLate))
	}
	return r, errors.Join(errs...)
}

// Scheduler runs jobs. It is made once in each process of the fleet.
type Scheduler struct {
	client *hasp.Client
	opts   Options

	mu      sync.Mutex
	jobs    map[string]*runner // guarded by mu
	running bool               // guarded by mu
}

// New makes a scheduler without jobs. It does no I/O.
func New(client *hasp.Client, o *Options) (*Scheduler, error) {
	opts, err := o.resolve()
	if client == nil {
		err = errors.Join(err, errors.New("the client is nil; make one with hasp.New"))
	}
	if err != nil {
		return nil, fmt.Errorf("schedule: %w: %w", hasp.ErrInvalid, err)
	}
	return &Scheduler{client: client, opts: opts, jobs: make(map[string]*runner)}, nil
}

// Add adds a job, before Run.
func (s *Scheduler) Add(j Job) error {
	spec, err := j.check()
	if err != nil {
		return err
	}
	r := newRunner(s, j, spec)
	if err := r.usable(); err != nil {
		return fmt.Errorf("schedule: job %q: %w", j.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.running:
		return fmt.Errorf("schedule: %w: job %q: add it before Run", hasp.ErrInvalid, j.Name)
	case s.jobs[j.Name] != nil:
		return fmt.Errorf("schedule: %w: there is a job %q already", hasp.ErrInvalid, j.Name)
	}
	s.jobs[j.Name] = r
	return nil
}

// Run runs the jobs until ctx ends, which ends the contexts of running ones, too, and
// returns when they have returned. What a job had not finished then is left to another
// process. It returns nil, unless a job of the leader cannot go on, such as when the
// client is closed.
func (s *Scheduler) Run(ctx context.Context) error {
	jobs, err := s.begin()
	if err != nil {
		return err
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running = false
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	errs := make([]error, len(jobs))
	for i, r := range jobs {
		all.Go(func() {
			if errs[i] = r.loop(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (s *Scheduler) begin() ([]*runner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.running:
		return nil, fmt.Errorf("schedule: %w: the scheduler runs already", hasp.ErrInvalid)
	case len(s.jobs) == 0:
		return nil, fmt.Errorf("schedule: %w: there are no jobs; add them before Run", hasp.ErrInvalid)
	}
	s.running = true
	jobs := make([]*runner, 0, len(s.jobs))
	for _, r := range s.jobs {
		jobs = append(jobs, r)
	}
	return jobs, nil
}

// key names a key of a job.
func (s *Scheduler) key(kind, job string) string {
	return s.opts.Prefix + kind + ":" + keytmpl.Escape(job)
}

// sleep pauses; it answers false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
