package hasp

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Client gives locks on one store. It is safe for concurrent use; a program needs
// one, and derives others from it with Sub and With.
type Client struct {
	e       *engine
	prefix  string
	lock    LockOptions
	err     error // invalid options of With, for the first call
	derived bool
}

// New makes a client of the store that d speaks to, with nil for the default options.
// It does no I/O, and reports what the driver's constructor found wrong.
func New(d driver.Driver, opts *Options) (*Client, error) {
	if v := reflect.ValueOf(d); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, &Error{Op: "new", Err: invalidf("the driver is nil; make one with memlease, sqlitelease or another backend")}
	}
	if opts == nil {
		opts = &Options{}
	}
	o, err := opts.resolve()
	if err = errors.Join(err, d.Features().Err); err != nil {
		return nil, &Error{Op: "new", Err: err}
	}
	return &Client{e: newEngine(d, o), prefix: o.Prefix, lock: o.Lock}, nil
}

// Ping proves that the store is reachable, that schema, settings and rights fit, and
// that signals arrive. hasp does the same once before the first lock.
func (c *Client) Ping(ctx context.Context) error {
	err := c.e.usable()
	if err == nil {
		c.e.launch()
		err = c.e.persist(ctx, c.e.closing, answerLimit, c.e.drv.Check)
	}
	if err != nil {
		return &Error{Op: "ping", Err: err}
	}
	return nil
}

// Sub derives a client whose keys have prefix put after this client's. It shares
// connections, renewer and listener; closing is the first client's matter.
func (c *Client) Sub(prefix string) *Client {
	sub := *c
	sub.prefix += prefix
	sub.derived = true
	return &sub
}

// With derives a client with other lock options: zero fields keep this client's,
// negative ones mean none, booleans can only be switched on. What is invalid comes
// back from the first call.
func (c *Client) With(o LockOptions) *Client {
	with := *c
	with.derived = true
	var err error
	with.lock, err = c.lock.with(o).resolve()
	if err != nil {
		with.err = errors.Join(c.err, fmt.Errorf("%w: %w", ErrInvalid, err))
	}
	return &with
}

// Plain derives a client whose locks wait, renew and nest as by default, whatever this
// client's options say; TTL, Grace, Label and the pauses of Backoff stay. With can switch
// NoRenew and Reentrant on but not off, and there are locks that live by being renewed:
// those of elect and schedule.
func (c *Client) Plain() *Client {
	plain := *c
	plain.derived = true
	plain.lock = LockOptions{
		TTL: c.lock.TTL, Grace: c.lock.Grace, Wait: Forever, Backoff: c.lock.Backoff, Label: c.lock.Label,
	}
	plain.lock.Backoff.MaxAttempts = 0
	return &plain
}

// Close refuses new calls, ends waits with ErrClosed and the contexts of held leases
// with cause ErrClosed, and goes on renewing until their owners have released them or
// ctx ends. What is held then is not released, since its owner may be working: it
// expires, and Close answers an error that names the keys (G11). So give it time: a ctx of
// its own with a time limit, not the one whose end is the reason for closing. A second
// call waits for the first. On a derived client it is ErrInvalid.
func (c *Client) Close(ctx context.Context) error {
	if c.derived {
		return &Error{Op: "close", Err: invalidf("this client is derived from another by Sub or With; close that one")}
	}
	if err := c.e.close(ctx, c.prefix); err != nil {
		return &Error{Op: "close", Err: err}
	}
	return nil
}

func (e *engine) close(ctx context.Context, prefix string) error {
	e.mu.Lock()
	if e.shut {
		e.mu.Unlock()
		select { // another call closes, or has closed
		case <-e.gone:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	e.shut = true
	close(e.closing)
	e.mu.Unlock()
	for _, c := range e.all() {
		c.mu.Lock()
		switch c.fate { //nolint:exhaustive // the others end by themselves
		case owned:
			c.lease.end(ErrClosed)
		case lingering:
			c.retire(e.clk.now())
		}
		c.mu.Unlock()
	}
	defer close(e.gone)
	held := e.drain(ctx)
	for i, key := range held {
		held[i] = strings.TrimPrefix(key, prefix)
	}
	e.mu.Lock()
	e.closed.Store(true) // with the lock: launch begins tasks before it or not at all
	e.mu.Unlock()
	e.end()
	e.tasks.Wait()
	last := newBudget(context.WithoutCancel(ctx), answerLimit)
	defer last.end()
	err := e.drv.Close(last) //nolint:contextcheck // last inherits from ctx
	if len(held) > 0 {
		err = errors.Join(fmt.Errorf("still held and not released, so that they expire by themselves: %q", held), err)
	}
	e.obs.now(ctx, Event{Kind: EventClosed, Op: "close", Keys: held, Err: err})
	return err
}

// drain waits until every lease is back and every Leave answered, the latter for a
// limited time, and answers the keys of the leases that are not back.
func (e *engine) drain(ctx context.Context) []string {
	var limit <-chan time.Time
	for {
		e.mu.Lock()
		change := e.change
		e.mu.Unlock()
		held, open := e.outstanding()
		if !open {
			return held
		}
		if len(held) == 0 && limit == nil {
			t := time.NewTimer(answerLimit)
			defer t.Stop()
			limit = t.C
		}
		select {
		case <-change:
		case <-limit:
			return held
		case <-ctx.Done():
			return held
		}
	}
}

// outstanding answers the keys of leases not given back, and whether anything is
// still to be waited for.
func (e *engine) outstanding() (held []string, open bool) {
	for _, c := range e.all() {
		c.mu.Lock()
		switch c.fate {
		case owned, releasing:
			if c.fate == releasing || c.lease.lost() == nil {
				held = append(held, c.want.keys.full...)
				open = true
			}
		case wanted, leaving, lingering:
			open = true
		case parked, finished:
		}
		c.mu.Unlock()
	}
	slices.Sort(held)
	return slices.Compact(held), open
}
