package schedule

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/hasp-dev/hasp"
)

// maxSleep is how long a loop sleeps at most, so that a clock that is set is noticed.
const maxSleep = 30 * time.Second

// maxKeep is the longest that a store keeps the key of a tick.
const maxKeep = 30 * 24 * time.Hour

// runner runs one job in this process.
type runner struct {
	*Scheduler
	job  Job
	spec *spec // nil for a job of the leader
	log  *slog.Logger

	ticks *hasp.Client // for the keys of ticks
	runs  *hasp.Client // for the key of the job itself
	keep  time.Duration

	mu   sync.Mutex
	last Result // guarded by mu
}

func newRunner(s *Scheduler, j Job, spec *spec) *runner {
	lock := hasp.LockOptions{TTL: s.opts.TTL, Grace: -1, LocalHandoffs: -1} // each run by a claim of its own
	if j.AtMost > 0 {
		if lock.TTL = min(lock.TTL, j.AtMost); j.AtMost > lock.TTL {
			lock.MaxHold = j.AtMost - lock.TTL
		} else {
			lock.NoRenew = true
		}
	}
	r := &runner{
		Scheduler: s, job: j, spec: spec, log: s.opts.Logger.With(slog.String("job", j.Name)),
		keep: min(maxKeep, max(s.opts.Late, j.CatchUp.Within)+2*s.opts.Tolerance+2*s.opts.TTL+min(maxKeep, j.Jitter)),
	}
	plain := s.client.Plain() // the client's own options are for other locks
	r.runs = plain.With(lock)
	if j.Overlap == OverlapWait { // a tick's own time begins when the run before it is over
		lock.TTL, lock.MaxHold, lock.NoRenew = s.opts.TTL, 0, false
	}
	r.ticks = plain.With(lock)
	return r
}

// usable says whether the job's keys and options can be used, before anything is sent.
func (r *runner) usable() error {
	if err := r.ticks.Mutex(r.tickKey(time.UnixMilli(1e13 - 1))).Err(); err != nil {
		return err
	}
	return r.runs.Mutex(r.key("run", r.job.Name)).Err()
}

// tickKey is the key of one tick. The keys of a job are in the order of their times.
func (r *runner) tickKey(at time.Time) string {
	return fmt.Sprintf("%s:%013d", r.key("tick", r.job.Name), at.UnixMilli())
}

func (r *runner) loop(ctx context.Context) error {
	if r.spec == nil {
		return r.lead(ctx)
	}
	var all sync.WaitGroup
	defer all.Wait()
	seen := r.opts.Now().Add(-r.job.CatchUp.Within)
	for {
		now := r.opts.Now()
		missed, due := r.since(ctx, seen, now)
		if now.After(seen) {
			seen = now
		}
		for _, at := range due {
			all.Go(func() { r.tick(ctx, at) })
		}
		if len(missed) > 0 {
			all.Go(func() {
				for _, at := range missed {
					r.tick(ctx, at)
				}
			})
		}
		next := r.spec.next(seen)
		if next.IsZero() {
			r.log.LogAttrs(ctx, slog.LevelInfo, "the job has no more ticks")
			<-ctx.Done()
			return nil
		}
		if !sleep(ctx, min(next.Sub(r.opts.Now()), maxSleep)) {
			return nil
		}
	}
}

// since answers the ticks after a time up to now: those that can begin, and those to be
// made up for.
func (r *runner) since(ctx context.Context, seen, now time.Time) (missed, due []time.Time) {
	// Older ones cannot run. After a clock was set far ahead there may be many millions.
	if oldest := now.Add(-max(r.opts.Late, r.job.CatchUp.Within) - time.Nanosecond); oldest.After(seen) {
		if at := r.spec.next(seen); !at.IsZero() && !at.After(oldest) {
			r.log.LogAttrs(ctx, slog.LevelWarn, "ticks were missed", slog.Time("tick", at), slog.Time("until", oldest))
		}
		seen = oldest
	}
	if e := r.spec.every; e > 0 { // no more of them than can count
		if first := now.Add(-max(r.opts.Late, time.Duration(r.job.CatchUp.Ticks+1)*e+r.opts.Late)); first.After(seen) {
			seen = first
		}
	}
	for at := r.spec.next(seen); !at.IsZero() && !at.After(now); at = r.spec.next(at) {
		switch age := now.Sub(at); {
		case age <= r.opts.Late:
			due = append(due, at)
		default:
			missed = append(missed, at)
		}
		if len(missed) > r.job.CatchUp.Ticks {
			missed = missed[1:]
		}
	}
	return missed, due
}

// work runs the job once, and notes what came of it.
func (r *runner) work(ctx context.Context, at time.Time) error {
	began := r.opts.Now()
	start := time.Now()
	r.note(Result{Tick: at, Began: began, Running: true})
	err := r.call(context.WithValue(ctx, tickKey{}, at))
	r.note(Result{Tick: at, Began: began, Took: time.Since(start), Err: err})
	if err != nil && ctx.Err() == nil {
		r.log.LogAttrs(ctx, slog.LevelError, "the job failed", slog.Time("tick", at), slog.Any("error", err))
	}
	return err
}

// call calls Run and takes a panic for an error. A job that ends its goroutine must not
// end the one that frees what the run holds.
func (r *runner) call(ctx context.Context) error {
	result := make(chan error, 1)
	go func() {
		returned := false
		defer func() {
			if returned {
				return
			}
			v := recover()
			if v == nil { // Goexit
				v = "runtime.Goexit"
			}
			result <- &PanicError{Job: r.job.Name, Value: v, Stack: debug.Stack()}
		}()
		err := r.job.Run(ctx)
		returned = true
		result <- err
	}()
	return <-result
}

func (r *runner) note(result Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = result
}

// jitter is a pause before a run.
func (r *runner) jitter() time.Duration {
	if r.job.Jitter <= 0 {
		return 0
	}
	return rand.N(r.job.Jitter + 1)
}

type tickKey struct{}

// At answers the scheduled time of the run that ctx is of, to tell its work from that of
// other ticks; for a job of the leader it is when the run began.
func At(ctx context.Context) (time.Time, bool) {
	at, ok := ctx.Value(tickKey{}).(time.Time)
	return at, ok
}

type leasesKey struct{}

// Leases answers what the run that ctx is of holds: the lease of its tick, and behind it,
// unless runs may overlap, the lease of the job, whose token fences one run from another.
// A job that ends something before others may follow has to look at both. It answers nil
// for a job of the leader, and outside a run.
func Leases(ctx context.Context) []*hasp.Lease {
	leases, _ := ctx.Value(leasesKey{}).([]*hasp.Lease)
	return slices.Clone(leases)
}

// PanicError says that a job panicked.
type PanicError struct {
	Job   string
	Value any
	Stack []byte
}

// Error says job and value.
func (e *PanicError) Error() string {
	return fmt.Sprintf("schedule: job %q panicked: %v", e.Job, e.Value)
}

// Unwrap returns the value, where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
