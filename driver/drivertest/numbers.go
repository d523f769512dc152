package drivertest

import (
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// numbers: the sequence numbers that tokens are made of.
func numbers() []Case {
	return []Case{
		{Name: "numbers rise though the line is empty in between", needs: tokens, run: numbersRiseOverEmpty},
		{Name: "numbers rise over an expiry", needs: tokens, run: numbersRiseOverExpiry},
		{Name: "numbers rise from client to client", needs: tokens, run: numbersRiseOverClients},
		{Name: "numbers rise in a burst", needs: tokens, run: numbersRiseInBurst},
		{Name: "numbers follow the store's clock", needs: tokens, run: numbersFollowClock},
		{Name: "numbers do not run ahead of the clock", needs: tokens, run: numbersDoNotRunAhead},
		{Name: "readers have numbers of their own", needs: tokens | shared, run: readersHaveNumbers},
		{Name: "a claim keeps its number from joining to leaving", needs: line, run: numberStays},
	}
}

func numbersRiseOverEmpty(b *bench) error {
	x := b.client().claim(b.key())
	x.try(holding)
	x.leave(left)
	b.free(x.Keys...)
	y := b.client().claim(x.Keys...)
	y.try(holding)
	b.check(y.Number > x.Number, "number %d follows %d", y.Number, x.Number)
	y.leave(left)
	b.sleep(3)
	z := b.client().claim(x.Keys...)
	z.try(holding)
	b.check(z.Number > y.Number, "number %d follows %d", z.Number, y.Number)
	return b.result()
}

func numbersRiseOverExpiry(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(2, 2).try(holding)
	b.sleep(3)
	y.try(holding)
	b.check(y.Number > x.Number, "number %d follows the expired %d", y.Number, x.Number)
	return b.result()
}

func numbersRiseOverClients(b *bench) error {
	k, last := b.key(), int64(0)
	for range 5 {
		c := b.client()
		x := c.claim(k)
		x.try(holding)
		b.check(x.Number > last, "number %d follows %d", x.Number, last)
		last = x.Number
		x.leave(left)
		c.shut()
	}
	return b.result()
}

func numbersRiseInBurst(b *bench) error {
	c, k, last := b.client(), b.key(), int64(0)
	for range 100 {
		x := c.claim(k)
		x.try(holding)
		b.check(x.Number > last, "number %d follows %d", x.Number, last)
		last = x.Number
		x.leave(left)
	}
	return b.result()
}

func numbersFollowClock(b *bench) error {
	c, k := b.client(), b.key()
	x, y := c.claim(k), c.claim(k)
	begin := time.Now()
	x.try(holding)
	x.leave(left)
	b.sleep(3)
	y.try(holding)
	passed, rise := time.Since(begin), time.Duration(y.Number-x.Number)*time.Microsecond
	b.check(rise >= b.ticks(3)-b.slack && rise <= passed+b.slack, "numbers rose by %v in µs while %v passed", rise, passed)
	return b.result()
}

// A hundred numbers are taken, and yet the next is what the clock says.
func numbersDoNotRunAhead(b *bench) error {
	c, k := b.client(), b.key()
	x := c.claim(k)
	begin := time.Now()
	x.try(holding)
	first := x.Number
	for range 100 {
		y := x.twin()
		y.enter(driver.Join{Try: true, Leaving: &driver.Leaving{Ref: x.Ref}}, holding)
		x = y
	}
	passed, rise := time.Since(begin), time.Duration(x.Number-first)*time.Microsecond
	b.check(rise <= passed+b.slack, "numbers rose by %v in µs while %v passed", rise, passed)
	return b.result()
}

func readersHaveNumbers(b *bench) error {
	k, seen := b.key(), map[int64]bool{}
	for _, r := range b.crowd(5, k) {
		r.reads().try(holding)
		b.check(!seen[r.Number], "two readers have number %d", r.Number)
		seen[r.Number] = true
	}
	return b.result()
}

func numberStays(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	n := w.join(waiting).Number
	b.check(w.renew(waiting).Number == n, "a renewal changed the number")
	b.check(w.join(waiting).Number == n, "a repeated join changed the number")
	h.leave(left)
	b.check(w.renew(holding).Number == n, "the grant changed the number")
	b.check(w.fix(60, holding).Number == n, "the fixing changed the number")
	b.heldBy(h.Keys[0], w)
	return b.result()
}
