//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/schedule"
)

// clockwork runs a command at each tick.
type clockwork struct {
	*app
	timetable timetable
	url       string
	proof     func() *os.File         // as that of a runner
	cancel    context.CancelCauseFunc // begins no more ticks

	mu   sync.Mutex
	runs map[*runner]chan<- os.Signal // those that have begun; guarded by mu
	last chan struct{}                // the last of them has ended
}

// cron runs the command until a signal comes.
func (a *app) cron(ctx context.Context, t timetable) error {
	c := &clockwork{app: a, timetable: t, runs: make(map[*runner]chan<- os.Signal), last: make(chan struct{}, 1)}
	t.when.Run = c.run
	if err := t.when.Check(); err != nil {
		return err
	}
	if _, err := findFile(t.command[0], a.env.get("PATH")); err != nil {
		return startError(t.command[0], err)
	}
	caught := listen()
	defer signal.Stop(caught)
	store, err := a.connect(ctx, &hasp.Options{Observe: c.observe})
	if err != nil {
		return err
	}
	c.url = store.url
	if d, ok := store.store.Driver().(interface{ LockFile() *os.File }); ok {
		c.proof = d.LockFile
	}
	err = c.serve(ctx, caught, store, t.when)
	var sig interrupted
	if errors.As(err, &sig) {
		(&runner{app: a}).depart(ctx, store, nil)
	} else {
		a.disconnect(ctx, store)
	}
	return err
}

// serve runs the schedule, and passes signals on.
func (c *clockwork) serve(ctx context.Context, caught <-chan os.Signal, store *opened, job schedule.Job) error {
	s, err := schedule.New(store.Client, &schedule.Options{TTL: c.timetable.ttl, Logger: slog.New(teller{c.app, "schedule"})})
	if err == nil {
		err = s.Add(job)
	}
	if err != nil {
		return err
	}
	ctx, c.cancel = context.WithCancelCause(ctx)
	defer c.cancel(nil)
	done := make(chan error, 1)
	go func() {
		err := store.Ping(ctx)
		if err == nil {
			err = s.Run(ctx)
		}
		done <- err
	}()
	var late <-chan time.Time
	for {
		select {
		case sig := <-caught:
			if ends(sig) {
				c.cancel(interrupted(number(sig)))
			}
			c.pass(sig)
		case <-c.last:
			if ctx.Err() != nil { // what is left is to tell a store, which may be away
				late = time.After(closeLimit)
			}
		case <-late:
			return verdict(context.Cause(ctx), nil)
		case err := <-done:
			return verdict(context.Cause(ctx), err)
		}
	}
}

// verdict says why the schedule has ended.
func verdict(cause, err error) error {
	var sig interrupted
	switch {
	case errors.As(cause, &sig):
		return &failure{code: exitSignal + int(sig), kind: "interrupted", err: sig}
	case cause != nil:
		return cause
	}
	return err
}

// pass passes a signal on to all that run. Who does not listen has ended.
func (c *clockwork) pass(sig os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, signals := range c.runs {
		select {
		case signals <- sig:
		default:
		}
	}
}

// observe is told by the client of every renewal.
func (c *clockwork) observe(ctx context.Context, ev hasp.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.runs {
		r.observe(ctx, ev)
	}
}

// run runs the command for one tick. It is called by the scheduler.
func (c *clockwork) run(ctx context.Context) error {
	at, _ := schedule.At(ctx)
	leases := schedule.Leases(ctx)
	r := c.begin(at, leases[len(leases)-1])
	defer c.end(r)
	if ctx.Err() != nil { // a signal that came before the beginning was not passed on
		return ctx.Err()
	}
	s, err := r.start(c.url, leases...)
	if err != nil {
		c.cancel(err)
		return err
	}
	end := s.watch()
	if err := end.startError(r.job); err != nil && !end.lost() {
		c.cancel(err) // the tick is left to a machine that has the command
		return err
	}
	return c.outcome(ctx, r, leases[0], end)
}

// begin makes the runner of one tick. Whoever passes a signal on knows it from now on.
func (c *clockwork) begin(at time.Time, lease *hasp.Lease) *runner {
	signals := make(chan os.Signal, 32)
	r := &runner{app: c.app, job: c.timetable.job, proof: c.proof, signals: signals, renewed: make(chan struct{}, 1)}
	r.job.keys = lease.Keys()
	r.job.environment = []string{"HASP_TICK=" + at.UTC().Format(time.RFC3339Nano)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs[r] = signals
	return r
}

func (c *clockwork) end(r *runner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.runs, r)
	if len(c.runs) > 0 {
		return
	}
	select {
	case c.last <- struct{}{}:
	default:
	}
}

// outcome tells the scheduler what has become of a tick: nil, or an error while ctx goes
// on, and it is done; an error after the end of ctx, and another process may run it.
func (c *clockwork) outcome(ctx context.Context, r *runner, tick *hasp.Lease, end ending) error {
	switch {
	case end.lost():
		err := end.lossError(r.job, nil)
		c.warn("lost", err)
		if ctx.Err() != nil {
			return err
		}
		_ = tick.Release(ctx) // a renewal was answered after all: the tick was cut short
		return nil
	case end.guardDied:
		c.warn("guard_died", errors.New("the guard was killed, so the command was too"))
		_ = tick.Release(ctx) // likewise
		return nil
	case end.code() != exitOK:
		return fmt.Errorf("%s: %w", printable(r.job.command[0]), exited(end.code()))
	}
	return nil
}
