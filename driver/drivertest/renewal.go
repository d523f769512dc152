package drivertest

import "github.com/hasp-dev/hasp/driver"

// renewal: Renew with Extend.
func renewal() []Case {
	return []Case{
		{Name: "a renewing holder outlives its life many times", run: renewalKeepsAlive},
		{Name: "a renewal sets the life, it never adds to it", run: renewalNeverAdds},
		{Name: "a renewal never shortens a life, and answers what it is", run: renewalNeverShortens},
		{Name: "a waiting renewal gives the waiting life", needs: line, run: waitingRenewal},
		{Name: "being granted changes no expiry", needs: line, run: grantChangesNoExpiry},
		{Name: "the renewal after the grant gives the full life", needs: line, run: renewalAfterGrant},
		{Name: "a renewal grants where others have died", needs: line, run: renewalGrants},
		{Name: "the life answered with a grant is kept", needs: line, run: grantedLifeIsKept},
		{Name: "a renewal of a claim never seen is gone", run: unknownIsGone},
		{Name: "a renewal that names another stay is gone and changes nothing", run: otherStayIsGone},
		{Name: "a renewal that names no stay goes by the id", run: renewalByID},
		{Name: "a renewal with the id of another claim does not touch the holder", run: foreignRenewal},
		{Name: "a claim with an expiry of its own lives and dies as others do", run: ownExpiry},
	}
}

func renewalKeepsAlive(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(3, 3).try(holding)
	for range 6 {
		b.sleep(1)
		s := x.renew(holding)
		b.check(s.Life >= x.Life.Hold-b.slack, "a renewal answers a life of %v, want %v", s.Life, x.Life.Hold)
		y.try(refused)
	}
	return b.result()
}

func renewalNeverAdds(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(3, 3).try(holding)
	for range 4 {
		s := x.renew(holding)
		b.check(s.Life <= x.Life.Hold+b.slack, "a renewal answers a life of %v, want %v", s.Life, x.Life.Hold)
	}
	b.sleep(4)
	y.try(holding)
	x.renew(gone)
	return b.result()
}

func renewalNeverShortens(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(7, 7).try(holding)
	s := x.lives(2, 2).renew(holding)
	b.check(s.Life >= b.ticks(7)-b.slack, "it lives %v more, but the answer says %v", b.ticks(7), s.Life)
	b.sleep(4)
	y.try(refused)
	s = x.renew(holding)
	b.check(s.Life <= b.ticks(3)+b.slack, "it lives %v more, but the answer says %v", b.ticks(3), s.Life)
	b.sleep(4)
	y.try(holding)
	return b.result()
}

func waitingRenewal(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	s := w.lives(200, 3).join(waiting)
	b.check(s.Life <= b.ticks(3)+b.slack, "a waiting life of %v, want %v", s.Life, b.ticks(3))
	b.sleep(2)
	s = w.renew(waiting)
	b.check(s.Life >= b.ticks(3)-b.slack && s.Life <= b.ticks(3)+b.slack, "a waiting life of %v, want %v", s.Life, b.ticks(3))
	b.sleep(4)
	w.renew(gone)
	return b.result()
}

func grantChangesNoExpiry(b *bench) error {
	h, w, v := b.trio(b.key())
	h.join(holding)
	w.lives(200, 4).join(waiting)
	v.join(waiting)
	b.sleep(2)
	h.leave(left)
	b.heldBy(h.Keys[0], w)
	for _, e := range b.line(h.Keys[0]).Holders {
		b.check(e.ExpiresIn <= b.ticks(2)+b.slack, "granted with %v to live, had %v", e.ExpiresIn, b.ticks(2))
	}
	b.sleep(3)
	v.renew(holding)
	w.renew(gone)
	return b.result()
}

func renewalAfterGrant(b *bench) error {
	h, w, v := b.trio(b.key())
	h.join(holding)
	w.lives(8, 3).join(waiting)
	v.join(waiting)
	h.leave(left)
	s := w.renew(holding)
	b.check(s.Life >= b.ticks(8)-b.slack, "the renewal after the grant answers %v, want %v", s.Life, b.ticks(8))
	b.sleep(5)
	v.renew(waiting)
	w.renew(holding)
	return b.result()
}

func renewalGrants(b *bench) error {
	h, w := b.pair(b.key())
	h.lives(2, 2).join(holding)
	w.join(waiting)
	n := w.Number
	b.sleep(3)
	s := w.renew(holding)
	b.check(s.Number == n && s.Ahead == 0, "stay %d now holds, but the answer is %+v", n, s)
	h.renew(gone)
	w.renew(holding)
	return b.result()
}

// The renewal itself finds the grant. Which life it brings is the store's choice; what
// it answers must be true.
func grantedLifeIsKept(b *bench) error {
	h, w, v := b.trio(b.key())
	h.lives(2, 2).join(holding)
	w.lives(8, 4).join(waiting)
	v.join(waiting)
	b.sleep(3)
	n := int(w.renew(holding).Life / b.tick)
	b.check(n >= 3 && n <= 8, "a life of %d ticks, asked for 4 or 8", n)
	b.sleep(min(n, 8) - 1)
	v.renew(waiting)
	w.renew(holding)
	return b.result()
}

func unknownIsGone(b *bench) error {
	x := b.client().claim(b.key())
	x.renew(gone)
	x.Number = 12345
	x.renew(gone)
	x.fix(3, gone)
	b.free(x.Keys...)
	return b.result()
}

func otherStayIsGone(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(3, 3).try(holding)
	other := *x
	other.Number++
	b.sleep(2)
	other.renew(gone)
	other.fix(20, gone)
	b.sleep(2)
	y.try(holding)
	return b.result()
}

func renewalByID(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(3, 3).try(holding)
	n := x.Number
	b.sleep(2)
	x.Number = 0
	b.check(x.renew(holding).Number == n, "the renewal found another stay")
	b.sleep(2)
	y.try(refused)
	return b.result()
}

func foreignRenewal(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(3, 3).try(holding)
	y.Number = x.Number
	b.sleep(2)
	y.renew(gone)
	y.fix(20, gone)
	b.sleep(2)
	y.Number = 0
	y.try(holding)
	x.renew(gone)
	return b.result()
}

func ownExpiry(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(3, 3)
	x.Life.Own = true
	x.try(holding)
	b.sleep(2)
	x.renew(holding)
	b.sleep(2)
	y.try(refused)
	b.sleep(2)
	y.try(holding)
	x.item("renews", driver.Renewal{Ref: driver.Ref{ID: x.ID, Keys: x.Keys}, Mode: driver.Extend, Life: x.Life}, gone)
	return b.result()
}
