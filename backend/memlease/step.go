package memlease

import "github.com/hasp-dev/hasp/driver"

const (
	maxGrants   = 32 // of one step
	maxRemovals = 64 // of one step
)

// step is one atomic step: one reading of the clock, the lines it touches, what it may
// still do. The dead of a line go before anything else happens in it, and a claim that
// goes touches all its lines, so the list can grow while it is worked off.
type step struct {
	store    *Store
	now      int64
	removals int  // left
	grants   int  // left
	capped   bool // work was left undone
	lines    []*line
	named    []*line // of the keys the call names, nil where there is no line
}

// begin starts a step; the caller has the store's lock until finish.
func (s *Store) begin() *step {
	p := &s.step
	p.now = s.now()
	p.removals, p.grants, p.capped = maxRemovals, maxGrants, false
	return p
}

// finish ends a step after its answer is known.
func (p *step) finish() {
	p.tidy()
	watched := len(p.store.watches) > 0
	for i, l := range p.lines {
		if watched {
			p.store.announce(l)
		}
		l.touched, l.wanted, l.changed = false, false, false
		p.lines[i] = nil
	}
	p.lines = p.lines[:0]
	clear(p.named)
	p.named = p.named[:0]
}

// open begins the work of a call: it touches the lines the call names and those of the
// claim, settles them, and answers the claim if it lives.
func (p *step) open(ref driver.Ref) *claim {
	p.name(ref.Keys)
	c := p.find(ref.ID)
	p.settle()
	return c
}

// name touches the lines of keys, without making any.
func (p *step) name(keys []string) {
	p.named = p.named[:0]
	for _, key := range keys {
		l := p.store.lines[key]
		p.named = append(p.named, l)
		if l != nil {
			p.touch(l)
		}
	}
}

// find answers the live claim of an ID and touches its lines.
func (p *step) find(id driver.ID) *claim {
	c := p.store.claims[id]
	if c == nil {
		return nil
	}
	if c.dead(p.now) {
		p.removals--
		p.remove(c)
		return nil
	}
	for i := range c.stands {
		p.touch(c.stands[i].line)
	}
	return c
}

func (p *step) touch(l *line) {
	if !l.touched {
		l.touched = true
		p.lines = append(p.lines, l)
	}
}

// settle removes the dead from the touched lines and hands over.
func (p *step) settle() {
	for i := 0; i < len(p.lines); i++ { //nolint:intrange // the list grows on the way
		p.sweep(p.lines[i])
	}
	for _, l := range p.lines {
		p.handOver(l)
	}
}

func (p *step) sweep(l *line) {
	for c := l.dead(p.now); c != nil; c = l.dead(p.now) {
		if p.removals <= 0 {
			p.capped = true
			return
		}
		p.removals--
		p.remove(c)
	}
}

// remove takes a claim out of all its lines.
func (p *step) remove(c *claim) {
	for i := range c.stands {
		l := c.stands[i].line
		p.touch(l)
		l.changed = l.changed || c.holding
	}
	p.store.unlink(c, p.now)
}

// handOver grants the claims that now hold. A claim of several keys is told instead, and
// everybody behind it waits on.
func (p *step) handOver(l *line) {
	for st := l.waiting; st != nil && l.reached(st, p.now) && !st.claim.dead(p.now); st = l.waiting {
		c := st.claim
		if c.several() {
			if !st.turned {
				st.turned = true
				p.store.signal(driver.Turn, c, l.key)
			}
			return
		}
		if p.grants <= 0 {
			p.capped = true
			return
		}
		p.grants--
		p.grant(c)
	}
}

// grant marks a claim that is the first to wait in all its lines as holding.
func (p *step) grant(c *claim) {
	for i := range c.stands {
		st := &c.stands[i]
		st.line.grant(st)
		st.line.changed = true
	}
	c.holding = true
	p.store.signal(driver.Granted, c, c.stands[0].line.key)
}

// takeTurn grants a claim of several keys in its own step if it has come to fit in all
// of its lines.
func (p *step) takeTurn(c *claim) {
	if c.holding || !c.several() {
		return
	}
	for i := range c.stands {
		st := &c.stands[i]
		if !st.line.reached(st, p.now) {
			return
		}
	}
	if p.grants <= 0 {
		p.capped = true
		return
	}
	p.grants--
	p.grant(c)
	p.settle()
}
