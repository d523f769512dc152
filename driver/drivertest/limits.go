package drivertest

import "github.com/hasp-dev/hasp/driver"

// limits: MaxLine.
func limits() []Case {
	return []Case{
		{Name: "a line that is full refuses", needs: line, run: fullLineRefuses},
		{Name: "a full line does not refuse what holds at once", needs: line, run: fullLineLetsHold},
		{Name: "a full line does not refuse a repeated join", needs: line, run: fullLineKnowsItsOwn},
		{Name: "dead waiters do not fill a line", needs: line, run: deadDoNotFill},
		{Name: "several keys are refused where one of their lines is full", needs: line | together, run: oneFullLineRefuses},
	}
}

func fullLineRefuses(b *bench) error {
	k := b.key()
	xs := b.crowd(4, k)
	two := driver.Join{MaxLine: 2}
	xs[0].enter(two, holding)
	xs[1].enter(two, waiting)
	xs[2].enter(two, waiting)
	s := xs[3].enter(two, refused)
	b.check(s.Holder == xs[0].Name, "Holder is %q, want %q", s.Holder, xs[0].Name)
	b.waitedBy(k, xs[1], xs[2])
	xs[3].renew(gone)
	xs[3].enter(driver.Join{MaxLine: 3}, waiting)
	return b.result()
}

func fullLineLetsHold(b *bench) error {
	k := b.key()
	x := b.client().claim(k)
	x.enter(driver.Join{MaxLine: 1}, holding)
	b.heldBy(k, x)
	return b.result()
}

func fullLineKnowsItsOwn(b *bench) error {
	h, w := b.pair(b.key())
	one := driver.Join{MaxLine: 1}
	h.enter(one, holding)
	w.enter(one, waiting)
	w.enter(one, waiting)
	h.enter(one, holding)
	h.leave(left)
	w.enter(one, holding)
	return b.result()
}

func deadDoNotFill(b *bench) error {
	h, w, x := b.trio(b.key())
	one := driver.Join{MaxLine: 1}
	h.join(holding)
	w.lives(2, 2).join(waiting)
	x.enter(one, refused)
	b.sleep(3)
	x.enter(one, waiting)
	return b.result()
}

func oneFullLineRefuses(b *bench) error {
	ks := b.keys(2)
	h, w, x := b.client().claim(ks[1]), b.client().claim(ks[1]), b.client().claim(ks...)
	h.join(holding)
	w.join(waiting)
	x.enter(driver.Join{MaxLine: 1}, refused)
	b.free(ks[0])
	b.waitedBy(ks[1], w)
	x.enter(driver.Join{MaxLine: 2}, waiting)
	return b.result()
}
