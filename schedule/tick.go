package schedule

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/hasp-dev/hasp"
)

// retryPause is the pause before a store that did not answer is asked again.
const retryPause = time.Second

// keepTries is how often a run that is over is written down, where the store does not
// answer.
const keepTries = 5

// tick runs a tick, unless another process does or did.
//
// Who gets the tick's key runs it and leaves the key held. Who does not get it looks why:
// where the key is kept the tick is done; where it is held somebody runs it, and is
// watched until it is done or has died. What must never happen is that this process gets
// the key of a tick that is done since the key has expired: so it only asks while a key
// that was ever kept would be there, by its own clock before and after.
func (r *runner) tick(ctx context.Context, at time.Time) {
	if !sleep(ctx, r.jitter()) {
		return
	}
	w := watch{runner: r, at: at}
	w.found = w.now()
	for w.fresh() {
		asked := w.now()
		lease, err := r.ticks.Mutex(r.tickKey(at)).TryLock(ctx)
		var pause time.Duration
		switch {
		case err == nil && !w.fresh():
			_ = lease.Release(ctx) // told to the client's observer and log
			w.giveUp(ctx)
			return
		case err == nil:
			if w.run(ctx, lease) {
				return
			}
			pause = retryPause
		case errors.Is(err, hasp.ErrHeld):
			state, rest := r.look(ctx, at)
			switch state {
			case tickDone:
				return
			case tickRuns:
				w.seen = asked
			case tickUnknown:
			}
			pause = rest
		case errors.Is(err, hasp.ErrClosed), errors.Is(err, hasp.ErrInvalid):
			w.failed(ctx, err)
			return
		default:
			w.failed(ctx, err)
			pause = retryPause
		}
		if !sleep(ctx, pause) {
			return
		}
	}
	w.giveUp(ctx)
}

// tickState is what a look at a tick's key tells.
type tickState uint8

const (
	tickUnknown tickState = iota // no answer, or nobody has it any more
	tickRuns
	tickDone
)

// look says what became of a tick whose key was held, and when to ask for it again.
func (r *runner) look(ctx context.Context, at time.Time) (tickState, time.Duration) {
	line, err := r.ticks.Inspect(ctx, r.tickKey(at))
	if err != nil {
		return tickUnknown, retryPause
	}
	state, rest := tickUnknown, time.Duration(0)
	for _, h := range line.Holders {
		if h.Kept {
			return tickDone, 0
		}
		state, rest = tickRuns, max(rest, h.ExpiresIn)
	}
	return state, min(rest, r.opts.TTL) + time.Millisecond
}

// watch is what a process knows of a tick that it has not run yet.
type watch struct {
	*runner
	at    time.Time
	found moment // when the watch began
	seen  moment // when it was known to run; zero: never
}

// moment is a time by both clocks: the one that may be set, and the one that may stand
// still while the machine is suspended.
type moment struct{ wall, steady time.Time }

func (w *watch) now() moment { return moment{wall: w.opts.Now(), steady: time.Now()} }

// fresh says whether the key of the tick would still be held if it had been run.
func (w *watch) fresh() bool {
	now := w.now()
	if w.seen.steady.IsZero() {
		age := max(now.wall.Sub(w.at), w.found.wall.Sub(w.at)+now.steady.Sub(w.found.steady))
		return age <= w.keep-2*w.opts.Tolerance-w.opts.TTL
	}
	return max(now.wall.Sub(w.seen.wall), now.steady.Sub(w.seen.steady)) <= w.keep-w.opts.TTL
}

func (w *watch) giveUp(ctx context.Context) {
	w.log.LogAttrs(ctx, slog.LevelWarn, "a tick was given up: it could not begin in time", slog.Time("tick", w.at))
}

func (w *watch) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		w.log.LogAttrs(ctx, slog.LevelWarn, "a tick could not be locked", slog.Time("tick", w.at), slog.Any("error", err))
	}
}

// run runs the tick, whose key this process has. It answers false where the tick is to be
// tried again.
func (w *watch) run(ctx context.Context, lease *hasp.Lease) bool {
	r, at := w.runner, w.at
	within := lease.Context(ctx)
	job, err := w.alone(within)
	switch {
	case err == nil:
	case errors.Is(err, hasp.ErrHeld) && ctx.Err() == nil && lease.Err() == nil:
		r.log.LogAttrs(ctx, slog.LevelInfo, "a tick was dropped: the job still runs", slog.Time("tick", at))
		r.done(ctx, lease, at)
		return true
	default:
		_ = lease.Release(ctx) // told to the client's observer and log
		return ctx.Err() != nil
	}
	start := time.Now()
	leases := []*hasp.Lease{lease}
	if job != nil {
		within = job.Context(within)
		leases = append(leases, job)
	}
	within = context.WithValue(within, leasesKey{}, leases)
	err = r.work(within, at)
	short := err != nil && within.Err() != nil
	if !short {
		r.done(ctx, lease, at)
	}
	r.free(ctx, job, time.Since(start))
	if short { // another process may run it, and must not find the job still running
		_ = lease.Release(ctx) // told to the client's observer and log
	}
	return true
}

// alone takes the key of the job itself, where its runs must not overlap or have a
// shortest length; nil where they may.
func (w *watch) alone(ctx context.Context) (*hasp.Lease, error) {
	key := w.key("run", w.job.Name)
	switch {
	case w.job.Overlap == OverlapWait:
		return w.runs.Mutex(key).Lock(ctx)
	case w.job.Overlap == OverlapAllow && w.job.AtLeast == 0:
		return nil, nil //nolint:nilnil // no lease is needed
	case w.seen.steady.IsZero():
		return w.runs.Mutex(key).TryLock(ctx)
	}
	// Taken over from a process that died: its key of the job may expire a little later.
	return w.runs.With(hasp.LockOptions{Wait: w.opts.TTL}).Mutex(key).Lock(ctx)
}

// done leaves the key of a tick held, so that nobody runs it again.
func (r *runner) done(ctx context.Context, lease *hasp.Lease, at time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.opts.TTL)
	defer cancel()
	var err error
	for range keepTries {
		err = lease.Keep(ctx, r.keep)
		if errors.Is(err, hasp.ErrReleased) { // by the job
			return
		}
		if err == nil || errors.Is(err, hasp.ErrLost) || !sleep(ctx, r.opts.TTL/(2*keepTries)) {
			break
		}
	}
	if err != nil {
		r.log.LogAttrs(ctx, slog.LevelError, "a tick that ran could not be noted, and may run again", slog.Time("tick", at), slog.Any("error", err))
	}
}

// free gives back the key of the job, or leaves it held for the rest of AtLeast.
func (r *runner) free(ctx context.Context, job *hasp.Lease, took time.Duration) {
	if job == nil {
		return
	}
	if rest := r.job.AtLeast - took; rest > 0 {
		_ = job.Keep(context.WithoutCancel(ctx), rest) // told to the client's observer and log
		return
	}
	_ = job.Release(ctx) // told to the client's observer and log
}
