package drivertest

import (
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// sessions: a store may renew all claims of a client in one stroke, but not those that
// no renewal names any more.
func sessions() []Case {
	return []Case{
		{Name: "a claim no renewal named ends though its client renews others", run: unnamedEnds},
		{Name: "a waiting claim no renewal named ends though its client renews others", needs: line, run: unnamedWaiterEnds},
		{Name: "a fixed claim ends though its client renews others", run: fixedEndsBesideOthers},
		{Name: "a claim with an expiry of its own ends though its client renews others", run: ownEndsBesideOthers},
		{Name: "a revoked claim ends though its client renews others", needs: operator, run: revokedEndsBesideOthers},
		{Name: "a claim taken over ends with its new client, whatever the old one renews", run: takenEndsWithTaker},
		{Name: "a released claim stays out though its client renews others", run: releasedBesideOthers},
	}
}

// beside makes a claim that its client goes on renewing, and answers how to let n
// ticks pass with it. They count from the first call on.
func (c *client) beside() func(n int) {
	b := c.b
	x := c.claim(b.key()).lives(3, 3)
	x.try(holding)
	var mark time.Time
	passed := 0
	return func(n int) {
		if passed == 0 {
			mark = time.Now()
		}
		for range n {
			passed++
			b.until(mark, passed)
			x.renew(holding)
		}
	}
}

func unnamedEnds(b *bench) error {
	c := b.client()
	pass := c.beside()
	x := c.claim(b.key()).lives(3, 3)
	x.try(holding)
	pass(2)
	b.client().claim(x.Keys[0]).try(refused)
	pass(2)
	b.client().claim(x.Keys[0]).try(holding)
	x.renew(gone)
	return b.result()
}

func unnamedWaiterEnds(b *bench) error {
	c := b.client()
	pass := c.beside()
	h, w := b.client().claim(b.key()), c.claim("").lives(3, 3)
	w.Keys = h.Keys
	h.join(holding)
	w.join(waiting)
	pass(4)
	b.waitedBy(h.Keys[0])
	w.renew(gone)
	return b.result()
}

func fixedEndsBesideOthers(b *bench) error {
	c := b.client()
	pass := c.beside()
	x := c.claim(b.key())
	x.try(holding)
	x.renew(holding)
	x.fix(3, holding)
	pass(2)
	b.client().claim(x.Keys[0]).try(refused)
	x.renew(holding)
	pass(2)
	b.client().claim(x.Keys[0]).try(holding)
	return b.result()
}

func ownEndsBesideOthers(b *bench) error {
	c := b.client()
	pass := c.beside()
	x := c.claim(b.key()).lives(3, 3)
	x.Life.Own = true
	x.try(holding)
	x.renew(holding)
	pass(2)
	b.client().claim(x.Keys[0]).try(refused)
	pass(2)
	b.client().claim(x.Keys[0]).try(holding)
	return b.result()
}

func revokedEndsBesideOthers(b *bench) error {
	c := b.client()
	pass := c.beside()
	x := c.claim(b.key()).lives(3, 3)
	x.try(holding)
	x.renew(holding)
	b.first.end(x.Keys[0], false, x)
	pass(2)
	b.client().claim(x.Keys[0]).try(refused)
	pass(2)
	b.client().claim(x.Keys[0]).try(holding)
	return b.result()
}

func takenEndsWithTaker(b *bench) error {
	c := b.client()
	pass := c.beside()
	x := c.claim(b.key())
	x.try(holding)
	x.renew(holding)
	y := b.client().claim(x.Keys...).lives(3, 3)
	y.resume(x, holding)
	pass(2)
	b.client().claim(x.Keys[0]).try(refused)
	pass(2)
	b.client().claim(x.Keys[0]).try(holding)
	return b.result()
}

func releasedBesideOthers(b *bench) error {
	c := b.client()
	x, y := c.claim(b.key()).lives(4, 4), c.claim(b.key()).lives(4, 4)
	x.try(holding)
	y.try(holding)
	both := []driver.Renewal{extension(x), extension(y)}
	c.renew(b.ctx, both)
	y.leave(left)
	for end := time.Now().Add(b.ticks(3)); time.Now().Before(end) && !b.failed(); b.sleep(1) {
		as := c.renew(b.ctx, both) // a batch put together before the release
		b.check(as[0].State == holding && as[1].State == gone, "answered %v and %v, want holding and gone", as[0].State, as[1].State)
	}
	b.free(y.Keys...)
	return b.result()
}
