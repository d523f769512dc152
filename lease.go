package hasp

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Lease is a lock that is held, until it is released or lost. Its methods may be
// called from any goroutine, and none but Extend, Release, Keep, Detach and Reclaim
// does any I/O.
type Lease struct {
	claim *claim
	outer *Lease // the lease a nested one shares; nil for a lease of its own
	asked *want  // what a nested one was asked for; nil for a lease of its own

	// guarded by the claim's lock
	cause   error         // why it ended; nil while it is held
	done    chan struct{} // made by the first Done
	parts   []*part       // what ends with it
	settled chan struct{} // made by the second of two releases at once; closed when the first has its answer
	freed   bool          // the store said that it is free, or it was handed on
	gone    bool          // the store said that it was gone before the release
}

// part is a context or a nested lease that ends with a lease.
type part struct {
	cancel context.CancelCauseFunc
	nested *Lease
}

// Keys answers the keys as they were asked for, without prefix.
func (l *Lease) Keys() []string { return slices.Clone(l.keys().given) }

func (l *Lease) keys() keySet {
	if l.asked != nil {
		return l.asked.keys
	}
	return l.claim.want.keys
}

// Token is the fencing token: each later grant that this lease excludes carries a
// larger one, on every client, across expiry and restarts (G3). It is 0 on a store
// that cannot keep that promise.
func (l *Lease) Token() int64 { return l.claim.tokenNow() }

// Shared says that others may hold at the same time, as a reader or with permits of
// their own. The token of such a lease orders, it does not fence.
func (l *Lease) Shared() bool { return l.claim.want.weight < l.claim.want.capacity }

// Ref names the claim, for a guard in the store. It prints masked.
func (l *Lease) Ref() driver.Ref {
	l.claim.mu.Lock()
	defer l.claim.mu.Unlock()
	return l.claim.ref()
}

// Driver is the driver the claim is in, for a guard in the store.
func (l *Lease) Driver() driver.Driver { return l.claim.e.drv }

// Err says why the lease is over: ErrReleased, ErrLost (as *LostError), or ErrClosed
// while the client closes. It is nil while the lease is held, and is never nil
// beyond the trust window (G2).
func (l *Lease) Err() error {
	c := l.claim
	now := c.e.clk.fresh()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(now)
	return l.cause
}

// expire ends the lease if its trust is over; c.mu is held.
func (c *claim) expire(now time.Time) {
	if c.fate != owned {
		return
	}
	if c.stay = c.stay.passed(now); c.stay.phase == over {
		c.lose(now)
	}
}

// TrustedUntil is the end of the trust window as it stands, to compare with time.Now.
// It moves with every answered renewal and stays readable after the end of the lease.
func (l *Lease) TrustedUntil() time.Time {
	c := l.claim
	now := c.e.clk.fresh()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(now)
	return c.e.clk.local(c.stay.until)
}

// Done is closed when the lease ends.
func (l *Lease) Done() <-chan struct{} {
	l.claim.mu.Lock()
	defer l.claim.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.cause != nil {
			close(l.done)
		}
	}
	return l.done
}

// Context is a child of parent that carries the lease, for FromContext and nested
// locks, and ends with it: context.Cause tells ErrLost, ErrReleased or ErrClosed.
func (l *Lease) Context(parent context.Context) context.Context {
	ctx, p := l.child(parent)
	if parent.Done() != nil {
		// a parent that ends first takes its part out, or a long lease would collect them
		context.AfterFunc(ctx, func() { l.detachPart(p) })
	}
	return ctx
}

func (l *Lease) child(parent context.Context) (context.Context, *part) {
	ctx, cancel := context.WithCancelCause(parent)
	p := &part{cancel: cancel}
	l.attach(p)
	return context.WithValue(ctx, carriedKey{}, &carried{lease: l, outer: carriedBy(parent)}), p
}

// attach makes p end with the lease.
func (l *Lease) attach(p *part) {
	l.claim.mu.Lock()
	defer l.claim.mu.Unlock()
	if l.cause != nil {
		p.end(l.cause)
		return
	}
	l.parts = append(l.parts, p)
}

func (l *Lease) detachPart(p *part) {
	l.claim.mu.Lock()
	defer l.claim.mu.Unlock()
	if i := slices.Index(l.parts, p); i >= 0 {
		l.parts = slices.Delete(l.parts, i, i+1)
	}
}

func (p *part) end(cause error) {
	if p.nested != nil {
		p.nested.end(cause)
		return
	}
	p.cancel(cause)
}

// end ends the lease for its owner, and all that hangs on it. A loss replaces
// ErrClosed, after which the lease was still kept. The claim's lock is held.
func (l *Lease) end(cause error) {
	if l.cause != nil {
		if l.cause == ErrClosed { //nolint:errorlint // the bare value is stored
			l.cause = cause
		}
		return
	}
	l.cause = cause
	if l.done != nil {
		close(l.done)
	}
	for _, p := range l.parts {
		p.end(cause)
	}
	l.parts = nil
}

// String names keys and token, for logs.
func (l *Lease) String() string {
	return fmt.Sprintf("lease %q token %d", l.keys().given, l.Token())
}

// event describes the lease to the observer; the claim's lock is held.
func (l *Lease) event(kind EventKind, op string, took time.Duration, err error) Event {
	w := l.claim.want
	return Event{Kind: kind, Op: op, Keys: w.keys.given, Label: w.opts.Label, Token: l.claim.token(), Took: took, Err: err}
}

// acquired is event for a caller without the claim's lock.
func (l *Lease) acquired(op string) Event {
	l.claim.mu.Lock()
	defer l.claim.mu.Unlock()
	return l.event(EventAcquired, op, 0, nil)
}

// token is the fencing token; c.mu is held.
func (c *claim) token() int64 {
	if !c.e.feats.Tokens {
		return 0
	}
	return blockSize*c.stay.number + int64(c.index)
}

// blockSize is how many tokens belong to one sequence number: its own and 63 for
// grants that follow it without a new number.
const blockSize = 64
