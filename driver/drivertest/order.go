package drivertest

import (
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// order: who holds next, and how a waiter finds out without being told.
func order() []Case {
	return []Case{
		{Name: "claims hold in the order they joined", needs: line, run: holdInOrder},
		{Name: "renewing first does not move a waiter forward", needs: line, run: renewalKeepsPlace},
		{Name: "a waiter that leaves is passed over", needs: line, run: leaverIsPassedOver},
		{Name: "Ahead counts the claims ahead", needs: line, run: aheadCounts},
		{Name: "a waiter that renews outlasts many waiting lives", needs: line, run: waiterOutlasts},
		{Name: "a waiter finds the grant by looking again when told to", needs: line, run: lookAgainFinds},
		{Name: "a waiter behind dead waiters finds the grant by looking again", needs: line, run: lookAgainBehindDead},
		{Name: "a waiter for one permit looks again when the first could be gone", needs: line | shared, run: lookAgainForOne},
	}
}

func holdInOrder(b *bench) error {
	const n = 8
	k := b.key()
	xs := b.crowd(n, k)
	for i, x := range xs {
		if i == 0 {
			x.join(holding)
			continue
		}
		x.join(waiting)
		b.check(x.Number > xs[i-1].Number, "number %d is not above the one before, %d", x.Number, xs[i-1].Number)
	}
	for i, x := range xs {
		x.renew(holding)
		b.heldBy(k, x)
		b.waitedBy(k, xs[i+1:]...)
		if i+1 < n {
			xs[i+1].renew(waiting)
		}
		x.leave(left)
	}
	b.free(k)
	return b.result()
}

func renewalKeepsPlace(b *bench) error {
	k := b.key()
	xs := b.crowd(4, k)
	xs[0].join(holding)
	for _, x := range xs[1:] {
		x.join(waiting)
	}
	xs[3].renew(waiting)
	xs[2].join(waiting)
	xs[3].renew(waiting)
	xs[0].leave(left)
	xs[3].renew(waiting)
	xs[2].renew(waiting)
	xs[1].renew(holding)
	b.waitedBy(k, xs[2], xs[3])
	return b.result()
}

func leaverIsPassedOver(b *bench) error {
	h, w, v := b.trio(b.key())
	h.join(holding)
	w.join(waiting)
	v.join(waiting)
	w.leave(left)
	b.waitedBy(h.Keys[0], v)
	v.renew(waiting)
	h.leave(left)
	v.renew(holding)
	w.renew(gone)
	return b.result()
}

func aheadCounts(b *bench) error {
	xs := b.crowd(5, b.key())
	xs[0].join(holding)
	for i, x := range xs[1:] {
		s := x.join(waiting)
		b.check(s.Ahead == i+1, "Ahead is %d, want %d", s.Ahead, i+1)
	}
	xs[2].leave(left)
	s := xs[4].renew(waiting)
	b.check(s.Ahead == 3, "Ahead is %d after one ahead left, want 3", s.Ahead)
	xs[0].leave(left)
	s = xs[4].renew(waiting)
	b.check(s.Ahead == 2 && s.Holder == xs[1].Name, "Ahead is %d and Holder %q, want 2 and %q", s.Ahead, s.Holder, xs[1].Name)
	return b.result()
}

func waiterOutlasts(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	w.lives(2, 2).join(waiting)
	for range 10 {
		b.sleep(1)
		w.renew(waiting)
	}
	h.leave(left)
	w.renew(holding)
	return b.result()
}

// looks renews x each time LookAgain has passed, until it holds, and checks that this
// is no later than n ticks after mark.
func (x *claim) looks(s driver.Standing, mark time.Time, n int) {
	b := x.b
	for range 10 {
		b.wake(time.Now().Add(s.LookAgain + time.Millisecond))
		due := time.Since(mark) > b.ticks(n)+b.slack
		s = x.renewAny()
		if b.failed() || s.State == holding {
			b.check(!due, "%s looked again %v after the start, it could have held after %v", x, time.Since(mark), b.ticks(n))
			return
		}
		b.check(!due, "%s does not hold, though nobody alive is in its way", x)
	}
	b.fail("%s looked again 10 times and does not hold", x)
}

// renewAny renews a claim that may hold or wait.
func (x *claim) renewAny() driver.Standing {
	if x.b.failed() {
		return driver.Standing{}
	}
	a := x.c.renew(x.b.ctx, []driver.Renewal{{Ref: x.Ref, Mode: driver.Extend, Life: x.Life}})[0]
	x.b.note("%s renews: %v", x, told(a.Standing, a.err))
	if a.err != nil {
		x.b.fail("%s renews: %w", x, a.err)
	} else if wrong := malformed(a.Standing, x.Number); wrong != "" {
		x.b.fail("%s renews: %s in %+v", x, wrong, a.Standing)
	}
	x.b.check(a.State == holding || a.State == waiting, "%s renews: it is %v, want holding or waiting", x, a.State)
	return a.Standing
}

func lookAgainFinds(b *bench) error {
	h, w := b.pair(b.key())
	h.lives(4, 4).join(holding)
	mark := time.Now()
	s := w.join(waiting)
	b.check(s.LookAgain >= b.ticks(3), "LookAgain is %v, but the holder lives about %v", s.LookAgain, b.ticks(4))
	w.looks(s, mark, 4)
	h.renew(gone)
	return b.result()
}

func lookAgainBehindDead(b *bench) error {
	k := b.key()
	xs := b.crowd(4, k)
	xs[0].lives(3, 3).join(holding)
	xs[1].lives(4, 4).join(waiting)
	xs[2].lives(5, 5).join(waiting)
	mark := time.Now()
	xs[3].looks(xs[3].join(waiting), mark, 5)
	b.heldBy(k, xs[3])
	return b.result()
}

func lookAgainForOne(b *bench) error {
	x, y, w := b.trio(b.key())
	x.weighs(1, 2).lives(3, 3).join(holding)
	mark := time.Now()
	y.weighs(1, 2).lives(9, 9).join(holding)
	s := w.weighs(1, 2).join(waiting)
	w.looks(s, mark, 3)
	y.renew(holding)
	return b.result()
}
