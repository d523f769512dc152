package hasp

import (
	"context"
	"errors"
	"time"
)

// handed is a stay that goes from one owner in this process to the next: as it is, if
// enough trust is left, or else owing a renewal first.
func (s stay) handed(now time.Time) stay {
	if s.phase != holding {
		return s
	}
	s.phase = told
	return s.used(now)
}

// bequeath hands the claim, or its place in line, to the next call of this process, which
// gets it as a claim of its own with the same id. c.mu is held.
func (c *claim) bequeath(t *turn, index uint8, now time.Time) *claim {
	h := &claim{
		e: c.e, want: t.want, id: c.id, index: index, ttl: t.want.opts.TTL, gate: t.gate,
		stay: c.stay.handed(now), rivals: c.rivals,
		sent: c.sent, asked: c.asked, last: c.last, answered: c.answered, next: c.next, urged: c.urged,
		failure: c.failure, failures: c.failures, looks: c.looks, idle: c.idle, joins: c.joins, quiet: c.quiet,
	}
	h.lease.claim = h
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.fate != wanted { // it was not waited for: its silence begins now
		h.answered = c.e.clk.local(now)
	}
	c.heir, c.gate, c.fate = h, nil, finished
	c.e.renewals.remove(c)
	c.e.list(h)
	h.learn(now)
	return h
}

// call has the turn's call go on, with a claim to look after or to make one.
func (gs *gates) call(t *turn, c *claim) {
	t.claim = c
	gs.seat(t.gate, c)
	close(t.come)
}

// part gives the claim of a call up: to the next who wants the key in this process, or to
// the renewer; c.mu is held.
func (a *acquisition) part(why verdict, now time.Time) {
	c := a.claim
	if a.gate != nil && why != closed && why != silent && c.renewable() {
		if t := a.e.gates.next(a.gate); t != nil {
			a.gate = nil
			a.e.gates.call(t, c.bequeath(t, c.index, now))
			return
		}
	}
	c.giveUp(now)
}

// unseat gives the seat of a lease up that is over without a release; c.mu is held.
func (c *claim) unseat() {
	if c.gate != nil {
		c.e.gates.vacate(c.gate)
		c.gate = nil
	}
}

// pass has a lease that is released go to the next in this process, or the place behind
// the others if it is their turn. Where neither can be, it is left. The claim's lock is held,
// and the lease has ended.
func (c *claim) pass(ctx context.Context, r release) release {
	g := c.gate
	if c.gate = nil; g == nil {
		return r
	}
	if c.e.usable() != nil {
		c.e.gates.vacate(g)
		return r
	}
	var t *turn
	if c.want.opts.Sticky > 0 && c.mayLinger(c.e.clk.fresh()) {
		if t, r.least = c.e.gates.nextOrIdle(g, c); t == nil {
			return c.beginLingering(ctx, g, c.e.clk.now(), r)
		}
	} else if t = c.e.gates.nextOrClose(g); t == nil {
		return r
	}
	now := c.e.clk.fresh()
	if c.passable(now, t.want.opts.LocalHandoffs) {
		c.rivals = c.rivals.granted(now)
		c.lease.freed = true
		r.step = handedOn
		r.tells = c.e.obs.put(ctx, c.lease.event(EventReleased, "release", now.Sub(c.since), nil)) // before the next can act on it
		c.e.gates.call(t, c.bequeath(t, c.index+1, now))
		return r
	}
	n, err := c.e.newClaim(t.want, 0)
	if err != nil { // closing
		c.e.gates.call(t, nil)
		return r
	}
	n.gate = t.gate
	n.answered = c.e.clk.local(now)
	r.step, r.next = joinBehind, n
	c.e.gates.call(t, n)
	return r
}

// passable says whether the lease may be handed on without asking the store.
func (c *claim) passable(now time.Time, handoffs int) bool {
	return !c.extended && c.index < mostHandoffs && c.stay.passed(now).phase == holding && c.rivals.allow(now, handoffs)
}

// sendBehind leaves, and in the same step puts the next call of this process behind those
// that wait. Where the store lets that one not in, it only leaves.
func (l *Lease) sendBehind(ctx context.Context, r release) error {
	a := acquisition{e: l.claim.e, want: r.next.want, claim: r.next, start: r.began, now: r.began}
	j := a.request()
	j.Try, j.MaxLine, j.Leaving = false, 0, &r.leave
	b := &budget{parent: ctx, until: a.e.clk.local(r.began).Add(callLimit)}
	err := a.e.persistFrom(b, a.e.life.Done(), answerLimit, func(b *budget) error { return a.join(b, j) }) //nolint:contextcheck // b inherits from ctx
	joined := r.next.joined(err)
	if err == nil && joined || err != nil && !definite(err) {
		return l.released(ctx, true, true, err)
	}
	r.step = leaveAgain
	return l.sendRelease(ctx, r)
}

// joined says whether the store has done the Join that somebody else has sent for the
// claim, and passes on why it has not.
func (c *claim) joined(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.fate == wanted && c.stay.phase == joining {
		c.failure = err
		if c.wake != nil {
			poke(c.wake)
		}
	}
	return c.asked > 0 || c.stay.number != 0
}

// fail ends a call whose claim could not be joined; c.mu is held.
func (a *acquisition) fail(now time.Time) verdict {
	if c := a.claim; c.joins == 0 && definite(c.failure) {
		a.e.forget(c)
	} else {
		c.giveUp(now)
	}
	a.broken = !errors.Is(a.claim.failure, ErrClosed)
	return failed
}
