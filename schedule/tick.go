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
			if r.run(ctx, lease, at) {
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
	at   time.Time
	seen moment // when it was known to run; zero: never
}

// moment is a time by both clocks: the one that may be set, and the one that may stand
// still while the machine is suspended.
type moment struct{ wall, steady time.Time }

func (w *watch) now() moment { return moment{wall: w.opts.Now(), steady: time.Now()} }

// fresh says whether the key of the tick would still be held if it had been run.
func (w *watch) fresh() bool {
	now := w.now()
	if w.seen.steady.IsZero() {
		return now.wall.Sub(w.at) <= w.keep-2*w.opts.Tolerance-w.opts.TTL
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

// run runs a tick whose key this process has. It answers false where the tick is to be
// tried again.
func (r *runner) run(ctx context.Context, lease *hasp.Lease, at time.Time) bool {
	within := lease.Context(ctx)
	job, err := r.alone(within)
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
	if job != nil {
		within = job.Context(within)
	}
	if err := r.work(within, at); err != nil && within.Err() != nil {
		_ = lease.Release(ctx) // it was cut short: another process may run it
	} else {
		r.done(ctx, lease, at)
	}
	r.free(ctx, job, time.Since(start))
	return true
}

// alone takes the key of the job itself, where its runs must not overlap or have a
// shortest length; nil where they may.
func (r *runner) alone(ctx context.Context) (*hasp.Lease, error) {
	m := r.runs.Mutex(r.key("run", r.job.Name))
	switch {
	case r.job.Overlap == OverlapWait:
		return m.Lock(ctx)
	case r.job.Overlap == OverlapSkip || r.job.AtLeast > 0:
		return m.TryLock(ctx)
	}
	return nil, nil //nolint:nilnil // no lease is needed
}

// done leaves the key of a tick held, so that nobody runs it again.
func (r *runner) done(ctx context.Context, lease *hasp.Lease, at time.Time) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.opts.TTL)
	defer cancel()
	var err error
	for range keepTries {
		if err = lease.Keep(ctx, r.keep); err == nil || errors.Is(err, hasp.ErrLost) || !sleep(ctx, r.opts.TTL/(2*keepTries)) {
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
