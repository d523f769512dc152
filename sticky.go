package hasp

import (
	"context"
	"slices"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// mostLingering is how many released leases a client keeps at most.
const mostLingering = 256

// stickyLook is the time from one look at a sticky lease to the next, so that what is known
// of others stays fresh.
const stickyLook = rivalsFresh * 4 / 5

// sticky says whether the claim stays when its lease is released.
func (c *claim) sticky() bool { return c.want.opts.Sticky > 0 && c.gate != nil }

// mayLinger says whether a lease that is released may be kept: nobody is known to wait. If
// that is old news, it is asked at once.
func (c *claim) mayLinger(now time.Time) bool {
	return !c.extended && !c.rivals.behind && c.stay.passed(now).phase == holding
}

// beginLingering keeps a lease that its owner has released, with the gate idle; c.mu is
// held.
func (c *claim) beginLingering(ctx context.Context, g *gate, now time.Time, r release) release {
	c.gate, c.fate, c.lease.freed = g, lingering, true
	c.giveUpBy = now.Add(c.want.opts.Sticky)
	look := c.rivals.asked.Add(stickyLook)
	if heard := c.e.heard.Load(); heard != c.rivals.watched {
		c.rivals.watched = heard
		if heard { // who has come since the last answer, before there was a signal for it?
			look = now
		}
	}
	if look.Before(c.next) {
		c.next = look
	}
	r.step = handedOn
	r.tells = c.e.obs.put(ctx, c.lease.event(EventReleased, "release", now.Sub(c.since), nil))
	c.linger(now)
	return r
}

// linger sets when a lease without an owner is looked at, or gives it back: it is over,
// somebody wants it, or it was kept for long enough; c.mu is held.
func (c *claim) linger(now time.Time) {
	if c.stay.phase == over || c.rivals.behind || !now.Before(c.giveUpBy) {
		c.retire(now)
		return
	}
	due := c.next
	for _, end := range []time.Time{c.stay.until, c.giveUpBy} {
		if end.Before(due) {
			due = end
		}
	}
	c.schedule(due)
}

// retire gives back a lease without an owner, unless a call of this process has just taken
// the seat, which will look after it; c.mu is held.
func (c *claim) retire(now time.Time) {
	if c.e.gates.retire(c.gate, c) {
		c.gate = nil
		c.giveUp(now)
	}
}

// evict gives back a lease whose gate was closed to make room.
func (c *claim) evict() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fate == lingering {
		c.gate = nil
		c.giveUp(c.e.clk.now())
	}
}

// adopt takes up what lingers in the gate whose seat the call has taken: as its own, or
// else to be left in the step of its Join.
func (a *acquisition) adopt(c *claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fate != lingering {
		return
	}
	now := a.e.clk.fresh()
	c.gate = nil
	switch c.stay = c.stay.passed(now); {
	case c.stay.phase == over:
		c.giveUp(now)
	case c.passable(now, a.want.opts.LocalHandoffs):
		c.rivals = c.rivals.granted(now)
		a.claim = c.bequeath(&turn{want: a.want, gate: a.gate}, c.index+1, now)
		a.e.gates.seat(a.gate, a.claim)
	default:
		c.fate, a.old = releasing, c
		c.settle(now)
	}
}

// replace joins with the call's claim and leaves with the old one in the same step.
func (a *acquisition) replace(ctx context.Context) error {
	c := a.old
	c.mu.Lock()
	leaving := driver.Leaving{Ref: c.ref(), Unanswered: c.joins > 0, Remember: rememberFor(c.ttl, c.want.opts.Grace)}
	c.mu.Unlock()
	err := a.enter(ctx, driver.Join{Leaving: &leaving})
	if err != nil {
		a.forsake()
		return err
	}
	a.old = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	a.e.forget(c)
	return nil
}

// forsake leaves with the old claim after all.
func (a *acquisition) forsake() {
	if c := a.old; c != nil {
		a.old = nil
		c.mu.Lock()
		defer c.mu.Unlock()
		c.giveUp(a.e.clk.now())
	}
}

// wanted tells what this process keeps of a key that somebody else waits for it.
func (e *engine) wanted(key string) {
	now := e.clk.now()
	for _, c := range e.gates.watchers(key) {
		c = c.lockNewest()
		c.rivals = c.rivals.wanted(now)
		if c.fate == lingering {
			c.linger(now)
		}
		c.mu.Unlock()
	}
}

// nextOrIdle is next, and leaves the gate idle where nobody waits, watched by the store's
// signals. If too many are, it closes the one that has been for longest and answers the
// claim there.
func (gs *gates) nextOrIdle(g *gate, c *claim) (next *turn, least *claim) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if t := g.next(); t != nil {
		return t, nil
	}
	g.idle, g.ahead = true, gs.newest
	if gs.newest != nil {
		gs.newest.after = g
	} else {
		gs.oldest = g
	}
	gs.newest = g
	gs.idle++
	if sig, ok := c.e.drv.(driver.Signaler); ok && g.deaf == nil {
		g.deaf = sig.Watch(g.name.key)
		if gs.watched == nil {
			gs.watched = make(map[string][]*gate)
		}
		gs.watched[g.name.key] = append(gs.watched[g.name.key], g)
	}
	if gs.idle > mostLingering {
		least = gs.oldest.claim
		oldest := gs.oldest
		gs.rouse(oldest)
		gs.close(oldest)
	}
	return nil, least
}

// rouse takes a gate out of the idle ones; gs.mu is held.
func (gs *gates) rouse(g *gate) {
	if g.ahead != nil {
		g.ahead.after = g.after
	} else {
		gs.oldest = g.after
	}
	if g.after != nil {
		g.after.ahead = g.ahead
	} else {
		gs.newest = g.ahead
	}
	g.idle, g.ahead, g.after = false, nil, nil
	gs.idle--
}

// retire closes a gate that is idle with the claim. False: somebody has taken the seat, or
// closed it.
func (gs *gates) retire(g *gate, c *claim) bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if g == nil || !g.idle || g.claim != c {
		return false
	}
	gs.rouse(g)
	gs.close(g)
	return true
}

// watchers answers the claims in the gates of a key that signals are for.
func (gs *gates) watchers(key string) []*claim {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	var claims []*claim
	for _, g := range gs.watched[key] {
		if g.claim != nil {
			claims = append(claims, g.claim)
		}
	}
	return claims
}

// unwatch ends the signals for a gate; gs.mu is held.
func (gs *gates) unwatch(g *gate) {
	g.deaf()
	key := g.name.key
	rest := slices.DeleteFunc(gs.watched[key], func(other *gate) bool { return other == g })
	if gs.watched[key] = rest; len(rest) == 0 {
		delete(gs.watched, key)
	}
}
