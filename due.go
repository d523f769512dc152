package hasp

import (
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// schedule sets when the renewer looks next; c.mu is held. Claims are taken along from the
// middle of their interval on: two groups are never further apart than that both ways, so
// that all claims of one interval come to be renewed in one call.
func (c *claim) schedule(at time.Time) {
	c.e.renewals.schedule(c, at, interval(min(c.ttl, max(c.stay.life, minTTL)))/2)
}

// dueWanted is the sooner of the next renewal and the moment at which a store that does
// not answer counts as silent.
func (c *claim) dueWanted(now time.Time) time.Time {
	if left := answerLimit - c.silence(now); left > 0 && now.Add(left).Before(c.next) {
		return now.Add(left)
	}
	return c.next
}

// silence is for how long the store has not answered while the machine was awake: in a
// sleep it was not asked.
func (c *claim) silence(now time.Time) time.Duration { return c.e.clk.local(now).Sub(c.answered) }

// dueOwned is the sooner of the next renewal, if there is to be one, and the end of
// the trust.
func (c *claim) dueOwned() time.Time {
	if c.renews() && c.next.Before(c.stay.until) {
		return c.next
	}
	return c.stay.until
}

// renews says whether an owned claim is still to be renewed.
func (c *claim) renews() bool {
	return !c.want.opts.NoRenew && (c.want.opts.MaxHold == 0 || c.next.Sub(c.since) < c.want.opts.MaxHold)
}

// plan sets when the claim is renewed next, after an answer; c.mu is held.
func (c *claim) plan(call sending, a driver.Standing, now time.Time) {
	c.next = call.at.Add(interval(min(a.Life, c.ttl)))
	if c.sticky() { // or nobody would learn in time that somebody waits, if the signal is lost
		c.next = call.at.Add(min(stickyLook, interval(min(a.Life, c.ttl))))
	}
	if a.State == driver.Waiting {
		if look := now.Add(c.pace(a)); look.Before(c.next) {
			c.next = look
		}
		if poll := c.e.feats.Poll; poll > 0 && !c.e.heard.Load() {
			if look := now.Add(min(poll<<min(c.looks, 10), 25*poll)); look.Before(c.next) {
				c.next = look
			}
			c.looks++
		}
	}
	if a.More || a.State == driver.Waiting && call.ordinal <= c.urged {
		c.next = now
	}
}

// briefLook is the time to a look below which it must bring something. Who stands in the
// way renews each third of a life of minTTL or more, so at least two thirds of that are
// left whenever a look finds him alive.
const briefLook = minTTL / 2

// pace is the time to the next look of a waiting claim: as the store says, but not over
// and over at once. Brief looks that found as many ahead as before come ever later; c.mu
// is held.
func (c *claim) pace(a driver.Standing) time.Duration {
	if a.LookAgain >= briefLook || a.Ahead != int(c.last.ahead) {
		c.idle = 0
		return max(a.LookAgain, time.Millisecond)
	}
	pause := time.Millisecond << min(c.idle, 11)
	c.idle++
	return max(a.LookAgain, pause)
}
