//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hasp-dev/hasp"
)

const (
	// leaveLimit bounds what a signal during the waiting still waits for.
	leaveLimit = 100 * time.Millisecond
	// lossLimit bounds what a loss still waits for: a store that did not answer a renewal
	// is hardly there to be told.
	lossLimit = time.Second
	// nestedLimit bounds the look for a key that is held by the command around this one.
	nestedLimit = time.Second
)

// runner takes one job from the line to its exit code.
type runner struct {
	*app
	job     job
	proof   func() *os.File // the file that proves to others that the holder lives; nil: none
	signals <-chan os.Signal
	renewed chan struct{} // there is something new to tell the guard
	leave   time.Time     // when hasp ends at the latest, once nothing of the command runs; zero: not yet
}

// run does the job. Its result is an exit code that is already explained, or an error.
func (a *app) run(ctx context.Context, j job) error {
	caught := listen()
	defer signal.Stop(caught)
	r := &runner{app: a, job: j, signals: caught, renewed: make(chan struct{}, 1)}
	store, err := a.connect(ctx, &hasp.Options{Lock: j.lock, Observe: r.observe})
	if err != nil {
		return err
	}
	if d, ok := store.store.Driver().(interface{ LockFile() *os.File }); ok {
		r.proof = d.LockFile
	}
	code, err := r.hold(ctx, store)
	r.part(ctx, store)
	if err != nil {
		return err
	}
	return exited(code)
}

// observe is told by the client of every renewal.
func (r *runner) observe(_ context.Context, ev hasp.Event) {
	if ev.Kind != hasp.EventRenewed {
		return
	}
	select {
	case r.renewed <- struct{}{}:
	default:
	}
}

// hold gets the keys, runs the command and gives the keys back.
func (r *runner) hold(ctx context.Context, store *opened) (int, error) {
	if err := r.refuseNested(ctx, store); err != nil {
		return 0, err
	}
	lease, err := r.acquire(ctx, store)
	if err != nil {
		return 0, r.explain(ctx, store, err)
	}
	s, err := r.launch(store.url, lease)
	if err != nil {
		if released := lease.Release(ctx); !errors.Is(released, hasp.ErrLost) {
			err = errors.Join(err, released)
		}
		return 0, err
	}
	end := s.watch()
	return r.finish(ctx, lease, end)
}

// launch starts the command, unless the lease was lost since it was granted.
func (r *runner) launch(url string, lease *hasp.Lease) (*supervision, error) {
	if err := lease.Err(); err != nil {
		return nil, err
	}
	return r.start(url, lease)
}

// interrupted is a signal that ended the waiting.
type interrupted syscall.Signal

func (i interrupted) Error() string { return "ended by signal: " + syscall.Signal(i).String() }

// acquire stands in line until the keys are held, or a signal comes.
func (r *runner) acquire(ctx context.Context, store *opened) (*hasp.Lease, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type result struct {
		lease *hasp.Lease
		err   error
	}
	answer := make(chan result, 1)
	go func() {
		lease, err := r.line(ctx, store.Client)
		answer <- result{lease, err}
	}()
	for {
		select {
		case got := <-answer:
			var sig interrupted
			if !errors.As(context.Cause(ctx), &sig) {
				return got.lease, got.err
			}
			r.depart(ctx, store, got.lease)
			return nil, sig
		case sig := <-r.signals:
			if ends(sig) {
				cancel(interrupted(number(sig)))
			}
		}
	}
}

// depart leaves the line, or gives back what was granted in the same moment. It waits
// no longer than a signal may.
func (r *runner) depart(ctx context.Context, store *opened, lease *hasp.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
	defer cancel()
	_ = bounded(ctx, func() error {
		if lease != nil {
			_ = lease.Release(ctx)
		}
		return store.close(ctx)
	})
}

// ended notes that nothing of the command runs any more, and how long giving back and
// closing may take together.
func (r *runner) ended(end ending) {
	limit := closeLimit
	if end.lost() {
		limit = lossLimit
	}
	r.leave = time.Now().Add(limit)
}

// part ends the client, in what is left of the time.
func (r *runner) part(ctx context.Context, store *opened) {
	limit := closeLimit
	if !r.leave.IsZero() {
		limit = max(leaveLimit, time.Until(r.leave))
	}
	disconnect(ctx, store, limit)
}

func (r *runner) line(ctx context.Context, client *hasp.Client) (*hasp.Lease, error) {
	switch {
	case r.job.shared:
		return client.RWMutex(r.job.keys[0]).RLock(ctx)
	case r.job.permits.of > 0:
		return client.Semaphore(r.job.keys[0], r.job.permits.of).Acquire(ctx, r.job.permits.take)
	}
	return client.Mutex(r.job.keys[0], r.job.keys[1:]...).Lock(ctx)
}

// explain gives an error of acquire its exit code, and says who is in the way.
func (r *runner) explain(ctx context.Context, store *opened, err error) error {
	var sig interrupted
	if errors.As(err, &sig) {
		return &failure{code: exitSignal + int(sig), kind: "interrupted", err: err}
	}
	var held *hasp.HeldError
	if !errors.As(err, &held) {
		return err
	}
	c := &conflict{
		Key: held.Key, Holder: held.Holder,
		ExpiresIn: held.ExpiresIn.Milliseconds(), Waited: held.Waited.Milliseconds(),
	}
	text := printable(held.Key) + " is held"
	if key, s, ok := r.holder(ctx, store); ok {
		c.Key, c.Holder = key, s.Name
		c.InLine, c.ExpiresIn = s.InLine.Milliseconds(), s.ExpiresIn.Milliseconds()
		text = fmt.Sprintf("%s is held by %s, in line for %s, %s left unless it renews", printable(key), s.Name, short(s.InLine), short(s.ExpiresIn))
	} else if held.Holder != "" {
		text += " by " + held.Holder
	}
	if held.Waited > 0 {
		text += "; waited " + short(held.Waited)
	}
	return &failure{code: r.job.conflict, kind: "held", err: errors.New(text), held: c}
}

// holder looks who holds the first of the keys that somebody holds.
func (r *runner) holder(ctx context.Context, store *opened) (string, hasp.Standing, bool) {
	ctx, cancel := context.WithTimeout(ctx, leaveLimit)
	defer cancel()
	for _, key := range r.job.keys {
		l, err := store.Inspect(ctx, key)
		if err != nil {
			return "", hasp.Standing{}, false
		}
		if len(l.Holders) > 0 {
			return key, l.Holders[0], true
		}
	}
	return "", hasp.Standing{}, false
}

// finish gives the keys back, now that nothing runs any more, and answers the exit
// code.
func (r *runner) finish(ctx context.Context, lease *hasp.Lease, end ending) (int, error) {
	r.ended(end)
	leaving, cancel := context.WithDeadline(ctx, r.leave)
	defer cancel()
	err := bounded(leaving, func() error { return lease.Release(ctx) })
	switch {
	case end.lost() || errors.Is(err, hasp.ErrLost):
		r.tell(&failure{code: exitLost, kind: "lost", err: end.lossError(r.job, err)})
		return exitLost, nil
	case err != nil:
		r.warn("unreleased", fmt.Errorf("%w; the lease expires by itself", err))
	}
	if err := end.startError(r.job); err != nil {
		return 0, err
	}
	if end.guardDied {
		r.warn("guard_died", errors.New("the guard was killed, so the command was too"))
	}
	return end.code(), nil
}
