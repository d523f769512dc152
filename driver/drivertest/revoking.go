package drivertest

import "slices"

// revoking: End without force. Nobody overlaps.
func revoking() []Case {
	return []Case{
		{Name: "a revoked holder can renew no more, and is told why", needs: operator, run: revokedCannotRenew},
		{Name: "the next holds when a revoked holder leaves, not before", needs: operator | line, run: revokedLeaves},
		{Name: "the next holds when a revoked holder expires, not before", needs: operator | line, run: revokedExpires},
		{Name: "revoking may be repeated and finds the claim each time", needs: operator, run: revokeTwice},
		{Name: "a revoking repeated late does not hit the next holder", needs: operator | line, run: lateRevoke},
		{Name: "revoking ends a waiting claim at once", needs: operator | line, run: revokedWaiter},
		{Name: "revoking a number that is not there touches nobody", needs: operator | line, run: revokeWrongNumber},
		{Name: "a revoked claim is listed as revoked", needs: operator, run: revokedIsListed},
		{Name: "a fixed claim can be revoked and keeps its expiry", needs: operator, run: revokedFixed},
		{Name: "a claim of several keys is revoked by one of them", needs: operator | together, run: revokedSeveral},
		{Name: "an answered number is one that was asked for", needs: operator | line, run: revokeSome},
	}
}

func revokedCannotRenew(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(40, 40).try(holding)
	b.check(slices.Equal(b.first.end(x.Keys[0], false, x), []int64{x.Number}), "revoking did not find the holder")
	b.check(x.renew(gone).Revoked, "the renewal does not say Revoked")
	b.check(x.fix(50, gone).Revoked, "the fixing does not say Revoked")
	b.check(x.enter(joinAs(b), gone).Revoked, "the repeated join does not say Revoked")
	b.heldBy(x.Keys[0], x)
	y.try(refused)
	b.check(!x.leave(left).Revoked, "a leave says Revoked")
	b.check(!x.renew(gone).Revoked, "Revoked is answered though the claim has left")
	y.try(holding)
	return b.result()
}

func revokedLeaves(b *bench) error {
	h, w, v := b.trio(b.key())
	h.join(holding)
	w.join(waiting)
	v.join(waiting)
	b.first.end(h.Keys[0], false, h)
	w.renew(waiting)
	b.heldBy(h.Keys[0], h)
	h.leave(left)
	w.renew(holding)
	v.renew(waiting)
	return b.result()
}

func revokedExpires(b *bench) error {
	h, w := b.pair(b.key())
	h.lives(5, 5).join(holding)
	w.join(waiting)
	b.sleep(1)
	b.first.end(h.Keys[0], false, h)
	b.sleep(1)
	h.renew(gone)
	b.sleep(2)
	w.renew(waiting)
	h.renew(gone)
	b.sleep(2)
	w.renew(holding)
	b.check(!h.renew(gone).Revoked, "Revoked is answered though the claim has expired")
	return b.result()
}

func revokeTwice(b *bench) error {
	x := b.client().claim(b.key())
	x.try(holding)
	for range 3 {
		found := b.first.end(x.Keys[0], false, x)
		b.check(slices.Equal(found, []int64{x.Number}), "revoking %d found %d", x.Number, found)
	}
	b.heldBy(x.Keys[0], x)
	found := b.first.end(x.Keys[0], true, x)
	b.check(slices.Equal(found, []int64{x.Number}), "forcing the revoked %d found %d", x.Number, found)
	b.free(x.Keys...)
	return b.result()
}

func lateRevoke(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	w.join(waiting)
	b.first.end(h.Keys[0], false, h)
	h.leave(left)
	found := b.first.end(h.Keys[0], false, h)
	b.check(len(found) == 0, "the claim has left, but revoking it found %d", found)
	w.renew(holding)
	return b.result()
}

func revokedWaiter(b *bench) error {
	h, w, v := b.trio(b.key())
	h.join(holding)
	w.join(waiting)
	v.join(waiting)
	found := b.first.end(h.Keys[0], false, w)
	b.check(slices.Equal(found, []int64{w.Number}), "revoking the waiting %d found %d", w.Number, found)
	b.waitedBy(h.Keys[0], v)
	w.renew(gone)
	h.renew(holding)
	h.leave(left)
	v.renew(holding)
	return b.result()
}

func revokeWrongNumber(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	w.join(waiting)
	for _, n := range []int64{h.Number - 1, w.Number + 1, 0, -1} {
		found := b.first.endNumbers(h.Keys[0], false, n)
		b.check(len(found) == 0, "revoking %d found %d", n, found)
	}
	b.check(len(b.first.endNumbers(h.Keys[0], true)) == 0, "ending nothing found something")
	found := b.first.endNumbers(b.key(), true, h.Number)
	b.check(len(found) == 0, "ending %d of another key found %d", h.Number, found)
	h.renew(holding)
	w.renew(waiting)
	return b.result()
}

func revokedIsListed(b *bench) error {
	x := b.client().claim(b.key())
	x.try(holding)
	for _, e := range b.line(x.Keys[0]).Holders {
		b.check(!e.Revoked, "listed as revoked before it is")
	}
	b.first.end(x.Keys[0], false, x)
	b.heldBy(x.Keys[0], x)
	for _, e := range b.line(x.Keys[0]).Holders {
		b.check(e.Revoked, "not listed as revoked")
	}
	return b.result()
}

func revokedFixed(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	x.fix(4, holding)
	b.first.end(x.Keys[0], false, x)
	b.sleep(3)
	b.check(x.renew(gone).Revoked, "the renewal does not say Revoked")
	y.try(refused)
	b.sleep(2)
	y.try(holding)
	return b.result()
}

func revokedSeveral(b *bench) error {
	ks := b.keys(3)
	x := b.client().claim(ks...)
	x.try(holding)
	found := b.first.end(ks[1], false, x)
	b.check(slices.Equal(found, []int64{x.Number}), "revoking %d found %d", x.Number, found)
	b.check(x.renew(gone).Revoked, "the renewal does not say Revoked")
	for _, k := range ks {
		b.heldBy(k, x)
	}
	x.leave(left)
	b.free(ks...)
	return b.result()
}

func revokeSome(b *bench) error {
	k := b.key()
	xs := b.crowd(4, k)
	xs[0].join(holding)
	for _, x := range xs[1:] {
		x.join(waiting)
	}
	found := b.first.endNumbers(k, false, xs[3].Number, 99, xs[1].Number)
	slices.Sort(found)
	b.check(slices.Equal(found, []int64{xs[1].Number, xs[3].Number}), "revoking %d and %d found %d", xs[1].Number, xs[3].Number, found)
	b.waitedBy(k, xs[2])
	xs[0].renew(holding)
	return b.result()
}
