package drivertest

import "github.com/hasp-dev/hasp/driver"

// stays: one ID may stand in line more than once, each time under another number.
func stays() []Case {
	return []Case{
		{Name: "a late join of an expired claim makes a new stay behind", needs: line, run: newStayBehind},
		{Name: "a new stay has a larger number", run: newStayIsLarger},
		{Name: "a renewal of the earlier stay does not touch the new one", run: earlierStayIsGone},
		{Name: "revoking an earlier stay does not touch the new one", needs: operator, run: earlierNumberIsNotFound},
		{Name: "a join after an unremembered leave makes a new stay", run: joinAfterLeave},
	}
}

// The client stopped for longer than its life; meanwhile another came to hold. Its
// repeated Join must not find the old stay.
func newStayBehind(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(2, 20).join(holding)
	first := x.Number
	b.sleep(3)
	y.join(holding)
	s := x.join(waiting)
	b.check(s.Number > y.Number && s.Number > first, "the new stay is %d, the first was %d, the holder is %d", s.Number, first, y.Number)
	y.leave(left)
	x.renew(holding)
	return b.result()
}

func newStayIsLarger(b *bench) error {
	x := b.client().claim(b.key())
	x.lives(2, 2).try(holding)
	first := x.Number
	b.sleep(3)
	x.try(holding)
	b.check(x.Number > first, "the new stay is %d, the first was %d", x.Number, first)
	return b.result()
}

func earlierStayIsGone(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(3, 3).try(holding)
	first := *x
	b.sleep(4)
	x.try(holding)
	b.sleep(2)
	first.renew(gone)
	first.fix(20, gone)
	b.sleep(2)
	y.try(holding)
	return b.result()
}

func earlierNumberIsNotFound(b *bench) error {
	x := b.client().claim(b.key())
	x.lives(2, 20).try(holding)
	first := *x
	b.sleep(3)
	x.lives(20, 20).try(holding)
	found := b.first.end(x.Keys[0], true, &first)
	b.check(len(found) == 0, "forcing stay %d found %d", first.Number, found)
	x.renew(holding)
	return b.result()
}

func joinAfterLeave(b *bench) error {
	x := b.client().claim(b.key())
	x.try(holding)
	first := x.Number
	x.leave(left)
	s := x.enter(driver.Join{Try: true}, holding)
	b.check(s.Number > first, "the new stay is %d, the first was %d", s.Number, first)
	return b.result()
}
