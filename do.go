package hasp

import (
	"context"
	"errors"
	"fmt"
)

func (c *Client) do(ctx context.Context, w *want, fn func(context.Context) error) error {
	if fn == nil {
		return &Error{Op: "acquire", Key: w.keys.first(), Err: invalidf("the function to run is nil")}
	}
	lease, err := c.acquire(ctx, w)
	if err != nil {
		return err
	}
	returned := false
	defer func() {
		if !returned { // fn panicked or called Goexit, which goes on after this
			_ = lease.Release(ctx) // the observer and the log are told of its failure
		}
	}()
	within, _ := lease.child(ctx)
	err = fn(within)
	returned = true
	return lease.finish(ctx, err)
}

// finish releases after fn has returned, and says what has come of it.
func (l *Lease) finish(ctx context.Context, fnErr error) error {
	released := l.Release(ctx)
	if lost := (*LostError)(nil); errors.As(released, &lost) {
		hold := &Error{Op: "hold", Key: l.keys().first(), Err: lost}
		if fnErr == nil {
			return hold
		}
		return errors.Join(fnErr, hold)
	}
	if fnErr == nil || released == nil {
		return fnErr // a failed release alone is told to the observer and the log
	}
	return errors.Join(fnErr, released)
}

// Wrap makes a function that runs next under the mutex on the key that key answers
// for its argument. Where key fails, next does not run.
func Wrap[In, Out any](
	c *Client, key func(In) (string, error), next func(context.Context, In) (Out, error),
) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		var out Out
		name, err := key(in)
		if err != nil {
			return out, c.NoKey(ctx, err)
		}
		err = c.Mutex(name).Do(ctx, func(ctx context.Context) (err error) {
			out, err = next(ctx, in)
			return err
		})
		return out, err
	}
}

// NoKey is for code that makes keys of requests or arguments, where one gives no key: the
// client's observer is told of a refused call without keys, so that these are counted as
// all others are. It returns what to answer, an [*Error] that matches [ErrInvalid] and err.
// [Wrap], hasphttp, haspgrpc and the decorators of haspgen call it.
func (c *Client) NoKey(ctx context.Context, err error) error {
	err = &Error{Op: "acquire", Err: fmt.Errorf("%w: no key: %w", ErrInvalid, err)}
	c.e.obs.now(ctx, Event{Kind: EventRefused, Op: "acquire", Label: c.lock.Label, Err: err})
	return err
}
