package sqllease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Pauses between two tries of a step that found another transaction in its way.
const (
	minBusyPause = 250 * time.Microsecond
	maxBusyPause = 10 * time.Millisecond
)

// result is what a call's goroutine hands to its caller.
type result[T any] struct {
	value T
	err   error
}

// Call carries out a transaction: try after try where another transaction was in the way,
// until ctx ends. It returns when ctx ends even where the database does not answer: the
// goroutine that runs the try stays behind until that has cleaned up. What a try shares
// with its caller must allow for that.
func Call[T any](ctx context.Context, c *Client, write bool, try func(context.Context) (T, error)) (T, error) {
	return detached(ctx, c, func(ctx context.Context, trouble *atomic.Pointer[error]) (T, error) {
		var value T
		err := c.retry(ctx, trouble, func() error {
			var err error
			value, err = attempt(ctx, c, write, try)
			return err
		})
		return value, err
	})
}

// attempt is one try: a place, and the place given back.
func attempt[T any](ctx context.Context, c *Client, write bool, try func(context.Context) (T, error)) (T, error) {
	var none T
	release, err := c.place(ctx, write)
	if err != nil {
		return none, err
	}
	defer release()
	if err := c.prepared(ctx); err != nil {
		return none, err
	}
	return try(ctx)
}

// detached runs work in a goroutine of its own and gives it up when ctx or the driver
// ends; work sees both ends in its ctx, and leaves word of what keeps it waiting.
func detached[T any](ctx context.Context, c *Client, work func(context.Context, *atomic.Pointer[error]) (T, error)) (T, error) {
	var none T
	if c.setup.Err != nil {
		return none, c.setup.Err
	}
	if err := c.enter(); err != nil {
		return none, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.base, cancel) //nolint:contextcheck // Close ends the call, too
	answers := make(chan result[T], 1)
	trouble := new(atomic.Pointer[error])
	ctx = context.WithValue(ctx, troubleKey{}, trouble)
	c.workers.run(func() {
		defer c.calls.Done()
		defer cancel()
		defer stop()
		value, err := work(ctx, trouble)
		answers <- result[T]{value: value, err: err}
	})
	select {
	case r := <-answers:
		return r.value, r.err
	case <-ctx.Done():
	}
	select { // an answer that came at the same time counts
	case r := <-answers:
		return r.value, r.err
	default:
	}
	if last := trouble.Load(); last != nil {
		return none, c.cut(ctx, *last)
	}
	return none, c.cut(ctx, nil)
}

// troubleKey is where a call's context has what keeps it waiting.
type troubleKey struct{}

// Note leaves word of what keeps a try waiting, for the error of a call whose context ends
// meanwhile; nil: nothing does any more. ctx is that of the try.
func Note(ctx context.Context, err error) {
	trouble, ok := ctx.Value(troubleKey{}).(*atomic.Pointer[error])
	switch {
	case !ok:
	case err == nil:
		trouble.Store(nil)
	default:
		trouble.Store(&err)
	}
}

// retry repeats one try of a transaction while another is in its way.
func (c *Client) retry(ctx context.Context, trouble *atomic.Pointer[error], try func() error) error {
	pause := minBusyPause
	for {
		err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			if last := trouble.Load(); last != nil && errors.Is(err, ctx.Err()) {
				err = *last // says more than that the time is over
			}
			return c.cut(ctx, err)
		}
		fault := c.fault(err)
		switch fault.Kind {
		case Busy:
			trouble.Store(&err)
		case Unclear:
			c.ready.forget()
			if err := c.setup.Inspect(ctx); err != nil {
				return c.explain(err, c.fault(err))
			}
			return c.explain(err, fault)
		case Unavailable, Refused, Broken:
			return c.explain(err, fault)
		}
		if !wait(ctx, pause/2+rand.N(pause)) {
			return c.cut(ctx, err)
		}
		pause = min(2*pause, maxBusyPause)
	}
}

// prepared says whether a transaction can begin.
func (c *Client) prepared(ctx context.Context) error {
	if err := c.ready.ensure(ctx, c.setup); err != nil {
		return err
	}
	if c.setup.Intact == nil {
		return nil
	}
	return c.setup.Intact()
}

// renewingKey is where the context of a renewal says that it is one.
type renewingKey struct{}

// place waits for a place on the handle.
func (c *Client) place(ctx context.Context, write bool) (release func(), err error) {
	writers := c.writers
	if renewing, _ := ctx.Value(renewingKey{}).(bool); renewing && c.renewals != nil {
		writers = c.renewals
	}
	if write {
		select {
		case writers <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		if write {
			<-writers
		}
		return nil, ctx.Err()
	}
	return func() {
		<-c.slots
		if write {
			<-writers
		}
	}, nil
}

// readiness remembers that the database was looked at and the statements are prepared.
type readiness struct {
	mu    sync.Mutex
	fresh bool // guarded by mu
}

func (r *readiness) ensure(ctx context.Context, setup Setup) error {
	r.mu.Lock()
	fresh := r.fresh
	r.mu.Unlock()
	if fresh {
		return nil
	}
	if err := setup.Inspect(ctx); err != nil {
		return err
	}
	if setup.Prepare != nil {
		if err := setup.Prepare(ctx); err != nil {
			return err
		}
	}
	r.mu.Lock()
	r.fresh = true
	r.mu.Unlock()
	return nil
}

func (r *readiness) forget() {
	r.mu.Lock()
	r.fresh = false
	r.mu.Unlock()
}

// fault classifies an error; what the engine itself refuses is left as it is.
func (c *Client) fault(err error) Fault {
	for _, class := range []error{driver.ErrRefused, driver.ErrInvalid, driver.ErrUnsupported} {
		if errors.Is(err, class) {
			return Fault{Kind: Refused}
		}
	}
	for _, busy := range []error{errClaimLocked, errLifeOver, errParting} {
		if errors.Is(err, busy) {
			return Fault{Kind: Busy, Text: busy.Error()}
		}
	}
	return c.setup.Classify(err)
}

// explain wraps a database's error once, in its class.
func (c *Client) explain(err error, f Fault) error {
	for _, class := range []error{driver.ErrRefused, driver.ErrInvalid, driver.ErrUnsupported, driver.ErrUnavailable} {
		if errors.Is(err, class) {
			return err
		}
	}
	class := driver.ErrUnavailable
	if f.Kind == Refused {
		class = driver.ErrRefused
	}
	if f.Text == "" {
		return fmt.Errorf("%s: %w: %w", c.setup.Name, class, err)
	}
	return fmt.Errorf("%s: %w: %s: %w", c.setup.Name, class, f.Text, err)
}

// cut is the error of a call whose context or driver ended.
func (c *Client) cut(ctx context.Context, last error) error {
	text := "no answer in time"
	if c.base.Err() != nil {
		text = "the driver is closed"
	} else if last != nil {
		if f := c.fault(last); f.Text != "" {
			text = f.Text
		}
	}
	return fmt.Errorf("%s: %w: %s: %w", c.setup.Name, driver.ErrUnavailable, text, ctx.Err())
}

// wait pauses; it answers false when ctx ends first.
func wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
