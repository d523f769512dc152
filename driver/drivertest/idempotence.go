package drivertest

import (
	"context"
	"slices"
	"sync"

	"github.com/hasp-dev/hasp/driver"
)

// idempotence: calls that arrive twice, late, or at the same time as others.
func idempotence() []Case {
	return []Case{
		{Name: "copies of a join that arrive at once make one stay", strict: true, run: joinCopies},
		{Name: "copies of a waiting join that arrive at once make one stay", strict: true, needs: line, run: waitingJoinCopies},
		{Name: "of copies of a release that arrive at once one takes the claim out", strict: true, needs: line, run: leaveCopies},
		{Name: "copies of a take-over that arrive at once answer the same", strict: true, run: resumeCopies},
		{Name: "copies of a forcing that arrive at once hit one claim", strict: true, needs: operator | line, run: forceCopies},
		{Name: "a renewal beside a release leaves nothing", strict: true, run: renewBesideLeave},
		{Name: "a join beside its own release leaves nothing once that was remembered", strict: true, run: joinBesideLeave},
		{Name: "late copies of every call of a released claim are gone", needs: line, run: lateCopies},
	}
}

// copies sends eight copies of a call at once and answers what came back.
func (x *claim) copies(call func(context.Context) (driver.Standing, error)) []driver.Standing {
	const n = 8
	var mu sync.Mutex
	var got []driver.Standing
	x.b.atOnce(n, func(int) {
		s, err := call(x.b.ctx)
		x.b.note("%s, one copy of %d: %s", x, n, told(s, err))
		x.b.check(err == nil, "one copy of %d: %v", n, err)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, s)
	})
	return got
}

func (x *claim) sameStay(got []driver.Standing, state driver.State) {
	for _, s := range got {
		x.b.check(s.State == state && s.Number == got[0].Number, "copies of one call are answered %v #%d and %v #%d", got[0].State, got[0].Number, s.State, s.Number)
	}
	x.Number = got[0].Number
}

func joinCopies(b *bench) error {
	x := b.client().claim(b.key())
	j := joinAs(b)
	j.Claim = x.Claim
	x.sameStay(x.copies(func(ctx context.Context) (driver.Standing, error) { return x.c.d.Join(ctx, j) }), holding)
	b.heldBy(x.Keys[0], x)
	x.leave(left)
	b.free(x.Keys...)
	return b.result()
}

func waitingJoinCopies(b *bench) error {
	h, x := b.pair(b.key())
	h.join(holding)
	j := driver.Join{Claim: x.Claim}
	x.sameStay(x.copies(func(ctx context.Context) (driver.Standing, error) { return x.c.d.Join(ctx, j) }), waiting)
	b.waitedBy(x.Keys[0], x)
	h.leave(left)
	x.renew(holding)
	return b.result()
}

func leaveCopies(b *bench) error {
	h, w, v := b.trio(b.key())
	h.join(holding)
	w.join(waiting)
	v.join(waiting)
	got := h.copies(func(ctx context.Context) (driver.Standing, error) {
		return h.c.d.Leave(ctx, driver.Leaving{Ref: h.Ref})
	})
	n := 0
	for _, s := range got {
		b.check(s.State == left || s.State == gone, "a copy of a release is %v", s.State)
		if s.State == left {
			n++
		}
	}
	b.check(n == 1, "%d copies of a release took the claim out", n)
	w.renew(holding)
	v.renew(waiting)
	return b.result()
}

func resumeCopies(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	j := joinAs(b)
	ref := x.Ref
	j.Claim, j.Resume = y.Claim, &ref
	y.sameStay(y.copies(func(ctx context.Context) (driver.Standing, error) { return y.c.d.Join(ctx, j) }), holding)
	b.check(y.Number == x.Number, "the taker has number %d, the place had %d", y.Number, x.Number)
	b.heldBy(x.Keys[0], y)
	return b.result()
}

func forceCopies(b *bench) error {
	h, w, v := b.trio(b.key())
	h.join(holding)
	w.join(waiting)
	v.join(waiting)
	var mu sync.Mutex
	n := 0
	b.atOnce(8, func(int) {
		found := b.first.end(h.Keys[0], true, h)
		mu.Lock()
		defer mu.Unlock()
		n += len(found)
	})
	b.check(n == 1, "copies of a forcing found the claim %d times", n)
	w.renew(holding)
	v.renew(waiting)
	return b.result()
}

func renewBesideLeave(b *bench) error {
	c := b.client()
	for _, k := range b.keys(20) {
		x := c.claim(k)
		x.try(holding)
		b.atOnce(4, func(i int) {
			if i == 0 {
				x.c.d.Leave(b.ctx, driver.Leaving{Ref: x.Ref}) //nolint:errcheck // what it did is seen below
				return
			}
			a := x.c.renew(b.ctx, []driver.Renewal{extension(x)})[0]
			b.check(a.State == holding || a.State == gone, "a renewal beside a release is %v, %v", a.State, a.err)
		})
		b.free(k)
		x.renew(gone)
	}
	return b.result()
}

func joinBesideLeave(b *bench) error {
	c := b.client()
	for _, k := range b.keys(20) {
		x := c.claim(k)
		j := joinAs(b)
		j.Claim = x.Claim
		b.atOnce(4, func(i int) {
			if i == 0 {
				x.c.d.Leave(b.ctx, driver.Leaving{Ref: x.Ref, Unanswered: true, Remember: b.ticks(60)}) //nolint:errcheck // as above
				return
			}
			x.c.d.Join(b.ctx, j) //nolint:errcheck // as above
		})
		b.free(k)
		x.try(gone)
	}
	return b.result()
}

func lateCopies(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	w.join(waiting)
	h.giveUp(60, left)
	w.renew(holding)
	h.join(gone)
	h.try(gone)
	h.renew(gone)
	h.fix(2, gone)
	h.drop(gone)
	h.leave(gone)
	w.renew(holding)
	l := b.line(h.Keys[0])
	b.check(slices.IndexFunc(l.Holders, func(e driver.Entry) bool { return e.Fixed }) < 0, "a late copy fixed the next holder")
	b.heldBy(h.Keys[0], w)
	return b.result()
}
