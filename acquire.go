package hasp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// acquire gets the lease that w asks for, or says why not: never both, never neither
// (G8).
func (c *Client) acquire(ctx context.Context, w *want) (*Lease, error) {
	start := c.e.clk.now()
	lease, err := c.attempt(ctx, w, start)
	if c.e.obs.tell != nil {
		ev := Event{Kind: EventRefused, Op: "acquire", Keys: w.keys.given, Label: w.opts.Label, Err: err}
		if err == nil {
			ev = lease.acquired("acquire")
		}
		if ev.Took = c.e.clk.now().Sub(start); err != nil || lease.outer == nil {
			c.e.obs.now(ctx, ev) // a nested lease is its outer one's matter
		}
	}
	if err != nil {
		return nil, &Error{Op: "acquire", Key: w.keys.first(), Err: err}
	}
	return lease, nil
}

func (c *Client) attempt(ctx context.Context, w *want, start time.Time) (*Lease, error) {
	if err := c.check(w); err != nil {
		return nil, err
	}
	if lease, err := c.nested(ctx, w); lease != nil || err != nil {
		return lease, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a := acquisition{e: c.e, want: w, start: start, now: start}
	if err := a.ready(ctx); err != nil {
		return nil, err
	}
	if !c.e.feats.Line && w.opts.Wait != NoWait {
		waits := a // a copy, so that no other call has its own on the heap
		return waits.ask(ctx)
	}
	if a.e.gated(w) {
		return a.pass(ctx)
	}
	return a.persevere(ctx)
}

// check says what is wrong before anything is sent.
func (c *Client) check(w *want) error {
	if err := errors.Join(w.err, w.keys.err); err != nil {
		return err
	}
	if err := c.e.usable(); err != nil {
		return err
	}
	return c.e.supports(w)
}

// acquisition is one call on its way to a lease. It makes a new claim, at the end of
// the line, whenever the store has lost the one it waited with.
type acquisition struct {
	e     *engine
	want  *want
	start time.Time
	now   time.Time // as last read: reading the clock is a good part of a call's cost
	stood bool      // an answer said that it waits
	over  bool      // so is Wait
	claim *claim

	gate   *gate  // in which the call has the seat, with its claim or about to make one
	old    *claim // that is left in the same step as the call's own is joined
	queued int    // how many wait in a gate that it went past
	broken bool   // the store does not answer, or refuses, whoever asks
}

// persevere goes from claim to claim until there is an answer.
func (a *acquisition) persevere(ctx context.Context) (*Lease, error) {
	for {
		lease, again, err := a.once(ctx)
		if !again {
			return lease, err
		}
		a.tick()
	}
}

// tick reads the clock.
func (a *acquisition) tick() { a.now = a.e.clk.now() }

// ready has the store proven fit, where it is not yet.
func (a *acquisition) ready(ctx context.Context) error {
	if a.e.checked.Load() {
		return nil
	}
	defer a.tick()
	return a.e.ready(ctx, a.limit())
}

// limit is how long the call goes on without an answer.
func (a *acquisition) limit() time.Duration {
	wait := a.want.opts.Wait
	if wait == NoWait || wait == Forever {
		return answerLimit
	}
	left := wait - a.now.Sub(a.start)
	return min(answerLimit, max(left, oneAnswer))
}

// oneAnswer is what a call gives the store for an answer, however short its Wait is.
const oneAnswer = 150 * time.Millisecond

// once goes through one claim. again says that the claim is gone and the call may go
// on with another.
func (a *acquisition) once(ctx context.Context) (lease *Lease, again bool, err error) {
	c, err := a.e.newClaim(a.want, 0)
	if err != nil {
		a.forsake()
		return nil, false, err
	}
	a.claim = c
	if c.gate = a.gate; c.gate != nil {
		a.e.gates.seat(c.gate, c)
	}
	if a.old != nil {
		err = a.replace(ctx)
	} else {
		err = a.enter(ctx, driver.Join{})
	}
	if err != nil {
		return nil, false, err
	}
	return a.stand(ctx)
}

// enter sends the Join, with the parts of it that j sets, until it is answered. On an
// error the claim is given up.
func (a *acquisition) enter(ctx context.Context, j driver.Join) error {
	c, request := a.claim, a.request()
	request.Resume, request.Leaving = j.Resume, j.Leaving
	j = request
	j.Try = j.Try && j.Resume == nil
	limit := a.limit()
	b := &budget{parent: ctx, until: c.e.clk.local(a.now).Add(min(callLimit, limit))}
	err := a.e.persistFrom(b, a.e.closing, limit, func(b *budget) error { return a.join(b, j) }) //nolint:contextcheck // b inherits from ctx
	if err == nil {
		return nil
	}
	a.tick()
	a.broken = definite(err) || limit == answerLimit && ctx.Err() == nil && !errors.Is(err, ErrClosed)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.joins == 0 && definite(err) {
		a.e.forget(c)
	} else {
		c.giveUp(a.now)
	}
	return err
}

// request is the Join of the call's claim.
func (a *acquisition) request() driver.Join {
	c, w := a.claim, a.want
	return driver.Join{
		Claim: driver.Claim{
			Ref: driver.Ref{ID: c.id, Keys: w.keys.full}, Weight: w.weight, Capacity: w.capacity,
			Life: w.life(c.ttl), Index: c.index, Name: a.e.name,
		},
		Try: w.opts.Wait == NoWait || !a.e.feats.Line, MaxLine: w.opts.MaxLine - a.queued,
	}
}

// errOldAnswer: the answer was about an earlier stay than the one a signal spoke of.
var errOldAnswer = errors.New("the answer was overtaken")

// join sends one Join, unless it is known by now how the claim stands: a signal overtook
// an answer that was lost, and a renewal was answered. The id of one that is gone must not
// be used again (P1).
func (a *acquisition) join(b *budget, j driver.Join) error {
	c := a.claim
	c.mu.Lock()
	if c.sent > 0 {
		a.tick()
	}
	if c.stay.phase != joining || c.fate != wanted { // or its call has gone
		c.mu.Unlock()
		return nil
	}
	call := c.begin(a.now)
	c.joins++
	c.asking = b
	c.mu.Unlock()
	standing, err := c.e.drv.Join(b, j)
	c = c.lockNewest()
	defer c.mu.Unlock()
	c.asking = nil
	if err != nil && definite(err) {
		c.joins--
	}
	if err != nil && c.stay.phase == joining {
		return err
	}
	a.tick()
	if err != nil {
		return nil // it was cut short, since how the claim stands is known
	}
	c.joins--
	c.plan(call, standing, a.now)
	c.take(call, standing, a.now)
	if c.stay.phase == joining {
		return errOldAnswer
	}
	return nil
}

// stand waits until the claim holds, and hands out the lease.
func (a *acquisition) stand(ctx context.Context) (lease *Lease, again bool, err error) {
	wake, verdict := a.look()
	if verdict == undecided {
		over, stop := a.patience()
		defer stop()
		for verdict == undecided {
			select {
			case <-wake:
				a.tick()
				_, verdict = a.look()
			case <-over:
				verdict = a.leave(outOfTime)
				over = time.After(oneAnswer)
			case <-ctx.Done():
				verdict = a.leave(cancelled)
			case <-a.e.closing:
				verdict = a.leave(closed)
			}
		}
	}
	if verdict == granted {
		return &a.claim.lease, false, nil
	}
	if verdict == dead {
		return nil, true, nil
	}
	return nil, false, a.verdictError(ctx, verdict)
}

// patience is a channel that fires when Wait is over.
func (a *acquisition) patience() (over <-chan time.Time, stop func()) {
	if a.want.opts.Wait == Forever {
		return nil, func() {}
	}
	t := time.NewTimer(a.start.Add(a.want.opts.Wait).Sub(a.now))
	return t.C, func() { t.Stop() }
}

// verdict is what has come of a claim.
type verdict uint8

const (
	undecided verdict = iota
	granted           // the lease is the caller's
	dead              // the claim is gone: go on with another
	late              // the grant came too late to be trusted
	refused           // Try or MaxLine
	silent            // the store no longer answers
	outOfTime         // Wait is over
	cancelled         // the context has ended
	closed            // the client closes
	failed            // another has sent the Join, in vain
)

// look decides by what the claim knows, and gives it up where it is of no use.
func (a *acquisition) look() (<-chan struct{}, verdict) {
	c, now := a.claim, a.now
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil && c.stay.phase == joining {
		return nil, a.fail(now)
	}
	c.stay = c.stay.passed(now)
	switch c.stay.phase {
	case holding:
		return nil, c.grant(now)
	case over:
		return nil, a.buried(now)
	case joining, waiting, told:
	}
	a.stood = true
	if c.wake == nil {
		c.wake = make(chan struct{}, 1)
	}
	if c.silence(now) >= answerLimit {
		c.giveUp(now)
		a.broken = true
		return nil, silent
	}
	return c.wake, undecided
}

// buried decides what a claim that is over means to its call; c.mu is held.
func (a *acquisition) buried(now time.Time) verdict {
	c := a.claim
	wasRefused := c.last.state == driver.Refused
	wasGone := c.last.state == driver.Gone && !c.last.revoked // a revoked one stands in the way until it is left
	if c.joins == 0 && (wasRefused || wasGone) {
		a.e.forget(c)
	} else {
		c.giveUp(now)
	}
	switch {
	case wasRefused:
		return refused
	case !a.stood && c.last.state == driver.Holding:
		return late
	}
	return dead
}

// leave gives the claim up for a reason outside of it, except that a grant is not
// thrown away because Wait is over.
func (a *acquisition) leave(why verdict) verdict {
	c, now := a.claim, a.e.clk.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stay = c.stay.passed(now)
	switch {
	case why != outOfTime:
	case c.stay.phase == holding:
		return c.grant(now)
	case c.stay.phase == told && !a.over: // it holds; the renewal before its use may be answered yet
		a.over = true
		return undecided
	case c.stay.phase == told:
		a.part(why, now) // the next in this process may have more time
		return silent
	}
	a.part(why, now)
	return why
}

// grant makes the lease the caller's, unless the client closes: Close has ended the
// leases it found, and would miss this one. c.mu is held.
func (c *claim) grant(now time.Time) verdict {
	c.wake = nil
	select {
	case <-c.e.closing:
		c.giveUp(now)
		return closed
	default:
	}
	c.fate = owned
	c.settle(now)
	return granted
}

func (a *acquisition) verdictError(ctx context.Context, v verdict) error {
	switch v {
	case late:
		return fmt.Errorf("%w: the store's answer took longer than the life of the lease (%s)", ErrUnavailable, a.want.opts.TTL)
	case silent:
		return a.silentError()
	case failed:
		return a.claim.failure
	case closed:
		return ErrClosed
	case cancelled:
		return a.heldError(ctx.Err())
	case undecided, granted, dead, refused, outOfTime:
	}
	return a.heldError(nil)
}

// silentError is of a claim whose renewals were not answered, or were refused.
func (a *acquisition) silentError() error {
	a.claim.mu.Lock()
	defer a.claim.mu.Unlock()
	err := ErrUnavailable
	if a.claim.failure != nil {
		err = unavailable(a.claim.failure)
	}
	return fmt.Errorf("no renewal of the place in line was answered: %w", err)
}

func (a *acquisition) heldError(cause error) error {
	c, now := a.claim, a.e.clk.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	held := &HeldError{Key: a.want.keys.first(), Holder: c.last.holder, cause: cause}
	if left := c.last.expiresIn - c.silence(now); left > 0 {
		held.ExpiresIn = left
	}
	if a.stood {
		held.Waited = now.Sub(a.start)
	}
	return held
}
