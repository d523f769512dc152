package hasp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Extend makes the TTL ttl from now on: for the store at once, and for every later
// renewal. It never adds up, and never shortens what the store has: after an Extend to
// less, the lease lives as long as it would have. It is how a lease with NoRenew lives
// on.
func (l *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	return l.op("extend", l.extend(ctx, ttl))
}

func (l *Lease) extend(ctx context.Context, ttl time.Duration) error {
	if err := checkTTL(ttl); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	c := l.claim
	if err := l.Err(); err != nil && !errors.Is(err, ErrClosed) {
		return err
	}
	c.mu.Lock()
	c.extended = true
	c.mu.Unlock()
	_, err := c.persistRenewal(ctx, driver.Extend, c.want.life(ttl), func(call sending, a driver.Standing) {
		if a.State == driver.Holding {
			c.ttl = ttl
			c.plan(call, a, c.e.clk.now())
		}
		c.take(call, a, c.e.clk.now())
	})
	if err != nil {
		return err
	}
	if err := l.Err(); err != nil && !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

// Keep ends the lease and leaves the keys held: no renewal any more, and the store
// frees them d from now, a later Release notwithstanding. Use it for "not again
// within d". On an error that leaves the outcome unknown it may be called again.
func (l *Lease) Keep(ctx context.Context, d time.Duration) error {
	return l.op("keep", l.park(ctx, "keep", d))
}

// Detach ends the lease and answers a ticket with which Resume, in this process or
// another, can take the keys over within d. On an error that leaves the outcome
// unknown it may be called again.
func (l *Lease) Detach(ctx context.Context, d time.Duration) (Ticket, error) {
	if l.claim.index == blockSize-1 {
		return Ticket{}, l.op("detach", fmt.Errorf("%w: the lease has been taken over %d times, and its block of tokens is used up; acquire anew",
			ErrUnsupported, blockSize-1))
	}
	if err := l.park(ctx, "detach", d); err != nil {
		return Ticket{}, l.op("detach", err)
	}
	return newTicket(l.claim), nil
}

func (l *Lease) park(ctx context.Context, op string, d time.Duration) error {
	if d <= 0 || d > maxTTL {
		return invalidf("%s for %s; it must be more than 0 and at most %s", op, d, maxTTL)
	}
	if err := l.beginPark(d); err != nil {
		return err
	}
	ctx, done := l.outlived(ctx)
	defer done()
	c := l.claim
	life := driver.Life{Hold: d, Wait: min(d, waitLife), Own: true}
	answer, err := c.persistRenewal(ctx, driver.Fix, life, func(sending, driver.Standing) {})
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && answer.State != driver.Holding {
		err = l.lostError("")
		l.gone = true
	}
	l.freed = l.freed || err == nil
	c.e.obs.later(context.WithoutCancel(ctx), l.event(EventEnded, op, c.e.clk.now().Sub(c.since), err))
	return err
}

// beginPark ends the lease before anything is sent, so that nobody trusts it when the
// store's expiry comes closer (P14).
func (l *Lease) beginPark(d time.Duration) error {
	c, now := l.claim, l.claim.e.clk.fresh()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(now)
	switch {
	case l.outer != nil:
		return invalidf("a nested lease shares its outer one; keep or detach that")
	case c.e.closed.Load():
		return ErrClosed
	case c.fate == parked && !l.freed && !l.gone: // an earlier call was not answered
		c.giveUpBy = now.Add(d + answerLimit)
		c.settle(now)
		return nil
	case c.fate != owned || l.cause != nil && !errors.Is(l.cause, ErrClosed):
		if l.cause == nil {
			return ErrNotHeld
		}
		return l.cause
	}
	c.unseat()
	c.fate = parked
	c.giveUpBy = now.Add(d + answerLimit)
	l.end(ErrReleased)
	c.settle(now)
	return nil
}

// outlived is ctx without the end that comes from l's own: Keep, Detach and Reclaim are
// called with a context of the lease, of all contexts, and when it has ended.
func (l *Lease) outlived(ctx context.Context) (context.Context, context.CancelFunc) {
	for c := carriedBy(ctx); c != nil; c = c.outer {
		if c.lease.claim != l.claim {
			continue
		}
		free := context.WithoutCancel(ctx)
		if deadline, ok := ctx.Deadline(); ok {
			return context.WithDeadline(free, deadline)
		}
		return free, func() {}
	}
	return ctx, func() {}
}

// persistRenewal sends one renewal for a caller, until it is answered; with takes in
// the answer under the claim's lock. It extends no lease that has ended meanwhile, and
// then answers nothing.
func (c *claim) persistRenewal(
	ctx context.Context, mode driver.Mode, life driver.Life, with func(sending, driver.Standing),
) (driver.Standing, error) {
	var answer driver.Standing
	err := c.e.persist(ctx, c.e.life.Done(), answerLimit, func(ctx context.Context) error {
		c.mu.Lock()
		if mode == driver.Extend && (c.fate != owned || c.stay.phase == over) {
			c.mu.Unlock()
			return nil
		}
		call := c.begin(c.e.clk.now())
		item := driver.Renewal{Ref: c.ref(), Mode: mode, Life: life}
		c.mu.Unlock()
		a, err := c.e.renewOne(ctx, item)
		if err != nil {
			return err
		}
		answer = a
		c.mu.Lock()
		defer c.mu.Unlock()
		with(call, a)
		return nil
	})
	return answer, err
}

// op names the operation that failed.
func (l *Lease) op(name string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: name, Key: l.keys().first(), Err: err}
}
