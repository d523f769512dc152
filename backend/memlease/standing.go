package memlease

import (
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// lookAhead is how many claims of a line are asked when they could be gone.
const lookAhead = 64

// standing is how a live claim stands.
func (p *step) standing(c *claim) driver.Standing {
	s := driver.Standing{
		State:  driver.Holding,
		Number: c.number,
		Life:   time.Duration(c.trust - p.now),
		More:   p.capped,
	}
	for i := range c.stands {
		st := &c.stands[i]
		s.Behind = s.Behind || st.next != nil && !st.line.tail.claim.holding
		s.Ahead = max(s.Ahead, st.line.order.ahead(st))
	}
	if c.holding {
		return s
	}
	s.State = driver.Waiting
	s.LookAgain = p.lookAgain(c)
	for i := range c.stands {
		if st := &c.stands[i]; s.Holder == "" && s.ExpiresIn == 0 && !st.line.reached(st, p.now) {
			p.inTheWay(&s, st.line, c)
		}
	}
	return s
}

// refused is the answer to a claim that did not enter.
func (p *step) refused(j *driver.Join) driver.Standing {
	s := driver.Standing{State: driver.Refused, More: p.capped}
	for _, l := range p.named {
		if l == nil {
			continue
		}
		s.Ahead = max(s.Ahead, len(l.holders)+len(l.waiters))
		if s.ExpiresIn == 0 && !l.admits(j.Weight, j.Capacity, p.now) {
			p.inTheWay(&s, l, nil)
		}
	}
	return s
}

// gone is the answer to a call for a claim that is not there, or is revoked.
func (p *step) gone(number int64, revoked *claim) driver.Standing {
	s := driver.Standing{State: driver.Gone, Number: number, Revoked: revoked != nil}
	for _, l := range p.named {
		if l != nil && s.ExpiresIn == 0 {
			p.inTheWay(&s, l, revoked)
		}
	}
	return s
}

// inTheWay names the first holder of a line but the claim itself, if there is one.
func (p *step) inTheWay(s *driver.Standing, l *line, but *claim) {
	if h := l.holder(but, p.now); h != nil {
		s.Holder = h.name
		s.ExpiresIn = time.Duration(h.expiry - p.now)
	}
}

// lookAgain is when a waiting claim could hold in all its lines at the earliest if nobody
// renews or leaves.
func (p *step) lookAgain(c *claim) time.Duration {
	at := p.now
	for i := range c.stands {
		at = max(at, c.stands[i].earliest(p.now))
	}
	if at == p.now { // only a cap was in the way
		return time.Millisecond
	}
	return time.Duration(at - p.now)
}

// earliest is when so many of the claims ahead will have died that this one fits: its
// place is tried beside those that live longest, one more at a time, until it fits no
// more. A claim of several keys that waits must be gone, since only its own renewal
// could grant it.
func (st *stand) earliest(now int64) int64 {
	var ahead [lookAhead]*claim
	n := 0
	for q := st.line.head; q != nil && q != st && n < lookAhead; q = q.next {
		ahead[n] = q.claim
		n++
	}
	smallest := st.claim.capacity
	room := smallest - st.claim.weight
	for ; n > 0; n-- {
		longest := 0
		for i, c := range ahead[:n] {
			if c.expiry > ahead[longest].expiry {
				longest = i
			}
		}
		c := ahead[longest]
		if c.dead(now) {
			break
		}
		if c.capacity < smallest {
			room -= smallest - c.capacity
			smallest = c.capacity
		}
		if c.weight > room || c.several() && !c.holding {
			return c.expiry
		}
		room -= c.weight
		ahead[longest] = ahead[n-1]
	}
	return now
}
