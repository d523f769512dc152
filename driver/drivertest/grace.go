package drivertest

import "time"

// grace: what the store adds to a holder's life and answers to nobody.
func grace() []Case {
	return []Case{
		{Name: "grace keeps others out after the life, and ends", run: graceKeepsOut},
		{Name: "grace is in no answered life", run: graceIsNotAnswered},
		{Name: "a renewal within grace still holds", run: renewalWithinGrace},
		{Name: "a waiting claim has no grace", needs: line, run: waiterHasNoGrace},
		{Name: "a granted claim has grace only from its next renewal", needs: line, run: graceAfterGrant},
		{Name: "a waiter looks again when grace is over", needs: line, run: lookAgainAfterGrace},
		{Name: "fixing ends grace", run: fixEndsGrace},
		{Name: "grace is listed in the rest of a life", run: graceIsListed},
	}
}

func graceKeepsOut(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(2, 2).grace(4).try(holding)
	b.sleep(4)
	y.try(refused)
	b.sleep(3)
	y.try(holding)
	x.renew(gone)
	return b.result()
}

func graceIsNotAnswered(b *bench) error {
	x := b.client().claim(b.key())
	x.lives(4, 4).grace(6)
	s := x.try(holding)
	b.check(s.Life <= b.ticks(4)+b.slack, "a join answers a life of %v, want %v", s.Life, b.ticks(4))
	s = x.renew(holding)
	b.check(s.Life <= b.ticks(4)+b.slack, "a renewal answers a life of %v, want %v", s.Life, b.ticks(4))
	b.sleep(2)
	s = x.try(holding)
	b.check(s.Life <= b.ticks(4)+b.slack, "a repeated join answers a life of %v, want %v", s.Life, b.ticks(4))
	return b.result()
}

func renewalWithinGrace(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(2, 2).grace(4).try(holding)
	b.sleep(4)
	x.renew(holding)
	b.sleep(4)
	y.try(refused)
	return b.result()
}

func waiterHasNoGrace(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	w.lives(10, 3).grace(20).join(waiting)
	b.sleep(2)
	w.renew(waiting)
	b.sleep(4)
	w.renew(gone)
	return b.result()
}

func graceAfterGrant(b *bench) error {
	h, w, v := b.trio(b.key())
	h.join(holding)
	w.lives(3, 3).grace(20).join(waiting)
	v.lives(2, 20).grace(6).join(waiting)
	h.leave(left)
	b.heldBy(h.Keys[0], w)
	b.sleep(4)
	v.renew(holding)
	w.renew(gone)
	b.sleep(4)
	b.client().claim(h.Keys[0]).try(refused)
	return b.result()
}

func lookAgainAfterGrace(b *bench) error {
	h, w := b.pair(b.key())
	h.lives(2, 2).grace(3).join(holding)
	mark := time.Now()
	s := w.join(waiting)
	b.check(s.ExpiresIn >= b.ticks(5)-b.slack, "the holder expires in %v, want %v with its grace", s.ExpiresIn, b.ticks(5))
	w.looks(s, mark, 5)
	return b.result()
}

func fixEndsGrace(b *bench) error {
	x, y := b.pair(b.key())
	x.grace(20).try(holding)
	x.fix(3, holding)
	b.sleep(2)
	y.try(refused)
	b.sleep(2)
	y.try(holding)
	return b.result()
}

func graceIsListed(b *bench) error {
	x := b.client().claim(b.key())
	x.lives(4, 4).grace(6).try(holding)
	b.heldBy(x.Keys[0], x)
	for _, e := range b.line(x.Keys[0]).Holders {
		b.check(e.ExpiresIn >= b.ticks(10)-b.slack && e.ExpiresIn <= b.ticks(10)+b.slack, "listed with %v to live, want %v", e.ExpiresIn, b.ticks(10))
	}
	return b.result()
}
