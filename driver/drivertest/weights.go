package drivertest

import (
	"errors"
	"math"

	"github.com/hasp-dev/hasp/driver"
)

// weights: permits, and what happens where claims disagree about the capacity.
func weights() []Case {
	return []Case{
		{Name: "as many hold as fit", needs: line | shared, run: asManyAsFit},
		{Name: "what fits does not pass what waits", needs: line | shared, run: fittingWaitsToo},
		{Name: "a heavy claim holds when enough has left", needs: line | shared, run: heavyWaits},
		{Name: "a heavy claim that leaves lets several in", needs: line | shared, run: heavyLeaves},
		{Name: "the smallest capacity counts while a claim that says it is in line", needs: line | shared, run: smallestCapacity},
		{Name: "a smaller capacity behind demotes nobody", needs: line | shared, run: nobodyIsDemoted},
		{Name: "an expired permit frees its own weight alone", needs: line | shared, run: permitExpires},
		{Name: "weights at the end of their range do not wrap around", needs: shared, run: weightsDoNotWrap},
	}
}

// permits are n claims of one permit each.
func (b *bench) permits(n int, capacity int64, key string) []*claim {
	xs := b.crowd(n, key)
	for _, x := range xs {
		x.weighs(1, capacity)
	}
	return xs
}

func asManyAsFit(b *bench) error {
	k := b.key()
	xs := b.permits(5, 3, k)
	for _, x := range xs[:3] {
		x.join(holding)
	}
	xs[3].join(waiting)
	xs[4].join(waiting)
	b.heldBy(k, xs[:3]...)
	xs[1].leave(left)
	xs[3].renew(holding)
	xs[4].renew(waiting)
	b.heldBy(k, xs[0], xs[2], xs[3])
	xs[0].leave(left)
	xs[2].leave(left)
	xs[3].renew(holding)
	xs[4].renew(holding)
	return b.result()
}

func fittingWaitsToo(b *bench) error {
	h, w, x := b.trio(b.key())
	h.weighs(2, 3).join(holding)
	w.weighs(2, 3).join(waiting)
	s := x.weighs(1, 3).join(waiting)
	b.check(s.Ahead == 2, "Ahead is %d, want 2", s.Ahead)
	w.leave(left)
	x.renew(holding)
	h.renew(holding)
	return b.result()
}

func heavyWaits(b *bench) error {
	k := b.key()
	xs := b.permits(3, 3, k)
	for _, x := range xs {
		x.join(holding)
	}
	w := b.client().claim(k).weighs(2, 3)
	w.join(waiting)
	xs[2].leave(left)
	w.renew(waiting)
	xs[0].leave(left)
	w.renew(holding)
	b.heldBy(k, xs[1], w)
	return b.result()
}

func heavyLeaves(b *bench) error {
	k := b.key()
	h := b.client().claim(k).weighs(3, 3)
	h.join(holding)
	xs := b.permits(4, 3, k)
	for _, x := range xs {
		x.join(waiting)
	}
	h.leave(left)
	b.heldBy(k, xs[:3]...)
	b.waitedBy(k, xs[3])
	return b.result()
}

func smallestCapacity(b *bench) error {
	k := b.key()
	old := b.permits(2, 2, k)
	young := b.permits(4, 5, k)
	old[0].join(holding)
	young[0].join(holding)
	young[1].join(waiting) // 3 do not fit into 2
	young[2].join(waiting)
	old[1].join(waiting)
	young[3].join(waiting)
	old[0].leave(left)
	young[1].renew(holding)
	young[2].renew(holding)
	old[1].renew(waiting) // 4 do not fit into 2
	young[3].renew(waiting)
	old[1].leave(left)
	young[3].renew(holding)
	b.heldBy(k, young...)
	return b.result()
}

func nobodyIsDemoted(b *bench) error {
	k := b.key()
	xs := b.permits(4, 6, k)
	for _, x := range xs {
		x.join(holding)
	}
	small := b.client().claim(k).weighs(1, 4)
	small.join(waiting)
	for _, x := range xs {
		x.renew(holding)
	}
	xs[0].leave(left)
	small.renew(holding)
	b.heldBy(k, xs[1], xs[2], xs[3], small)
	return b.result()
}

func permitExpires(b *bench) error {
	k := b.key()
	xs := b.permits(4, 2, k)
	xs[0].lives(2, 2).join(holding)
	xs[1].join(holding)
	xs[2].join(waiting)
	xs[3].join(waiting)
	b.sleep(3)
	xs[2].renew(holding)
	xs[3].renew(waiting)
	xs[0].leave(gone)
	xs[3].renew(waiting)
	b.heldBy(k, xs[1], xs[2])
	return b.result()
}

// A sum of weights must not wrap around or lose digits; a store may also say that
// such weights are invalid.
func weightsDoNotWrap(b *bench) error {
	for _, w := range []int64{1 << 30, 1<<53 + 1, math.MaxInt64} {
		h, x := b.pair(b.key())
		_, err := h.c.d.Join(b.ctx, driver.Join{Claim: h.weighs(w, w).Claim, Try: true})
		if w > 1<<30 && errors.Is(err, driver.ErrInvalid) {
			continue
		}
		b.check(err == nil, "weight %d: %v", w, err)
		x.weighs(w, w).try(refused)
		x.weighs(1, w).try(refused)
	}
	return b.result()
}
