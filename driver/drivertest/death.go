package drivertest

import "time"

// death: an expired claim is removed by the first step that passes it, and stays
// removed.
func death() []Case {
	return []Case{
		{Name: "a removed claim is never revived", run: deadStaysDead},
		{Name: "a claim renewed after its expiry is gone even where nobody wanted the key", run: lateRenewalIsGone},
		{Name: "a late release of the dead does not touch the next holder", run: lateLeaveIsHarmless},
		{Name: "a late renewal of the dead does not prolong the next holder", run: lateRenewalIsHarmless},
		{Name: "a dead waiter is removed wherever it stands", needs: line, run: deadInTheMiddle},
		{Name: "a waiter that slept through its life never holds", needs: line, run: sleeperNeverHolds},
		{Name: "a dead waiter is not granted by a release", needs: line, run: deadIsNotGranted},
		{Name: "many dead waiters cost one waiting life", needs: line, run: deadCostOneLife},
		{Name: "when all have died the key is free and nothing is listed", needs: line, run: allDead},
		{Name: "whatever a claim went through, it ends without its client", run: everythingEnds},
		{Name: "whatever a waiting claim went through, it ends without its client", needs: line, run: everyWaitEnds},
	}
}

func deadStaysDead(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(2, 2).try(holding)
	b.sleep(3)
	y.try(holding)
	s := x.renew(gone)
	b.check(s.Holder == y.Name && s.ExpiresIn > 0, "%q holds by now, but answered %q for %v", y.Name, s.Holder, s.ExpiresIn)
	x.fix(5, gone)
	y.leave(left)
	x.renew(gone) // the key is free, and yet
	b.free(x.Keys...)
	return b.result()
}

func lateRenewalIsGone(b *bench) error {
	x := b.client().claim(b.key())
	x.lives(2, 2).try(holding)
	b.sleep(3)
	x.renew(gone)
	x.renew(gone)
	y := b.client().claim(b.key())
	y.lives(2, 2).try(holding)
	b.sleep(3)
	y.fix(5, gone)
	b.free(x.Keys[0], y.Keys[0])
	return b.result()
}

func lateLeaveIsHarmless(b *bench) error {
	x, y, z := b.trio(b.key())
	x.lives(2, 2).try(holding)
	b.sleep(3)
	y.try(holding)
	x.leave(gone)
	x.drop(gone)
	b.heldBy(x.Keys[0], y)
	z.try(refused)
	y.renew(holding)
	return b.result()
}

func lateRenewalIsHarmless(b *bench) error {
	x, y, z := b.trio(b.key())
	x.lives(2, 2).try(holding)
	b.sleep(3)
	mark := time.Now()
	y.lives(4, 4).try(holding)
	x.lives(20, 20)
	b.until(mark, 3)
	x.renew(gone)
	for _, e := range b.line(x.Keys[0]).Holders {
		b.check(e.ExpiresIn <= b.ticks(1)+b.slack, "the next holder has %v to live, had %v", e.ExpiresIn, b.ticks(1))
	}
	b.until(mark, 5)
	z.try(holding)
	return b.result()
}

func deadInTheMiddle(b *bench) error {
	h, w, v := b.trio(b.key())
	h.join(holding)
	w.lives(2, 2).join(waiting)
	v.join(waiting)
	b.sleep(3)
	b.waitedBy(h.Keys[0], v)
	s := v.renew(waiting)
	b.check(s.Ahead == 1, "Ahead is %d, the dead counted", s.Ahead)
	w.renew(gone)
	h.leave(left)
	v.renew(holding)
	return b.result()
}

func sleeperNeverHolds(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	w.lives(2, 2).join(waiting)
	b.sleep(3)
	h.renew(holding)
	w.renew(gone)
	h.leave(left)
	w.renew(gone)
	b.free(h.Keys...)
	return b.result()
}

func deadIsNotGranted(b *bench) error {
	h, w, v := b.trio(b.key())
	h.join(holding)
	w.lives(2, 2).join(waiting)
	v.join(waiting)
	b.sleep(3)
	h.leave(left)
	b.heldBy(h.Keys[0], v)
	w.renew(gone)
	return b.result()
}

// Three waiters die. If being granted restarted their lives, they would cost three.
func deadCostOneLife(b *bench) error {
	k := b.key()
	h := b.client().claim(k)
	h.join(holding)
	mark := time.Now()
	for _, x := range b.crowd(3, k) {
		x.lives(5, 5).join(waiting)
	}
	w := b.client().claim(k)
	w.join(waiting)
	h.leave(left)
	for n := 1; n <= 5; n++ {
		b.until(mark, n)
		if n < 5 {
			w.renew(waiting)
		}
	}
	b.until(mark, 6)
	w.renew(holding)
	return b.result()
}

func allDead(b *bench) error {
	k := b.key()
	for i, x := range b.crowd(4, k) {
		x.lives(2, 2)
		if i == 0 {
			x.join(holding)
		} else {
			x.join(waiting)
		}
	}
	b.sleep(3)
	b.free(k)
	x := b.client().claim(k)
	s := x.join(holding)
	b.check(s.Ahead == 0 && !s.Behind, "alone in line, but answered %+v", s)
	return b.result()
}

// Each claim is left by its client in another state, and none may stay for ever.
func everythingEnds(b *bench) error {
	c := b.client()
	ks := b.keys(5)
	renewed, fixed, own, taken, old := c.claim(ks[0]), c.claim(ks[1]), c.claim(ks[2]), c.claim(ks[3]), c.claim(ks[3])
	for _, x := range []*claim{renewed, fixed, own, taken, old} {
		x.lives(3, 3)
	}
	renewed.try(holding)
	renewed.renew(holding)
	fixed.try(holding)
	fixed.fix(3, holding)
	own.Life.Own = true
	own.try(holding)
	own.renew(holding)
	old.try(holding)
	old.fix(3, holding)
	taken.resume(old, holding)
	b.sleep(5)
	b.free(ks...)
	for _, k := range ks {
		b.client().claim(k).try(holding)
	}
	return b.result()
}

func everyWaitEnds(b *bench) error {
	ks := b.keys(3)
	for i, k := range ks {
		h, w := b.pair(k)
		h.lives(3, 3).join(holding)
		w.lives(3, 3).join(waiting)
		switch i {
		case 0:
			h.leave(left) // granted and never renewed
		case 1:
			w.renew(waiting)
		case 2:
			w.fix(3, waiting)
		}
	}
	b.sleep(5)
	b.free(ks...)
	return b.result()
}
