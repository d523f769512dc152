package sqllease

import (
	"context"
	"database/sql"
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

// transact runs work in one write transaction, again where another transaction was in
// the way, until ctx ends. It returns when ctx ends even where the database does not:
// the goroutine that runs the work stays behind until it has cleaned up.
func transact[T any](ctx context.Context, d *Driver, work func(*tx) (T, error)) (T, error) {
	return detached(ctx, d, func(ctx context.Context, trouble *atomic.Pointer[error]) (T, error) {
		var value T
		err := d.retry(ctx, trouble, func() error {
			var err error
			value, err = attempt(ctx, d, nil, work)
			return err
		})
		return value, err
	})
}

// read runs work in one read transaction, which needs no other's consent.
func read[T any](ctx context.Context, d *Driver, work func(*tx) (T, error)) (T, error) {
	return detached(ctx, d, func(ctx context.Context, trouble *atomic.Pointer[error]) (T, error) {
		var value T
		err := d.retry(ctx, trouble, func() error {
			var err error
			value, err = attempt(ctx, d, &sql.TxOptions{ReadOnly: true}, work)
			return err
		})
		return value, err
	})
}

// detached runs work in a goroutine of its own and gives it up when ctx or the driver
// ends; work sees both ends in its ctx, and leaves word of what keeps it waiting.
func detached[T any](ctx context.Context, d *Driver, work func(context.Context, *atomic.Pointer[error]) (T, error)) (T, error) {
	var none T
	if d.err != nil {
		return none, d.err
	}
	if err := d.enter(); err != nil {
		return none, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(d.base, cancel) //nolint:contextcheck // Close ends the call, too
	answers := make(chan result[T], 1)
	trouble := new(atomic.Pointer[error])
	d.workers.run(func() {
		defer d.calls.Done()
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
		return none, d.cut(ctx, *last)
	}
	return none, d.cut(ctx, nil)
}

// retry repeats one try of a transaction while another is in its way.
func (d *Driver) retry(ctx context.Context, trouble *atomic.Pointer[error], try func() error) error {
	pause := minBusyPause
	for {
		err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return d.cut(ctx, err)
		}
		fault := d.fault(err)
		switch fault.Kind {
		case Busy:
			trouble.Store(&err)
		case Unclear:
			d.ready.forget()
			if err := d.dialect.Inspect(ctx, d.db, d.tables); err != nil {
				return d.explain(err, d.fault(err))
			}
			return d.explain(err, fault)
		case Unavailable, Refused:
			return d.explain(err, fault)
		}
		if !wait(ctx, pause/2+rand.N(pause)) {
			return d.cut(ctx, err)
		}
		pause = min(2*pause, maxBusyPause)
	}
}

// attempt is one try: a place, a connection, a transaction, and all given back. Once the
// transaction has its lock its work is bounded, so it is not cut short: a cancelled
// call cannot leave a half-done transaction behind.
func attempt[T any](ctx context.Context, d *Driver, opts *sql.TxOptions, work func(*tx) (T, error)) (T, error) {
	var none T
	release, err := d.place(ctx, opts == nil)
	if err != nil {
		return none, err
	}
	defer release()
	if err := d.prepared(ctx); err != nil {
		return none, err
	}
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return none, err
	}
	defer conn.Close() // a broken one is dropped by the pool
	stx, err := conn.BeginTx(context.WithoutCancel(ctx), opts)
	if err != nil {
		return none, err
	}
	defer stx.Rollback() //nolint:errcheck // after Commit it does nothing
	t := &tx{d: d, sql: stx}
	if opts == nil {
		if err := t.lock(ctx); err != nil {
			return none, err
		}
	}
	t.ctx = context.WithoutCancel(ctx)
	value, err := work(t)
	if err != nil {
		return none, err
	}
	if err := stx.Commit(); err != nil {
		return none, err
	}
	for _, f := range t.after {
		f()
	}
	return value, nil
}

// prepared says whether a transaction can begin.
func (d *Driver) prepared(ctx context.Context) error {
	if err := d.ready.ensure(ctx, d); err != nil {
		return err
	}
	if d.dialect.Intact == nil {
		return nil
	}
	return d.dialect.Intact()
}

// place waits for a place on the handle.
func (d *Driver) place(ctx context.Context, write bool) (release func(), err error) {
	var writers chan struct{}
	if write {
		writers = d.writers
		select {
		case writers <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		if write {
			<-writers
		}
		return nil, ctx.Err()
	}
	return func() {
		<-d.slots
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

func (r *readiness) ensure(ctx context.Context, d *Driver) error {
	r.mu.Lock()
	fresh := r.fresh
	r.mu.Unlock()
	if fresh {
		return nil
	}
	if err := d.dialect.Inspect(ctx, d.db, d.tables); err != nil {
		return err
	}
	if err := d.stmts.prepareAll(ctx, d.db); err != nil {
		return err
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
func (d *Driver) fault(err error) Fault {
	for _, class := range []error{driver.ErrRefused, driver.ErrInvalid, driver.ErrUnsupported} {
		if errors.Is(err, class) {
			return Fault{Kind: Refused}
		}
	}
	return d.dialect.Classify(err)
}

// explain wraps a database's error once, in its class.
func (d *Driver) explain(err error, f Fault) error {
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
		return fmt.Errorf("%s: %w: %w", d.dialect.Name, class, err)
	}
	return fmt.Errorf("%s: %w: %s: %w", d.dialect.Name, class, f.Text, err)
}

// cut is the error of a call whose context or driver ended.
func (d *Driver) cut(ctx context.Context, last error) error {
	text := "no answer in time"
	if d.base.Err() != nil {
		text = "the driver is closed"
	} else if last != nil {
		if f := d.fault(last); f.Text != "" {
			text = f.Text
		}
	}
	return fmt.Errorf("%s: %w: %s: %w", d.dialect.Name, driver.ErrUnavailable, text, ctx.Err())
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
