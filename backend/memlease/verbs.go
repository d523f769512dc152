package memlease

import (
	"slices"

	"github.com/hasp-dev/hasp/driver"
)

// join is Driver.Join.
func (p *step) join(j *driver.Join) driver.Standing {
	if j.Leaving != nil {
		p.leave(j.Leaving)
	}
	c := p.open(j.Ref)
	switch {
	case c != nil:
		return p.renew(c, j.Number, driver.Extend, j.Life)
	case p.store.remembers(j.ID, p.now):
		return p.gone(j.Number, nil)
	case j.Resume != nil:
		return p.resume(j)
	}
	return p.enter(j)
}

// enter puts a new claim behind everybody, if it may.
func (p *step) enter(j *driver.Join) driver.Standing {
	holds := true
	full := false
	for _, l := range p.named {
		if l != nil {
			holds = holds && l.admits(j.Weight, j.Capacity, p.now)
			full = full || j.MaxLine > 0 && len(l.waiters) >= j.MaxLine
		}
	}
	if !holds && (j.Try || full) {
		return p.refused(j)
	}
	c := newClaim(j, p.number(), p.now)
	c.holding = holds
	for i, key := range j.Keys {
		l := p.named[i]
		if l == nil {
			l = p.store.line(key, p.now)
			p.touch(l)
		}
		l.last = c.number
		c.stands[i].claim, c.stands[i].line = c, l
	}
	c.enter(j.Life, p.now)
	p.store.claims[c.id] = c
	p.store.peak.claims = max(p.store.peak.claims, len(p.store.claims))
	return p.standing(c)
}

// number is the next one that is new in all the named lines.
func (p *step) number() int64 {
	n := (p.store.wall + p.now) / 1000
	for _, l := range p.named {
		if l != nil {
			n = max(n, l.last+1)
		}
	}
	return n
}

// resume gives a holding claim to a new ID.
func (p *step) resume(j *driver.Join) driver.Standing {
	c := p.find(j.Resume.ID)
	p.settle()
	switch {
	case c == nil || c.number != j.Resume.Number || !c.holding:
		return p.gone(j.Number, nil)
	case c.revoked:
		return p.gone(j.Number, c)
	}
	delete(p.store.claims, c.id)
	c.id, c.name, c.index, c.fixed = j.ID, j.Name, j.Index, false
	p.store.claims[c.id] = c
	c.reschedule(c.ends(j.Life, p.now))
	c.outlast(j.Life)
	for i := range c.stands {
		c.stands[i].line.changed = true
	}
	return p.standing(c)
}

// renewal is one item of Driver.Renew.
func (p *step) renewal(r *driver.Renewal) driver.Standing {
	if r.Mode == driver.Drop {
		return p.leave(&driver.Leaving{Ref: r.Ref, Unanswered: r.Unanswered, Remember: r.Remember})
	}
	c := p.open(r.Ref)
	if c == nil {
		return p.gone(r.Number, nil)
	}
	return p.renew(c, r.Number, r.Mode, r.Life)
}

// renew moves the expiry of a live claim. Its lines are settled, so it may have been
// granted in this step; then it gets the life of a holder at once.
func (p *step) renew(c *claim, number int64, mode driver.Mode, life driver.Life) driver.Standing {
	switch {
	case number != 0 && number != c.number:
		return p.gone(number, nil)
	case c.revoked:
		return p.gone(number, c)
	}
	p.takeTurn(c)
	if mode == driver.Fix && c.holding {
		c.fix(life, p.now)
	} else {
		c.lengthen(life, p.now)
	}
	return p.standing(c)
}

// leave is Driver.Leave.
func (p *step) leave(l *driver.Leaving) driver.Standing {
	c := p.open(l.Ref)
	if l.Unanswered && l.Remember > 0 {
		p.store.remember(l.ID, later(p.now, l.Remember))
	}
	if c == nil {
		return p.gone(l.Number, nil)
	}
	p.remove(c)
	p.settle()
	return driver.Standing{State: driver.Left, Number: c.number, More: p.capped}
}

// end is Operator.End for numbers in rising order.
func (p *step) end(key string, numbers []int64, force bool) []int64 {
	l := p.store.lines[key]
	if l == nil {
		return nil
	}
	p.touch(l)
	p.settle()
	var found []int64
	var next *stand
	for st := l.head; st != nil && st.claim.number <= numbers[len(numbers)-1]; st = next {
		next = st.next // st may go
		c := st.claim
		if _, named := slices.BinarySearch(numbers, c.number); !named || c.dead(p.now) {
			continue
		}
		found = append(found, c.number)
		c.revoked = c.holding && !force
		p.store.signal(driver.Ended, c, key)
		if !c.revoked {
			p.remove(c)
		}
	}
	p.settle()
	return found
}
