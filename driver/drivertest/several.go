package drivertest

import "slices"

// several: claims that stand in the lines of several keys.
func several() []Case {
	return []Case{
		{Name: "one claim holds all its keys under one number", needs: together, run: holdsAllKeys},
		{Name: "a claim holds when it holds in each of its lines", needs: line | together, run: holdsInEach},
		{Name: "nobody else's step grants a claim of several keys", needs: line | together, run: asksForItself},
		{Name: "a claim behind one of several keys waits too", needs: line | together, run: waitsBehindSeveral},
		{Name: "leaving hands over in every line", needs: line | together, run: leavesEveryLine},
		{Name: "all keys of a dead claim are free together", needs: together, run: keysDieTogether},
		{Name: "claims that cross are served one after the other", needs: line | together, run: crossingClaims},
		{Name: "Ahead is that of the longest line", needs: line | together, run: aheadInLongest},
		{Name: "the number of a claim is above the last of each of its lines", needs: together | tokens, run: numberAboveEach},
		{Name: "a holder is told of who waits behind in any of its lines", needs: line | together, run: behindInAnyLine},
		{Name: "as many keys work as the features say", needs: together, run: mostKeys},
	}
}

func holdsAllKeys(b *bench) error {
	ks := b.keys(3)
	x := b.client().claim(ks...)
	x.try(holding)
	for _, k := range ks {
		b.heldBy(k, x)
		b.client().claim(k).try(refused)
	}
	x.renew(holding)
	x.leave(left)
	b.free(ks...)
	return b.result()
}

func holdsInEach(b *bench) error {
	ks := b.keys(3)
	h, g, x := b.client().claim(ks[0]), b.client().claim(ks[2]), b.client().claim(ks...)
	h.join(holding)
	g.join(holding)
	x.join(waiting)
	h.leave(left)
	x.renew(waiting)
	g.leave(left)
	x.renew(holding)
	for _, k := range ks {
		b.heldBy(k, x)
	}
	return b.result()
}

func asksForItself(b *bench) error {
	ks := b.keys(2)
	h, x := b.client().claim(ks[1]), b.client().claim(ks...)
	h.join(holding)
	x.join(waiting)
	h.leave(left)
	for _, k := range ks {
		b.heldBy(k)
		b.waitedBy(k, x)
	}
	b.client().claim(ks[1]).try(refused) // it waits, so nobody passes
	x.renew(holding)
	return b.result()
}

func waitsBehindSeveral(b *bench) error {
	ks := b.keys(2)
	h, x, w := b.client().claim(ks[1]), b.client().claim(ks...), b.client().claim(ks[0])
	h.join(holding)
	x.join(waiting)
	s := w.join(waiting) // nobody holds its key, but x stands before it
	b.check(s.Ahead == 1, "Ahead is %d, want 1", s.Ahead)
	w.renew(waiting)
	x.leave(left)
	w.renew(holding)
	h.renew(holding)
	return b.result()
}

func leavesEveryLine(b *bench) error {
	ks := b.keys(3)
	x := b.client().claim(ks...)
	x.join(holding)
	ws := make([]*claim, len(ks))
	for i, k := range ks {
		ws[i] = b.client().claim(k)
		ws[i].join(waiting)
	}
	x.leave(left)
	for i, k := range ks {
		b.heldBy(k, ws[i])
	}
	return b.result()
}

func keysDieTogether(b *bench) error {
	ks := b.keys(3)
	b.client().claim(ks...).lives(2, 2).try(holding)
	b.sleep(1)
	b.client().claim(ks[1]).try(refused)
	b.sleep(2)
	b.free(ks...)
	for _, k := range ks {
		b.client().claim(k).try(holding)
	}
	return b.result()
}

// Each of three claims wants two of three keys; none may wait for ever.
func crossingClaims(b *bench) error {
	ks := b.keys(3)
	xs := []*claim{b.client().claim(ks[0], ks[1]), b.client().claim(ks[1], ks[2]), b.client().claim(ks[0], ks[2])}
	xs[0].join(holding)
	xs[1].join(waiting)
	xs[2].join(waiting)
	for i, x := range xs {
		x.renew(holding)
		for _, y := range xs[i+1:] {
			y.renew(waiting)
		}
		x.leave(left)
	}
	b.free(ks...)
	return b.result()
}

func aheadInLongest(b *bench) error {
	ks := b.keys(2)
	b.client().claim(ks[0]).join(holding)
	for i, x := range b.crowd(3, ks[1]) {
		if i == 0 {
			x.join(holding)
			continue
		}
		x.join(waiting)
	}
	s := b.client().claim(ks...).join(waiting)
	b.check(s.Ahead == 3, "Ahead is %d, the lines are 1 and 3 long", s.Ahead)
	return b.result()
}

func numberAboveEach(b *bench) error {
	ks := b.keys(3)
	var last int64
	for _, k := range slices.Backward(ks) {
		c := b.client()
		for range 5 {
			x := c.claim(k)
			x.try(holding)
			last = max(last, x.Number)
			x.leave(left)
		}
	}
	x := b.client().claim(ks...)
	x.try(holding)
	b.check(x.Number > last, "the number of all keys is %d, one of them had %d", x.Number, last)
	x.leave(left)
	for _, k := range ks {
		y := b.client().claim(k)
		y.try(holding)
		b.check(y.Number > x.Number, "the number %d follows %d", y.Number, x.Number)
	}
	return b.result()
}

func behindInAnyLine(b *bench) error {
	ks := b.keys(3)
	x := b.client().claim(ks...)
	x.join(holding)
	for _, k := range ks {
		w := b.client().claim(k)
		w.join(waiting)
		b.check(x.renew(holding).Behind, "somebody waits for %q, but Behind is not set", k)
		w.leave(left)
		b.check(!x.renew(holding).Behind, "nobody waits any more, but Behind is set")
	}
	return b.result()
}

func mostKeys(b *bench) error {
	n := b.first.d.Features().MaxKeys
	if n == 0 {
		n = 64
	}
	ks := b.keys(n)
	x := b.client().claim(ks...)
	x.try(holding)
	b.client().claim(ks[n-1]).try(refused)
	x.renew(holding)
	x.leave(left)
	b.free(ks...)
	return b.result()
}
