package elect

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/hasp-dev/hasp"
)

// term is one time of leading.
type term struct {
	lease  *hasp.Lease
	ctx    context.Context //nolint:containedctx // of the work
	cancel context.CancelCauseFunc
	began  time.Time
	gives  atomic.Bool   // Resign was called: the place is not to be kept
	over   chan struct{} // closed when the claim has left, or the term is lost and its work has returned
	err    error         // why the claim did not leave in good order; written before over is closed
}

// ending says what ended the context of the work before it returned.
type ending uint8

const (
	finished ending = iota // nothing did
	stopped                // the campaign's context
	closed                 // the client closes
	lost                   // the lease is lost
	resigned               // Resign
)

// result is what has come of the work.
type result struct {
	ending ending
	err    error // what the work returned
	broken bool  // it panicked or called Goexit instead
}

// serve leads for one term. It answers the lease of a new term from the same place, if
// there is one, and whether the campaign is over, with the error Run returns.
func (e *Elector) serve(ctx context.Context, lease *hasp.Lease) (next *hasp.Lease, over bool, err error) {
	if ctx.Err() != nil {
		_ = lease.Release(ctx)
		return nil, true, ctx.Err()
	}
	t := e.open(ctx, lease)
	defer t.cancel(nil)
	r := e.attend(ctx, t)
	if r.broken || e.opts.Once || r.ending != lost && r.ending != resigned {
		released := lease.Release(ctx)
		e.close(ctx, t, released)
		return nil, true, e.outcome(r, released)
	}
	if r.err != nil {
		e.opts.Logger.LogAttrs(ctx, slog.LevelInfo, "what the work returned after its term had ended",
			slog.String("election", e.name), slog.Any("error", r.err))
	}
	if r.ending == resigned {
		e.close(ctx, t, lease.Release(ctx))
		return nil, false, nil
	}
	e.close(ctx, t, lease.Err())
	if !t.gives.Load() {
		next = e.reclaim(ctx, lease)
	}
	if next == nil {
		_ = lease.Release(ctx) // only now may the store forget its place
	}
	return next, false, nil
}

// open begins a term.
func (e *Elector) open(ctx context.Context, lease *hasp.Lease) *term {
	t := &term{lease: lease, began: time.Now(), over: make(chan struct{})}
	ctx, t.cancel = context.WithCancelCause(ctx)
	t.ctx = lease.Context(ctx)
	e.mu.Lock()
	e.term, e.fault, e.overrun = t, nil, false
	e.terms++
	e.become(Leading)
	e.mu.Unlock()
	e.opts.Logger.LogAttrs(ctx, slog.LevelInfo, "term began", slog.String("election", e.name), slog.Int64("token", lease.Token()))
	return t
}

// close ends a term: its work has returned, and its claim has left or is lost.
func (e *Elector) close(ctx context.Context, t *term, err error) {
	e.mu.Lock()
	t.err = err
	e.term, e.overrun = nil, false
	e.become(Following)
	e.mu.Unlock()
	close(t.over)
	e.opts.Logger.LogAttrs(ctx, slog.LevelInfo, "term ended", slog.String("election", e.name),
		slog.Int64("token", t.lease.Token()), slog.Duration("after", time.Since(t.began)), slog.Any("error", err))
}

// attend runs the work until it has returned, and reports it if it goes on for long after
// its context has ended.
func (e *Elector) attend(ctx context.Context, t *term) result {
	worked := make(chan result, 1)
	go e.work(ctx, t, worked)
	ended := t.ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case r := <-worked:
			return r
		case <-ended:
			ended = nil
			e.drain()
			patience := time.NewTimer(e.opts.Overrun)
			defer patience.Stop()
			late = patience.C
		case <-late:
			late = nil
			e.report(ctx, t)
		}
	}
}

// work calls lead, and notes in what state it left the term.
func (e *Elector) work(ctx context.Context, t *term, done chan<- result) {
	r := result{err: errGoexit, broken: true}
	defer func() {
		if v := recover(); v != nil {
			r.err = &PanicError{Value: v, Stack: debug.Stack()}
		}
		r.ending = t.ending(ctx)
		done <- r
	}()
	err := e.lead(t.ctx) //nolint:contextcheck // it is a child of ctx
	r.err, r.broken = err, false
}

// ending is what has ended the context of the work, if something has. The end of the
// campaign counts before all others, since no term follows it.
func (t *term) ending(ctx context.Context) ending {
	switch err := t.lease.Err(); {
	case t.ctx.Err() == nil:
		return finished
	case ctx.Err() != nil:
		return stopped
	case err == nil:
		return resigned
	case errors.Is(err, hasp.ErrClosed):
		return closed
	}
	return lost
}

func (t *term) cause() error { return context.Cause(t.ctx) }

func (e *Elector) drain() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.become(Draining)
}

// report tells of work that overruns.
func (e *Elector) report(ctx context.Context, t *term) {
	e.mu.Lock()
	e.overrun = true
	e.mu.Unlock()
	e.opts.Logger.LogAttrs(ctx, slog.LevelError, "the work goes on although its context has ended; no other term begins here before it returns",
		slog.String("election", e.name), slog.Int64("token", t.lease.Token()), slog.Any("cause", t.cause()))
}

// reclaim takes up the lost lease as a new term, from its own place in line: possible
// inside TTL and Grace, and as long as nobody took the lease away. While the store does
// not answer it asks again; once it answers, it knows. nil: the place is not there any
// more.
func (e *Elector) reclaim(ctx context.Context, lease *hasp.Lease) *hasp.Lease {
	if gone := (*hasp.LostError)(nil); errors.As(lease.Err(), &gone) && (gone.Revoked || gone.Holder != "") {
		return nil
	}
	p := pacing{}
	for {
		e.try()
		next, err := lease.Reclaim(ctx)
		if err == nil || ctx.Err() != nil || !errors.Is(err, hasp.ErrUnavailable) {
			return next
		}
		e.failing(ctx, err)
		if !p.rest(ctx) {
			return nil
		}
	}
}

// outcome is what Run returns after its last term.
func (e *Elector) outcome(r result, released error) error {
	errs := []error{r.err}
	if gone := (*hasp.LostError)(nil); errors.As(released, &gone) {
		errs = append(errs, &hasp.Error{Op: "hold", Key: e.name, Err: gone})
	} else if r.err != nil && released != nil {
		errs = append(errs, released)
	}
	switch r.ending {
	case closed:
		errs = append(errs, failed("elect", e.name, hasp.ErrClosed))
	case resigned:
		errs = append(errs, failed("elect", e.name, ErrResigned))
	case finished, stopped, lost:
	}
	if errs = compact(errs); len(errs) == 1 {
		return errs[0] // lead's own error as it is
	}
	return errors.Join(errs...)
}

func compact(errs []error) []error {
	var out []error
	for _, err := range errs {
		if err != nil {
			out = append(out, err)
		}
	}
	return out
}
