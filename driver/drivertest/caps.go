package drivertest

import (
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// caps: no step does more than bounded work, and what it leaves over is found.
func caps() []Case {
	return []Case{
		{Name: "a step grants at most 32 claims, and the others hold soon", needs: line | shared, run: grantsAreCapped},
		{Name: "a step removes at most 64 dead claims, and nobody passes the rest", needs: line, run: removalsAreCapped},
		{Name: "a try behind a great many dead holds after some tries", needs: line, run: tryBehindManyDead},
	}
}

const (
	mostGrants   = 32
	mostRemovals = 64
)

// grantsAreCapped lets a writer go before 80 readers.
func grantsAreCapped(b *bench) error {
	const n = 80
	k, c := b.key(), b.client()
	h := c.claim(k).writes()
	h.join(holding)
	rs := make([]*claim, n)
	for i := range rs {
		rs[i] = c.claim(k).reads()
		rs[i].join(waiting)
	}
	h.leave(left)
	l := b.line(k)
	b.check(len(l.Holders) > 0 && len(l.Holders) <= mostGrants, "one release granted %d, want 1 to %d", len(l.Holders), mostGrants)
	last := rs[n-1]
	s := last.renew(waiting) // 64 at most are granted by now
	b.check(s.More, "the last of %d could hold, but More is not set", n)
	last.again(n)
	b.heldBy(k, rs...)
	for _, r := range rs {
		r.renew(holding)
	}
	return b.result()
}

// again renews x as long as More says so, until it holds.
func (x *claim) again(most int) {
	for range most {
		s := x.renewAny()
		if x.b.failed() || s.State == holding {
			return
		}
		x.b.check(s.More, "%s could hold, but More is not set", x)
	}
	x.b.fail("%s does not hold after %d renewals", x, most)
}

// removalsAreCapped lets 130 waiters die between the holder and the last.
func removalsAreCapped(b *bench) error {
	k, c := b.key(), b.client()
	h, w := c.claim(k), c.claim(k)
	h.join(holding)
	b.dying(k, 2*mostRemovals+2)
	w.join(waiting)
	b.check(w.Number > 0 && len(b.line(k).Waiters) == 100, "some died too early")
	b.sleep(13)
	b.waitedBy(k, w)
	h.leave(left)
	s := w.renew(waiting)
	b.check(s.More, "only the dead are in its way, but More is not set")
	w.again(5)
	b.heldBy(k, w)
	return b.result()
}

// dying is a crowd of waiters that live twelve ticks.
func (b *bench) dying(key string, n int) {
	begin := time.Now()
	c := b.client()
	b.atOnce(8, func(i int) {
		for range n/8 + 1 {
			c.claim(key).lives(200, 12).join(waiting)
		}
	})
	b.took(time.Since(begin) - b.ticks(10))
}

func tryBehindManyDead(b *bench) error {
	k, c := b.key(), b.client()
	h, x := c.claim(k), c.claim(k)
	h.join(holding)
	b.dying(k, 2*mostRemovals+2)
	b.sleep(13)
	h.leave(left)
	for range 5 {
		s, err := c.d.Join(b.ctx, driver.Join{Claim: x.Claim, Try: true})
		b.note("%s tries: %v", x, told(s, err))
		if err != nil {
			return err
		}
		if s.State == holding {
			x.Number = s.Number
			b.heldBy(k, x)
			return b.result()
		}
		b.check(s.State == refused && s.More, "only the dead are in its way, but a try is answered %+v", s)
	}
	b.fail("a try does not hold after 5 times, though nobody lives in line")
	return b.result()
}
