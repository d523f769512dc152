package memlease

import (
	"math"
	"time"
)

// line is the claims of one key in joining order. Holders are always the front of it:
// a claim is granted only when nobody before it waits, and nobody enters before it.
type line struct {
	key        string
	last       int64 // greatest number so far
	head, tail *stand
	waiting    *stand // the first that waits; everybody behind it waits too
	holders    expiries
	waiters    expiries
	held       int64 // weights of the holders; never more than smallest
	smallest   int64 // capacity among the holders
	atSmallest int   // how many of them say it
	order      order

	keep     time.Duration // how long last must outlive the line
	forgetAt int64         // of an empty line

	touched, wanted, changed bool // by the step under way
}

// add puts a stand at the end.
func (l *line) add(st *stand) {
	st.prev = l.tail
	if l.tail == nil {
		l.head = st
	} else {
		l.tail.next = st
	}
	l.tail = st
	st.ordinal = l.order.add()
	if l.order.sparse(len(l.holders) + len(l.waiters)) {
		l.renumber()
	}
	if st.claim.holding {
		l.hold(st)
		return
	}
	l.waiters.push(st)
	if l.waiting == nil {
		l.waiting = st
	}
}

// remove takes a stand out, wherever it is.
func (l *line) remove(st *stand) {
	if l.waiting == st {
		l.waiting = st.next
	}
	if st.prev == nil {
		l.head = st.next
	} else {
		st.prev.next = st.next
	}
	if st.next == nil {
		l.tail = st.prev
	} else {
		st.next.prev = st.prev
	}
	st.prev, st.next = nil, nil
	l.order.remove(st.ordinal)
	l.heap(st).remove(st)
	if st.claim.holding {
		l.unhold(st.claim)
	}
}

// grant makes the first waiting stand a holder; its claim is marked by the caller.
func (l *line) grant(st *stand) {
	l.waiters.remove(st)
	l.waiting = st.next
	l.hold(st)
}

func (l *line) hold(st *stand) {
	l.holders.push(st)
	l.held += st.claim.weight
	switch c := st.claim.capacity; {
	case c < l.smallest:
		l.smallest, l.atSmallest = c, 1
	case c == l.smallest:
		l.atSmallest++
	}
}

// unhold is the arithmetic of hold backwards. Only when the last holder with the
// smallest capacity goes are the others asked for theirs.
func (l *line) unhold(c *claim) {
	l.held -= c.weight
	if c.capacity != l.smallest {
		return
	}
	if l.atSmallest--; l.atSmallest > 0 {
		return
	}
	l.smallest = math.MaxInt64
	for _, st := range l.holders {
		switch c := st.claim.capacity; {
		case c < l.smallest:
			l.smallest, l.atSmallest = c, 1
		case c == l.smallest:
			l.atSmallest++
		}
	}
}

// heap is the one the stand is in.
func (l *line) heap(st *stand) *expiries {
	if st.claim.holding {
		return &l.holders
	}
	return &l.waiters
}

// fits reports whether a claim could hold next to all the holders.
func (l *line) fits(weight, capacity int64) bool {
	return weight <= min(capacity, l.smallest)-l.held
}

// admits reports whether a claim that enters now would hold at once. A dead claim left
// in front stands in the way until it is removed.
func (l *line) admits(weight, capacity, now int64) bool {
	return l.waiting == nil && l.fits(weight, capacity) && l.dead(now) == nil
}

// reached reports whether a waiting stand is the first to wait, and fits, and nobody
// dead is left in front of it.
func (l *line) reached(st *stand, now int64) bool {
	return l.waiting == st && l.fits(st.claim.weight, st.claim.capacity) && l.holders.dead(now) == nil
}

// dead answers a claim whose expiry has passed, a holder if there is one.
func (l *line) dead(now int64) *claim {
	if c := l.holders.dead(now); c != nil {
		return c
	}
	return l.waiters.dead(now)
}

// nextExpiry is when the first claim of a line that is not empty dies.
func (l *line) nextExpiry() int64 { return min(l.holders.next(), l.waiters.next()) }

// holder answers the first live holder but not.
func (l *line) holder(but *claim, now int64) *claim {
	n := 0
	for st := l.head; st != nil && st.claim.holding && n < lookAhead; st = st.next {
		if st.claim != but && !st.claim.dead(now) {
			return st.claim
		}
		n++
	}
	return nil
}

func (l *line) renumber() {
	l.order.reset()
	for st := l.head; st != nil; st = st.next {
		st.ordinal = l.order.add()
	}
}
