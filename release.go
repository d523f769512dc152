package hasp

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Release gives the keys back and hands over to the next in line. It uses only the
// values of ctx, not its end, and takes at most 5 s.
//
// Nil says that the keys are free now, by this call or an earlier one, or have gone on
// within this client: to the next that waits here, or, with LockOptions.Sticky, to the next
// that comes. It is nil after Keep and Detach, too, which it leaves alone. ErrLost says that the lease had been lost.
// After any other error the outcome is unknown: the lease is over and no longer
// renewed, hasp goes on leaving in the background, and Release may be called again.
func (l *Lease) Release(ctx context.Context) error {
	if err := l.release(ctx); err != nil {
		return &Error{Op: "release", Key: l.keys().first(), Err: err}
	}
	return nil
}

func (l *Lease) release(ctx context.Context) error {
	if l.outer != nil {
		return l.releaseNested()
	}
	ctx = context.WithoutCancel(ctx)
	for {
		r, err := l.beginRelease(ctx)
		switch r.step {
		case answeredAlready:
			return err
		case firstLeave, leaveAgain:
			return l.sendRelease(ctx, r)
		case joinBehind:
			return l.sendBehind(ctx, r)
		case handedOn:
			if r.tells && l.claim.e.obs.next() {
				go l.claim.e.obs.rest()
			}
			if r.least != nil {
				r.least.evict()
			}
			return nil
		case underWay: // another call is releasing: what it comes to counts for this one
			select {
			case <-r.under:
			case <-time.After(answerLimit):
				return ErrUnavailable
			}
		}
	}
}

// releaseStep is what a Release has to do.
type releaseStep uint8

const (
	answeredAlready releaseStep = iota
	underWay                    // another call is at it
	firstLeave                  // no Leave was sent yet
	leaveAgain                  // one was, and its outcome is not known
	handedOn                    // the next in this process has it
	joinBehind                  // the next in this process joins in the same step
)

// release is one call of Release.
type release struct {
	step  releaseStep
	began time.Time
	leave driver.Leaving
	under <-chan struct{} // closed when the call that is under way has its answer
	next  *claim          // with joinBehind
	tells bool            // with handedOn: the caller tells the observer
	least *claim          // with handedOn: one that lingers no longer, since this one does
}

// beginRelease decides what to do, and ends the lease.
func (l *Lease) beginRelease(ctx context.Context) (r release, err error) {
	c, now := l.claim, l.claim.e.clk.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(now)
	if lost := l.lost(); lost != nil {
		if c.fate == owned { // P13: only now is a lost claim left
			c.giveUp(now)
		}
		return r, lost
	}
	switch c.fate {
	case owned, leaving:
		if c.e.closed.Load() {
			return r, ErrClosed
		}
		r.step, r.began = firstLeave, now
		if c.fate == leaving {
			r.step = leaveAgain
		}
		r.leave = driver.Leaving{
			Ref: c.ref(), Unanswered: c.joins > 0, Remember: rememberFor(c.ttl, c.want.opts.Grace),
		}
		c.fate = releasing
		l.end(ErrReleased)
		if r = c.pass(ctx, r); r.step == handedOn {
			return r, nil
		}
		c.settle(now)
		return r, nil
	case releasing:
		if l.settled == nil {
			l.settled = make(chan struct{})
		}
		r.step, r.under = underWay, l.settled
		return r, nil
	case wanted, parked, finished, lingering:
	}
	if l.gone {
		return r, l.lostError("")
	}
	return r, nil
}

// sendRelease leaves, until that is answered or the time is over.
func (l *Lease) sendRelease(ctx context.Context, r release) error {
	c, sentBefore, was := l.claim, r.step == leaveAgain, false
	b := &budget{parent: ctx, until: c.e.clk.local(r.began).Add(callLimit)}
	err := c.e.persistFrom(b, c.e.life.Done(), answerLimit, func(b *budget) error { //nolint:contextcheck // b inherits from ctx
		answer, err := c.e.drv.Leave(b, r.leave)
		if err != nil {
			sentBefore = sentBefore || !definite(err)
			return err
		}
		was = answer.State == driver.Left
		return nil
	})
	return l.released(ctx, was, sentBefore, err)
}

// released takes in what has come of a Leave: it found the claim or not, was the first or
// not, or was not answered.
func (l *Lease) released(ctx context.Context, was, sentBefore bool, err error) error {
	c := l.claim
	c.mu.Lock()
	if l.settled != nil {
		close(l.settled)
		l.settled = nil
	}
	if err != nil {
		c.giveUp(c.e.clk.now())
	} else {
		l.left(was, sentBefore)
		if l.gone {
			err = l.lostError("")
		}
		c.e.forget(c)
	}
	if err == nil && c.e.obs.tell == nil {
		c.mu.Unlock()
		return nil
	}
	ev := l.event(EventReleased, "release", c.e.clk.now().Sub(c.since), err)
	c.mu.Unlock()
	if err == nil {
		c.e.obs.now(ctx, ev)
	} else {
		c.e.obs.later(ctx, ev)
	}
	return err
}

// left notes the answer to a Leave. Of a repeated one, "not there" inside the trust
// window means that the first did it (P12); the claim's lock is held.
func (l *Lease) left(was, repeated bool) {
	if was || repeated && l.claim.e.clk.now().Before(l.claim.stay.until) {
		l.freed = true
		l.claim.e.freedHere(l.claim.want)
	} else {
		l.gone = true
	}
}

// lostError describes the lease as lost; the claim's lock is held.
func (l *Lease) lostError(why string) *LostError {
	c := l.claim
	return &LostError{Key: c.want.keys.first(), Token: c.token(), Revoked: c.stay.revoked, why: why}
}

// releaseNested ends a lease that shares another: the outer one still holds.
func (l *Lease) releaseNested() error {
	c, now := l.claim, l.claim.e.clk.fresh()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(now)
	lost := l.lost()
	if lost == nil && errors.Is(l.cause, ErrClosed) { // lost while the client closed
		lost = c.lease.lost()
	}
	if lost != nil {
		return lost
	}
	l.end(ErrReleased)
	// or a long lease would collect what it was shared for
	l.outer.parts = slices.DeleteFunc(l.outer.parts, func(p *part) bool { return p.nested == l })
	return nil
}

// lost answers the loss that ended the lease, if one did; the claim's lock is held.
func (l *Lease) lost() *LostError {
	if l.cause == nil {
		return nil
	}
	var lost *LostError
	_ = errors.As(l.cause, &lost) // nil stays nil
	return lost
}
