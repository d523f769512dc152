package drivertest

import "github.com/hasp-dev/hasp/driver"

// leaving: a claim that goes, and the hand-over.
func leaving() []Case {
	return []Case{
		{Name: "a release hands over to the next at once", needs: line, run: leaveHandsOver},
		{Name: "a release frees the key", run: leaveFrees},
		{Name: "a repeated release is gone and harmless", needs: line, run: leaveTwice},
		{Name: "a late release does not hit the next holder", run: lateLeave},
		{Name: "a release goes by the id whatever the number", run: leaveByID},
		{Name: "a release of a claim never seen is gone", run: leaveOfUnknown},
		{Name: "nobody releases the claim of another", run: leaveOfAnother},
		{Name: "a waiter that leaves takes out itself alone", needs: line, run: waiterLeaves},
		{Name: "a release removes the dead it passes", needs: line, run: leavePassesDead},
	}
}

func leaveHandsOver(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	w.join(waiting)
	h.leave(left)
	b.heldBy(h.Keys[0], w)
	b.waitedBy(h.Keys[0])
	b.client().claim(h.Keys[0]).try(refused)
	w.renew(holding)
	return b.result()
}

func leaveFrees(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	x.leave(left)
	b.free(x.Keys...)
	x.renew(gone)
	y.try(holding)
	return b.result()
}

func leaveTwice(b *bench) error {
	h, w, v := b.trio(b.key())
	h.join(holding)
	w.join(waiting)
	v.join(waiting)
	h.leave(left)
	h.leave(gone)
	h.leave(gone)
	w.renew(holding)
	v.renew(waiting)
	return b.result()
}

func lateLeave(b *bench) error {
	c, k := b.client(), b.key()
	x, y := c.claim(k), c.claim(k)
	x.try(holding)
	x.leave(left)
	y.try(holding) // of the same client
	x.leave(gone)
	x.drop(gone)
	y.renew(holding)
	b.heldBy(k, y)
	return b.result()
}

func leaveByID(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	x.leaving(driver.Leaving{Ref: driver.Ref{ID: x.ID, Keys: x.Keys}}, left)
	y.try(holding)
	y.leaving(driver.Leaving{Ref: driver.Ref{ID: y.ID, Keys: y.Keys, Number: y.Number + 5}}, left)
	b.free(x.Keys...)
	return b.result()
}

func leaveOfUnknown(b *bench) error {
	x := b.client().claim(b.key())
	x.leave(gone)
	x.drop(gone)
	b.free(x.Keys...)
	return b.result()
}

func leaveOfAnother(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	y.Number = x.Number
	y.leave(gone)
	z := x.c.claim(x.Keys...) // the same inbox is not the same owner
	z.Number = x.Number
	z.leave(gone)
	z.drop(gone)
	b.heldBy(x.Keys[0], x)
	return b.result()
}

func waiterLeaves(b *bench) error {
	k := b.key()
	xs := b.crowd(4, k)
	xs[0].join(holding)
	for _, x := range xs[1:] {
		x.join(waiting)
	}
	xs[2].leave(left)
	b.heldBy(k, xs[0])
	b.waitedBy(k, xs[1], xs[3])
	xs[2].leave(gone)
	b.waitedBy(k, xs[1], xs[3])
	return b.result()
}

func leavePassesDead(b *bench) error {
	k := b.key()
	xs := b.crowd(4, k)
	xs[0].join(holding)
	xs[1].lives(2, 2).join(waiting)
	xs[2].lives(2, 2).join(waiting)
	xs[3].join(waiting)
	b.sleep(3)
	xs[0].leave(left)
	b.heldBy(k, xs[3])
	xs[1].leave(gone)
	xs[3].renew(holding)
	return b.result()
}
