package drivertest

// try: a Join that enters only where it holds at once.
func try() []Case {
	return []Case{
		{Name: "a try on a held key is refused, names the holder and leaves nothing", run: tryIsRefused},
		{Name: "a try repeated by the holder answers that it holds", run: tryKnowsItself},
		{Name: "a try overtakes nobody who waits", needs: line | shared, run: tryOvertakesNobody},
		{Name: "a try of a waiting claim renews it", needs: line, run: tryRenewsWaiter},
		{Name: "a refused try may be repeated and then hold", run: refusedMayRepeat},
		{Name: "a try of several keys takes all or nothing", needs: together, run: tryAllOrNothing},
		{Name: "a try behind the dead holds", run: tryBehindDead},
	}
}

func tryIsRefused(b *bench) error {
	h, x := b.pair(b.key())
	h.lives(20, 20).try(holding)
	s := x.try(refused)
	b.check(s.Holder == h.Name, "Holder is %q, want %q", s.Holder, h.Name)
	b.check(s.ExpiresIn > 0 && s.ExpiresIn <= h.Life.Hold+b.slack, "ExpiresIn is %v, the holder lives %v", s.ExpiresIn, h.Life.Hold)
	b.heldBy(h.Keys[0], h)
	b.waitedBy(h.Keys[0])
	h.leave(left)
	x.renew(gone) // it never entered
	b.free(h.Keys...)
	return b.result()
}

func tryKnowsItself(b *bench) error {
	x := b.client().claim(b.key())
	x.try(holding)
	n := x.Number
	for range 3 {
		b.check(x.try(holding).Number == n, "a repeated try made another stay")
	}
	b.heldBy(x.Keys[0], x)
	return b.result()
}

// The key has room for one permit more, but somebody waits for two.
func tryOvertakesNobody(b *bench) error {
	h, w, x := b.trio(b.key())
	h.weighs(1, 2).join(holding)
	w.weighs(2, 2).join(waiting)
	x.weighs(1, 2).try(refused)
	b.waitedBy(h.Keys[0], w)
	h.leave(left)
	w.renew(holding)
	x.try(refused)
	w.leave(left)
	x.try(holding)
	return b.result()
}

func tryRenewsWaiter(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	w.lives(4, 4).join(waiting)
	n := w.Number
	b.sleep(2)
	b.check(w.try(waiting).Number == n, "the repeated join made another stay")
	b.sleep(3)
	w.renew(waiting)
	return b.result()
}

func refusedMayRepeat(b *bench) error {
	h, x := b.pair(b.key())
	h.try(holding)
	x.try(refused)
	x.try(refused)
	h.leave(left)
	x.try(holding)
	x.renew(holding)
	return b.result()
}

func tryAllOrNothing(b *bench) error {
	ks := b.keys(3)
	h, x := b.client().claim(ks[1]), b.client().claim(ks...)
	h.try(holding)
	b.check(x.try(refused).Holder == h.Name, "the holder in the way is not named")
	b.free(ks[0], ks[2])
	b.heldBy(ks[1], h)
	b.client().claim(ks[0]).try(holding)
	b.client().claim(ks[2]).try(holding)
	return b.result()
}

func tryBehindDead(b *bench) error {
	h, x := b.pair(b.key())
	h.lives(2, 2).try(holding)
	b.sleep(3)
	s := x.try(holding)
	b.check(s.Ahead == 0, "Ahead is %d, the dead counted", s.Ahead)
	b.heldBy(h.Keys[0], x)
	h.renew(gone)
	return b.result()
}
