package hasp

import (
	"context"
	"errors"

	"github.com/hasp-dev/hasp/driver"
)

// Resume takes over the lease of a ticket, once: a second Resume of it, one after its
// time, or one at another store is ErrNotHeld. The new lease has this client's
// options and a larger token than the one that was detached.
func (c *Client) Resume(ctx context.Context, t Ticket) (*Lease, error) {
	p := t.place()
	keys, err := p.keys(c.prefix)
	if err != nil {
		return nil, &Error{Op: "resume", Err: err}
	}
	w := &want{keys: keys, kind: kindOf(p.weight, p.capacity), weight: p.weight, capacity: p.capacity, opts: c.lock, err: c.err}
	if p.index == blockSize-1 {
		w.err = errors.Join(w.err, invalidf("the ticket's tokens are used up"))
	}
	lease, err := c.takeOver(ctx, w, p.ref, p.index+1)
	if err != nil {
		return nil, &Error{Op: "resume", Key: keys.first(), Err: err}
	}
	return lease, nil
}

// Reclaim takes a lost lease up again as a new one, with a larger token, from its own
// place in the line: possible while the store still has it, that is inside TTL +
// Grace and before Release, and as long as nobody ended it. The work of the lost lease
// must be over. ErrLost says that it is not there any more.
func (l *Lease) Reclaim(ctx context.Context) (*Lease, error) {
	lease, err := l.reclaim(ctx)
	if err != nil {
		return nil, l.op("reclaim", err)
	}
	return lease, nil
}

func (l *Lease) reclaim(ctx context.Context) (*Lease, error) {
	c := l.claim
	err := l.Err()
	lost := (*LostError)(nil)
	switch {
	case l.outer != nil:
		return nil, invalidf("a nested lease shares its outer one; reclaim that")
	case err == nil:
		return nil, invalidf("the lease is still held")
	case !errors.As(err, &lost):
		return nil, err
	}
	c.mu.Lock()
	ref, there := c.ref(), c.fate == owned
	c.mu.Unlock()
	if !there || c.index == blockSize-1 {
		return nil, lost
	}
	ctx, done := l.outlived(ctx)
	defer done()
	client := &Client{e: c.e}
	lease, err := client.takeOver(ctx, c.want, ref, c.index+1)
	if errors.Is(err, ErrNotHeld) {
		return nil, lost
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fate == owned {
		c.e.forget(c) // its place is the new lease's
		l.gone = true
	}
	return lease, nil
}

// takeOver puts a new claim into the place of the stay that ref names.
func (c *Client) takeOver(ctx context.Context, w *want, ref driver.Ref, index uint8) (*Lease, error) {
	if err := c.check(w); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a := acquisition{e: c.e, want: w, start: c.e.clk.now()}
	a.now = a.start
	if err := a.ready(ctx); err != nil {
		return nil, err
	}
	claim, err := c.e.newClaim(w, index)
	if err != nil {
		return nil, err
	}
	a.claim = claim
	if err := a.enter(ctx, driver.Join{Resume: &ref}); err != nil {
		return nil, err
	}
	switch _, v := a.look(); v {
	case granted:
		if c.e.obs.tell != nil {
			ev := claim.lease.acquired("resume")
			ev.Took = c.e.clk.now().Sub(a.start)
			c.e.obs.now(ctx, ev)
		}
		return &claim.lease, nil
	case late, closed:
		return nil, a.verdictError(ctx, v)
	case undecided:
		a.leave(cancelled)
	case dead, refused, silent, outOfTime, cancelled, failed:
	}
	return nil, ErrNotHeld
}
