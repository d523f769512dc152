package drivertest

import "github.com/hasp-dev/hasp/driver"

// remembering: a Leave that says a Join of its ID may still arrive.
func remembering() []Case {
	return []Case{
		{Name: "a join that arrives after its release is gone", run: lateJoinIsGone},
		{Name: "a join overtaken by its release is gone", run: overtakenJoinIsGone},
		{Name: "a late join of a waiter that gave up is gone", needs: line, run: lateWaiterIsGone},
		{Name: "a remembered id stays remembered while others come and go", run: rememberedAmongOthers},
		{Name: "a remembered id stays remembered though its line was empty", run: rememberedOverEmpty},
		{Name: "a drop remembers as a release does", run: dropRemembers},
		{Name: "a release repeated without the wish does not forget the id", run: rememberedAfterSecondLeave},
		{Name: "no other id is refused for a remembered one", run: othersAreNotRemembered},
		{Name: "a remembered id of several keys is gone", needs: together, run: rememberedSeveral},
		{Name: "an id is remembered as long as asked", run: rememberedLong},
	}
}

func lateJoinIsGone(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	x.giveUp(40, left)
	x.try(gone)
	b.free(x.Keys...)
	y.try(holding)
	x.try(gone)
	y.renew(holding)
	return b.result()
}

// The Join was sent first and arrives last: without the memory it would be a claim
// that nobody renews.
func overtakenJoinIsGone(b *bench) error {
	x := b.client().claim(b.key())
	x.giveUp(40, gone)
	x.try(gone)
	x.renew(gone)
	b.free(x.Keys...)
	b.client().claim(x.Keys[0]).try(holding)
	return b.result()
}

func lateWaiterIsGone(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	w.join(waiting)
	w.giveUp(40, left)
	w.join(gone)
	h.leave(left)
	w.join(gone)
	b.free(h.Keys...)
	return b.result()
}

func rememberedAmongOthers(b *bench) error {
	k := b.key()
	x := b.client().claim(k)
	x.giveUp(60, gone)
	c := b.client()
	for range 30 {
		y := c.claim(k)
		y.try(holding)
		y.renew(holding)
		y.leave(left)
	}
	y := c.claim(k)
	y.giveUp(60, gone)
	x.try(gone)
	y.try(gone)
	return b.result()
}

func rememberedOverEmpty(b *bench) error {
	x, y := b.pair(b.key())
	y.lives(2, 2).try(holding)
	x.giveUp(40, gone)
	b.sleep(4)
	b.free(x.Keys...)
	x.try(gone)
	return b.result()
}

func dropRemembers(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	x.item("drops", driver.Renewal{Ref: x.Ref, Mode: driver.Drop, Unanswered: true, Remember: b.ticks(40)}, left)
	x.try(gone)
	y.item("drops", driver.Renewal{Ref: y.Ref, Mode: driver.Drop, Unanswered: true, Remember: b.ticks(40)}, gone)
	y.try(gone)
	b.free(x.Keys...)
	return b.result()
}

func rememberedAfterSecondLeave(b *bench) error {
	x := b.client().claim(b.key())
	x.try(holding)
	x.giveUp(40, left)
	x.leave(gone)
	x.giveUp(2, gone)
	b.sleep(3)
	x.try(gone)
	return b.result()
}

func othersAreNotRemembered(b *bench) error {
	c, k := b.client(), b.key()
	x := c.claim(k)
	x.try(holding)
	x.giveUp(40, left)
	y := c.claim(k)
	y.ID = x.ID
	y.ID[15] ^= 1
	y.try(holding)
	x.try(gone)
	y.renew(holding)
	return b.result()
}

func rememberedSeveral(b *bench) error {
	ks := b.keys(3)
	x := b.client().claim(ks...)
	x.try(holding)
	x.giveUp(40, left)
	x.try(gone)
	b.free(ks...)
	return b.result()
}

func rememberedLong(b *bench) error {
	x := b.client().claim(b.key())
	x.try(holding)
	x.giveUp(6, left)
	b.client().claim(x.Keys[0]).try(holding)
	b.sleep(5)
	x.try(gone)
	return b.result()
}
