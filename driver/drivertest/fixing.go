package drivertest

// fixing: Renew with Fix, by which Keep and Detach end a lease at a chosen time.
func fixing() []Case {
	return []Case{
		{Name: "fixing may shorten a life", run: fixShortens},
		{Name: "fixing may lengthen a life", run: fixLengthens},
		{Name: "no renewal moves a fixed expiry", run: fixedStays},
		{Name: "a late renewal does not set a fixed expiry back", run: lateRenewalAfterFix},
		{Name: "only the first fixing counts", run: firstFixCounts},
		{Name: "fixing a waiting claim extends it", needs: line, run: fixOfWaiter},
		{Name: "a fixed claim is listed as fixed", run: fixedIsListed},
		{Name: "a fixed claim can leave", run: fixedLeaves},
	}
}

func fixShortens(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	s := x.fix(3, holding)
	b.check(s.Life <= b.ticks(3)+b.slack, "fixed to %v, answered %v", b.ticks(3), s.Life)
	b.sleep(2)
	y.try(refused)
	b.sleep(2)
	y.try(holding)
	x.renew(gone)
	return b.result()
}

func fixLengthens(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(2, 2).try(holding)
	s := x.fix(6, holding)
	b.check(s.Life >= b.ticks(6)-b.slack, "fixed to %v, answered %v", b.ticks(6), s.Life)
	b.sleep(4)
	y.try(refused)
	b.sleep(3)
	y.try(holding)
	return b.result()
}

func fixedStays(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	x.fix(4, holding)
	b.sleep(1)
	s := x.renew(holding)
	b.check(s.Life <= b.ticks(3)+b.slack, "fixed with %v to go, a renewal answers %v", b.ticks(3), s.Life)
	s = x.try(holding)
	b.check(s.Life <= b.ticks(3)+b.slack, "fixed with %v to go, a repeated join answers %v", b.ticks(3), s.Life)
	b.sleep(4)
	y.try(holding)
	x.renew(gone)
	return b.result()
}

func lateRenewalAfterFix(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(2, 2).try(holding)
	x.fix(6, holding)
	s := x.renew(holding)
	b.check(s.Life >= b.ticks(6)-b.slack, "fixed with %v to go, a renewal answers %v", b.ticks(6), s.Life)
	b.sleep(4)
	y.try(refused)
	return b.result()
}

func firstFixCounts(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	x.fix(4, holding)
	s := x.fix(20, holding)
	b.check(s.Life <= b.ticks(4)+b.slack, "fixed to %v first, the second answers %v", b.ticks(4), s.Life)
	s = x.fix(2, holding)
	b.check(s.Life >= b.ticks(4)-b.slack, "fixed to %v first, the third answers %v", b.ticks(4), s.Life)
	b.sleep(3)
	y.try(refused)
	b.sleep(2)
	y.try(holding)
	return b.result()
}

func fixOfWaiter(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	w.lives(6, 4).join(waiting)
	b.sleep(2)
	s := w.fix(1, waiting) // neither shortened nor fixed
	b.check(s.Life >= b.ticks(4)-b.slack && s.Life <= b.ticks(4)+b.slack, "a waiting life of %v, want %v", s.Life, b.ticks(4))
	b.sleep(3)
	w.renew(waiting)
	h.leave(left)
	w.renew(holding)
	b.sleep(3)
	w.renew(holding)
	for _, e := range b.line(h.Keys[0]).Holders {
		b.check(!e.Fixed, "a claim that waited when it was fixed is listed as fixed")
	}
	return b.result()
}

func fixedIsListed(b *bench) error {
	x := b.client().claim(b.key())
	x.try(holding)
	for _, e := range b.line(x.Keys[0]).Holders {
		b.check(!e.Fixed, "listed as fixed before it is")
	}
	x.fix(30, holding)
	b.heldBy(x.Keys[0], x)
	for _, e := range b.line(x.Keys[0]).Holders {
		b.check(e.Fixed, "not listed as fixed")
	}
	return b.result()
}

func fixedLeaves(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	x.fix(100, holding)
	x.leave(left)
	y.try(holding)
	return b.result()
}
