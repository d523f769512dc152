package drivertest

import "slices"

// forcing: End with force, which removes at once.
func forcing() []Case {
	return []Case{
		{Name: "a forced holder is out at once and the next holds", needs: operator | line, run: forcedIsOut},
		{Name: "forcing repeated does not hit the next holder", needs: operator | line, run: forceTwice},
		{Name: "forcing with a wrong number touches nobody", needs: operator, run: forceWrongNumber},
		{Name: "a forced claim of several keys leaves all its lines", needs: operator | together, run: forcedSeveral},
		{Name: "a forced waiter leaves the holder alone", needs: operator | line, run: forcedWaiter},
		{Name: "forcing one reader leaves the others", needs: operator | shared, run: forcedReader},
		{Name: "after forcing the next number is larger", needs: operator | tokens, run: numberAfterForce},
	}
}

func forcedIsOut(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	w.join(waiting)
	found := b.first.end(h.Keys[0], true, h)
	b.check(slices.Equal(found, []int64{h.Number}), "forcing %d found %d", h.Number, found)
	b.heldBy(h.Keys[0], w)
	b.check(!h.renew(gone).Revoked, "a forced claim is not in line any more, but Revoked is set")
	w.renew(holding)
	h.leave(gone)
	w.renew(holding)
	return b.result()
}

// The reply to the first was lost: the same numbers are sent again.
func forceTwice(b *bench) error {
	h, w, v := b.trio(b.key())
	h.join(holding)
	w.join(waiting)
	v.join(waiting)
	b.first.end(h.Keys[0], true, h)
	for range 2 {
		found := b.first.end(h.Keys[0], true, h)
		b.check(len(found) == 0, "forcing %d again found %d", h.Number, found)
	}
	w.renew(holding)
	v.renew(waiting)
	return b.result()
}

func forceWrongNumber(b *bench) error {
	x := b.client().claim(b.key())
	x.try(holding)
	found := b.first.endNumbers(x.Keys[0], true, x.Number-1, x.Number+1, 0)
	b.check(len(found) == 0, "forcing wrong numbers found %d", found)
	found = b.first.endNumbers(b.key(), true, x.Number)
	b.check(len(found) == 0, "forcing %d of another key found %d", x.Number, found)
	b.check(len(b.first.endNumbers(x.Keys[0], true)) == 0, "forcing nothing found something")
	x.renew(holding)
	return b.result()
}

func forcedSeveral(b *bench) error {
	ks := b.keys(3)
	x := b.client().claim(ks...)
	x.try(holding)
	found := b.first.end(ks[2], true, x)
	b.check(slices.Equal(found, []int64{x.Number}), "forcing %d found %d", x.Number, found)
	b.free(ks...)
	x.renew(gone)
	for _, k := range ks {
		b.client().claim(k).try(holding)
	}
	return b.result()
}

func forcedWaiter(b *bench) error {
	h, w, v := b.trio(b.key())
	h.join(holding)
	w.join(waiting)
	v.join(waiting)
	b.first.end(h.Keys[0], true, w)
	h.renew(holding)
	w.renew(gone)
	b.check(v.renew(waiting).Ahead == 1, "the forced waiter is still ahead")
	return b.result()
}

func forcedReader(b *bench) error {
	k := b.key()
	rs := b.crowd(3, k)
	for _, r := range rs {
		r.reads().try(holding)
	}
	b.first.end(k, true, rs[1])
	b.heldBy(k, rs[0], rs[2])
	rs[1].renew(gone)
	rs[0].renew(holding)
	rs[2].renew(holding)
	return b.result()
}

func numberAfterForce(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	b.first.end(x.Keys[0], true, x)
	y.try(holding)
	b.check(y.Number > x.Number, "number %d follows the forced %d", y.Number, x.Number)
	return b.result()
}
