package drivertest

import (
	"errors"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// batches: Renew of many items.
func batches() []Case {
	return []Case{
		{Name: "a batch answers each item exactly once", needs: line, run: batchAnswersEach},
		{Name: "an empty batch answers nothing", run: emptyBatch},
		{Name: "a batch keeps many claims alive", run: batchKeepsAlive},
		{Name: "a claim twice in a batch is answered twice", run: twiceInBatch},
		{Name: "a drop in a batch leaves and hands over", needs: line, run: dropInBatch},
		{Name: "an invalid item spoils no other", run: invalidItem},
	}
}

func extension(x *claim) driver.Renewal {
	return driver.Renewal{Ref: x.Ref, Mode: driver.Extend, Life: x.Life}
}

// batchAnswersEach mixes every state that Renew can answer.
func batchAnswersEach(b *bench) error {
	c, other := b.client(), b.client()
	var items []driver.Renewal
	var want []driver.State
	for i, k := range b.keys(40) {
		x := c.claim(k)
		switch i % 4 {
		case 0:
			x.join(holding)
			items, want = append(items, extension(x)), append(want, holding)
		case 1:
			other.claim(k).join(holding)
			x.join(waiting)
			items, want = append(items, extension(x)), append(want, waiting)
		case 2:
			items, want = append(items, extension(x)), append(want, gone)
		case 3:
			x.join(holding)
			items, want = append(items, driver.Renewal{Ref: x.Ref, Mode: driver.Drop}), append(want, left)
		}
	}
	for i, a := range c.renew(b.ctx, items) {
		b.check(a.err == nil, "item %d: %v", i, a.err)
		b.check(a.State == want[i], "item %d is %v, want %v", i, a.State, want[i])
		if wrong := malformed(a.Standing, items[i].Number); wrong != "" && a.err == nil {
			b.fail("item %d: %s in %+v", i, wrong, a.Standing)
		}
	}
	return b.result()
}

func emptyBatch(b *bench) error {
	b.client().renew(b.ctx, nil)
	return b.result()
}

func batchKeepsAlive(b *bench) error {
	c, ks := b.client(), b.keys(160)
	items := make([]driver.Renewal, len(ks))
	begin := time.Now()
	b.atOnce(8, func(who int) {
		for i := who; i < len(ks); i += 8 {
			x := c.claim(ks[i]).lives(10, 10)
			x.try(holding)
			items[i] = extension(x)
		}
	})
	b.took(time.Since(begin) - b.ticks(5))
	for range 3 {
		b.sleep(4)
		for i, a := range c.renew(b.ctx, items) {
			b.check(a.err == nil && a.State == holding, "item %d is %v, %v, want holding", i, a.State, a.err)
		}
	}
	b.client().claim(ks[100]).try(refused)
	return b.result()
}

func twiceInBatch(b *bench) error {
	x := b.client().claim(b.key())
	x.try(holding)
	as := x.c.renew(b.ctx, []driver.Renewal{extension(x), extension(x), {Ref: x.Ref, Mode: driver.Drop}})
	for i, a := range as {
		b.check(a.err == nil, "item %d: %v", i, a.err)
	}
	// The items may be done in any order, but the drop is done once, and for good.
	b.check(as[2].State == left, "the drop is %v, want left", as[2].State)
	b.free(x.Keys...)
	x.renew(gone)
	return b.result()
}

func dropInBatch(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	w.join(waiting)
	h.drop(left)
	w.renew(holding)
	h.drop(gone)
	w.renew(holding)
	return b.result()
}

func invalidItem(b *bench) error {
	c, ks := b.client(), b.keys(3)
	x, y, z := c.claim(ks[0]), c.claim(ks[1]), c.claim(ks[2])
	x.try(holding)
	y.try(holding)
	z.try(holding)
	bad := extension(y)
	bad.Mode = 77
	as := c.renew(b.ctx, []driver.Renewal{extension(x), bad, extension(z)})
	b.check(errors.Is(as[1].err, driver.ErrInvalid), "an unknown mode is answered %v, %v, want ErrInvalid", as[1].State, as[1].err)
	b.check(as[0].err == nil && as[0].State == holding, "the item before is %v, %v", as[0].State, as[0].err)
	b.check(as[2].err == nil && as[2].State == holding, "the item behind is %v, %v", as[2].State, as[2].err)
	y.renew(holding)
	return b.result()
}
