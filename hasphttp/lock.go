package hasphttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/hasp-dev/hasp"
)

// Middleware runs handlers under the lock on the keys that key answers for each request.
// What is wrong with the arguments is answered with 500 to every request; no handler
// runs.
func Middleware(client *hasp.Client, key KeyFunc, o *Options) func(http.Handler) http.Handler {
	l := newLock(client, key, o)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			lease, within := l.take(w, r)
			if lease == nil {
				return
			}
			defer lease.Release(r.Context()) // also when the handler panics, which goes on after this
			guarded := &writer{ResponseWriter: w, lease: lease, lost: func(err error) { l.fail(w, r, err) }}
			next.ServeHTTP(guarded, within)
			guarded.finish()
		})
	}
}

// Begin is Middleware for frameworks with middleware of their own. Where it answers true
// the request carries the lease, and the caller must defer the function, which gives the
// lock back. Where it answers false the request has been answered.
//
// It cannot see what the framework writes: a handler that answers success must look at
// the Err of its lease, or at its context, before.
func Begin(w http.ResponseWriter, r *http.Request, client *hasp.Client, key KeyFunc, o *Options) (*http.Request, func(), bool) {
	lease, within := newLock(client, key, o).take(w, r)
	if lease == nil {
		return r, func() {}, false
	}
	return within, func() { _ = lease.Release(r.Context()) }, true // its failure is told to the client's observer and log
}

// lock takes the locks of requests.
type lock struct {
	client *hasp.Client
	key    KeyFunc
	opts   *Options
	log    *slog.Logger
	err    error // what is wrong with the arguments
}

func newLock(client *hasp.Client, key KeyFunc, o *Options) *lock {
	o = cmp.Or(o, new(Options))
	l := &lock{key: key, opts: o, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), err: o.check()}
	switch {
	case client == nil:
		l.err = fmt.Errorf("%w: the client is nil; make one with hasp.New", hasp.ErrInvalid)
	case key == nil:
		l.err = fmt.Errorf("%w: the KeyFunc is nil; make one with hasphttp.Key", hasp.ErrInvalid)
	}
	if l.err == nil {
		l.client = client.With(o.lock())
	}
	return l
}

// take takes the lock of a request, or answers it and no lease.
func (l *lock) take(w http.ResponseWriter, r *http.Request) (*hasp.Lease, *http.Request) {
	lease, err := l.acquire(w, r)
	if err != nil {
		l.fail(w, r, err)
		return nil, r
	}
	return lease, r.WithContext(lease.Context(r.Context()))
}

func (l *lock) acquire(w http.ResponseWriter, r *http.Request) (*hasp.Lease, error) {
	if l.err != nil {
		return nil, l.err
	}
	keys, err := l.key(r)
	if err == nil && len(keys) == 0 {
		err = fmt.Errorf("%w: the KeyFunc answered no key", hasp.ErrInvalid)
	}
	if err != nil {
		_ = l.client.NoKey(r.Context(), err) // counts it; the answer is ours
		if wrong := (*routeError)(nil); errors.As(err, &wrong) {
			return nil, err
		}
		return nil, &KeyError{Err: err}
	}
	if l.opts.Shared && len(keys) > 1 {
		return nil, fmt.Errorf("%w: %d keys for a shared lock, which has one", hasp.ErrInvalid, len(keys))
	}
	lease, err := l.try(r.Context(), keys)
	err = unlessGone(r, err)
	if l.opts.Wait > 0 && errors.Is(err, hasp.ErrHeld) {
		lease, err = l.wait(w, r, keys, err)
	}
	if errors.Is(err, hasp.ErrInvalid) && !carries(r.Context(), keys) {
		return nil, &KeyError{Err: err}
	}
	return lease, err
}

// carries says whether ctx has a lease on one of the keys, so that a lock on it cannot
// be right.
func carries(ctx context.Context, keys []string) bool {
	for _, key := range keys {
		if _, ok := hasp.FromContext(ctx, key); ok {
			return true
		}
	}
	return false
}

func (l *lock) try(ctx context.Context, keys []string) (*hasp.Lease, error) {
	if l.opts.Shared {
		return l.client.RWMutex(keys[0]).TryRLock(ctx)
	}
	return l.client.Mutex(keys[0], keys[1:]...).TryLock(ctx)
}

// wait stands in line after a try was answered with held, until the client goes away or
// the server stops, too.
func (l *lock) wait(w http.ResponseWriter, r *http.Request, keys []string, held error) (*hasp.Lease, error) {
	if !l.opts.enter() {
		return nil, held
	}
	defer l.opts.leave()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	if l.opts.Stop != nil {
		go func() {
			select {
			case <-l.opts.Stop:
				cancel(ErrStopping)
			case <-ctx.Done():
			}
		}()
	}
	switch why := l.drained(ctx, w, r); {
	case why == nil:
	case errors.Is(why, ErrStopping):
		return nil, ErrStopping
	case errors.Is(why, context.DeadlineExceeded):
		return nil, held
	default:
		return nil, errGone
	}
	lease, err := l.stand(ctx, keys)
	if err != nil && errors.Is(context.Cause(ctx), ErrStopping) {
		return nil, ErrStopping
	}
	return lease, unlessGone(r, err)
}

// drained reads the body of a request, for no longer than it may wait. It answers why that
// was ended.
func (l *lock) drained(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	if l.opts.Wait != hasp.Forever {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.opts.Wait)
		defer cancel()
	}
	if drain(ctx, w, r) {
		return nil
	}
	return context.Cause(ctx)
}

// unlessGone answers err, or that it is since the client has gone away.
func unlessGone(r *http.Request, err error) error {
	if err != nil && errors.Is(r.Context().Err(), context.Canceled) {
		return errGone
	}
	return err
}

func (l *lock) stand(ctx context.Context, keys []string) (*hasp.Lease, error) {
	if l.opts.Shared {
		return l.client.RWMutex(keys[0]).RLock(ctx)
	}
	return l.client.Mutex(keys[0], keys[1:]...).Lock(ctx)
}

// fail answers a request that did not get its lock, or lost it.
func (l *lock) fail(w http.ResponseWriter, r *http.Request, err error) {
	if Status(err) >= http.StatusInternalServerError {
		l.log.LogAttrs(r.Context(), slog.LevelError, "request not served under its lock",
			slog.String("method", r.Method), slog.String("pattern", r.Pattern), slog.Any("error", err))
	}
	if l.opts.OnError != nil {
		l.opts.OnError(w, r, err)
		return
	}
	Error(w, err)
}
