package drivertest

// joining: how a claim enters a line, and what a repeated Join does.
func joining() []Case {
	return []Case{
		{Name: "a free key is held at once", run: freeKeyIsHeld},
		{Name: "a second claim waits and is told who is in its way", needs: line, run: secondWaits},
		{Name: "a holder is told whether somebody waits behind", needs: line, run: holderKnowsBehind},
		{Name: "a repeated join renews a holding claim", run: joinRenewsHolder},
		{Name: "a repeated join renews a waiting claim, which keeps its place", needs: line, run: joinRenewsWaiter},
		{Name: "a repeated join never shortens a life", run: joinNeverShortens},
		{Name: "a repeated join of a granted claim answers that it holds", needs: line, run: joinLearnsGrant},
		{Name: "two claims of one client exclude each other", needs: line, run: oneClientExcludesItself},
		{Name: "clients of one name are different owners", run: nameIsNoOwner},
		{Name: "claims of different keys do not meet", run: keysAreIndependent},
	}
}

func freeKeyIsHeld(b *bench) error {
	x := b.client().claim(b.key())
	s := x.try(holding)
	b.check(s.Life <= x.Life.Hold+b.slack, "its life is %v, asked for %v", s.Life, x.Life.Hold)
	b.check(s.Life >= x.Life.Hold-b.slack, "its life is only %v, asked for %v", s.Life, x.Life.Hold)
	b.check(s.Ahead == 0 && !s.Behind && !s.More, "alone in line, but answered %+v", s)
	b.heldBy(x.Keys[0], x)
	b.waitedBy(x.Keys[0])
	return b.result()
}

func secondWaits(b *bench) error {
	h, w := b.pair(b.key())
	h.lives(20, 20).join(holding)
	s := w.join(waiting)
	b.check(s.Ahead == 1, "Ahead is %d, want 1", s.Ahead)
	b.check(s.Holder == h.Name, "Holder is %q, want %q", s.Holder, h.Name)
	b.check(s.ExpiresIn > 0 && s.ExpiresIn <= h.Life.Hold+b.slack, "ExpiresIn is %v, the holder lives %v", s.ExpiresIn, h.Life.Hold)
	b.check(s.LookAgain <= h.Life.Hold+b.slack, "LookAgain is %v, the holder lives %v", s.LookAgain, h.Life.Hold)
	b.check(s.Life <= w.Life.Wait+b.slack, "a waiting life of %v, asked for %v", s.Life, w.Life.Wait)
	b.check(s.Number > h.Number, "its number %d is not above the holder's %d", s.Number, h.Number)
	b.heldBy(h.Keys[0], h)
	b.waitedBy(h.Keys[0], w)
	return b.result()
}

func holderKnowsBehind(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	b.check(!h.renew(holding).Behind, "nobody waits, but Behind is set")
	b.check(!w.join(waiting).Behind, "nobody waits behind the last, but Behind is set")
	b.check(h.renew(holding).Behind, "somebody waits, but a renewal does not say Behind")
	b.check(h.join(holding).Behind, "somebody waits, but a repeated join does not say Behind")
	w.leave(left)
	b.check(!h.renew(holding).Behind, "nobody waits any more, but Behind is set")
	return b.result()
}

func joinRenewsHolder(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(4, 4).try(holding)
	n := x.Number
	b.sleep(2)
	s := x.try(holding)
	b.check(s.Number == n, "the repeated join made stay %d of stay %d", s.Number, n)
	b.check(s.Life >= b.ticks(4)-b.slack, "the repeated join answers a life of %v, want %v from now on", s.Life, b.ticks(4))
	b.sleep(3)
	y.try(refused) // past the first expiry, before the second
	x.renew(holding)
	return b.result()
}

func joinRenewsWaiter(b *bench) error {
	h, w, v := b.trio(b.key())
	h.join(holding)
	w.lives(4, 4).join(waiting)
	v.join(waiting)
	n := w.Number
	for range 3 {
		b.sleep(2)
		s := w.join(waiting)
		b.check(s.Number == n, "the repeated join made stay %d of stay %d", s.Number, n)
		b.check(s.Ahead == 1, "Ahead is %d after a repeated join, want 1", s.Ahead)
		b.check(s.Behind, "somebody waits behind, but Behind is not set")
	}
	h.leave(left)
	w.renew(holding)
	return b.result()
}

func joinNeverShortens(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(7, 7).try(holding)
	s := x.lives(2, 2).try(holding)
	b.check(s.Life >= b.ticks(7)-b.slack, "it lives %v more, but the answer says %v", b.ticks(7), s.Life)
	b.sleep(4)
	y.try(refused)
	x.renew(holding)
	return b.result()
}

func joinLearnsGrant(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	w.join(waiting)
	n := w.Number
	h.leave(left)
	b.check(w.join(holding).Number == n, "the grant came to another stay")
	return b.result()
}

func oneClientExcludesItself(b *bench) error {
	c, k := b.client(), b.key()
	x, y := c.claim(k), c.claim(k)
	x.join(holding)
	y.join(waiting)
	x.renew(holding)
	y.renew(waiting)
	x.leave(left)
	y.renew(holding)
	return b.result()
}

func nameIsNoOwner(b *bench) error {
	x, y := b.pair(b.key())
	y.Name = x.Name
	x.try(holding)
	y.try(refused)
	y.renew(gone)
	y.leave(gone)
	x.renew(holding)
	return b.result()
}

func keysAreIndependent(b *bench) error {
	c := b.client()
	for _, k := range b.keys(20) {
		c.claim(k).try(holding)
	}
	h, w := b.pair(b.key())
	h.try(holding)
	w.try(refused)
	return b.result()
}
