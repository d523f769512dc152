package memlease

import (
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// claim is one stay of one ID. Times are readings of the store's clock.
type claim struct {
	id               driver.ID
	number           int64
	weight, capacity int64
	joined           int64
	expiry           int64 // dead from here on
	trust            int64 // expiry without the Grace in it
	name             string
	index            uint8
	holding          bool // in all its lines; once set it stays
	fixed            bool // by Fix: nothing moves the expiry any more
	revoked          bool
	stands           []stand // one for each key, in their order
	single           [1]stand
}

// stand is a claim's place in one line.
type stand struct {
	claim      *claim
	line       *line
	prev, next *stand
	slot       int  // in the line's heap of holders or waiters
	ordinal    int  // in the line's order
	turned     bool // its client knows that it fits here; it stays so, since nobody enters in front
}

func newClaim(j *driver.Join, number, now int64) *claim {
	c := &claim{
		id: j.ID, number: number, joined: now,
		weight: j.Weight, capacity: j.Capacity,
		name: j.Name, index: j.Index,
	}
	c.stands = c.single[:]
	if len(j.Keys) > 1 {
		c.stands = make([]stand, len(j.Keys))
	}
	return c
}

// several reports whether the claim stands in several lines, so that only its own step
// may grant it.
func (c *claim) several() bool { return len(c.stands) > 1 }

// dead reports whether the claim's expiry has passed.
func (c *claim) dead(now int64) bool { return c.expiry <= now }

// ends answers when a life that begins now ends, without and with its Grace.
func (c *claim) ends(life driver.Life, now int64) (trust, expiry int64) {
	if !c.holding {
		trust = later(now, life.Wait)
		return trust, trust
	}
	trust = later(now, life.Hold)
	return trust, later(trust, life.Grace)
}

// enter gives a new claim its life and puts it at the end of its lines.
func (c *claim) enter(life driver.Life, now int64) {
	c.trust, c.expiry = c.ends(life, now)
	for i := range c.stands {
		st := &c.stands[i]
		st.line.add(st)
		st.line.changed = st.line.changed || c.holding
		st.line.wanted = st.line.wanted || !c.holding
		st.turned = st.line.reached(st, now)
	}
	c.outlast(life)
}

// lengthen moves the expiry for a renewal at now, never back.
func (c *claim) lengthen(life driver.Life, now int64) {
	if c.fixed {
		return
	}
	trust, expiry := c.ends(life, now)
	c.reschedule(max(c.trust, trust), max(c.expiry, expiry))
	c.outlast(life)
}

// fix gives a holding claim its own expiry, once.
func (c *claim) fix(life driver.Life, now int64) {
	if !c.fixed {
		c.fixed = true
		end := later(now, life.Hold)
		c.reschedule(end, end)
		c.outlast(life)
	}
}

// reschedule sets the expiry and keeps the heaps of all its lines in order.
func (c *claim) reschedule(trust, expiry int64) {
	c.trust = trust
	if c.expiry == expiry {
		return
	}
	c.expiry = expiry
	for i := range c.stands {
		st := &c.stands[i]
		st.line.heap(st).settle(st)
	}
}

// outlast has the lines remember their last number for twice this life.
func (c *claim) outlast(life driver.Life) {
	keep := time.Duration(later(int64(life.Hold), life.Hold))
	for i := range c.stands {
		l := c.stands[i].line
		l.keep = max(l.keep, keep)
	}
}
