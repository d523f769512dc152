package drivertest

import (
	"sync/atomic"

	"github.com/hasp-dev/hasp/driver"
)

// takeover: Join with Resume, by which a ticket is redeemed.
func takeover() []Case {
	return []Case{
		{Name: "a take-over keeps the number and the place and ends the old id", run: resumeTakesPlace},
		{Name: "a take-over repeated with the same new id answers the same", run: resumeTwice},
		{Name: "a second taker is gone and enters nothing", run: secondTakerIsGone},
		{Name: "of many takers at once one wins", strict: true, run: oneTakerWins},
		{Name: "a take-over sets the expiry anew and ends the fixing", run: resumeUnfixes},
		{Name: "a take-over of the dead, the released and the unknown is gone", run: resumeOfNothing},
		{Name: "a take-over that names another stay is gone", run: resumeOfOtherStay},
		{Name: "a waiting claim cannot be taken over", needs: line, run: resumeOfWaiter},
		{Name: "the old id cannot renew, join itself back or release after a take-over", run: oldOwnerIsGone},
		{Name: "a late join of the old id does not let a second taker in", needs: line, run: lateJoinBeforeSecondTaker},
		{Name: "a take-over keeps the weight and all keys", needs: line | shared, run: resumeKeepsWeight},
		{Name: "a take-over goes for all keys of a claim", needs: together, run: resumeSeveral},
		{Name: "those who wait go on waiting behind a take-over", needs: line, run: resumeBeforeWaiters},
		{Name: "a take-over is listed with its name and index", run: resumeIsListed},
		{Name: "a revoked claim cannot be taken over", needs: operator, run: resumeOfRevoked},
		{Name: "a claim taken over can be taken over again", run: resumeChain},
	}
}

func resumeTakesPlace(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	x.fix(100, holding)
	y.resume(x, holding)
	b.check(y.Number == x.Number, "the taker has number %d, the place had %d", y.Number, x.Number)
	b.heldBy(x.Keys[0], y)
	x.renew(gone)
	y.renew(holding)
	y.leave(left)
	b.free(x.Keys...)
	return b.result()
}

func resumeTwice(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	for range 3 {
		y.resume(x, holding)
		b.check(y.Number == x.Number, "the taker has number %d, the place had %d", y.Number, x.Number)
	}
	y.renew(holding)
	y.resume(x, holding)
	y.fix(60, holding)
	y.resume(x, holding)
	y.leave(left)
	y.resume(x, gone)
	b.free(x.Keys...)
	return b.result()
}

func secondTakerIsGone(b *bench) error {
	x, y, z := b.trio(b.key())
	x.try(holding)
	y.resume(x, holding)
	z.resume(x, gone)
	z.renew(gone)
	b.heldBy(x.Keys[0], y)
	b.waitedBy(x.Keys[0])
	y.leave(left)
	z.resume(x, gone)
	b.free(x.Keys...)
	return b.result()
}

func oneTakerWins(b *bench) error {
	k := b.key()
	x := b.client().claim(k)
	x.try(holding)
	ref := x.Ref
	takers := b.crowd(8, k)
	var won atomic.Int32
	b.atOnce(len(takers), func(i int) {
		s, err := takers[i].c.d.Join(b.ctx, driver.Join{Claim: takers[i].Claim, Resume: &ref, Try: !b.first.d.Features().Line})
		switch {
		case err != nil:
			b.fail("Join with Resume: %w", err)
		case s.State == holding:
			won.Add(1)
		default:
			b.check(s.State == gone, "a taker is %v, want holding or gone", s.State)
		}
	})
	b.check(won.Load() == 1, "%d of %d takers hold", won.Load(), len(takers))
	l := b.line(k)
	b.check(len(l.Holders) == 1 && l.Waiting == 0, "one should hold, listed is %+v", l)
	return b.result()
}

func resumeUnfixes(b *bench) error {
	x, y, z := b.trio(b.key())
	x.try(holding)
	x.fix(3, holding)
	y.lives(6, 6)
	s := y.resume(x, holding)
	b.check(s.Life >= b.ticks(6)-b.slack, "a take-over answers a life of %v, want %v", s.Life, b.ticks(6))
	for _, e := range b.line(x.Keys[0]).Holders {
		b.check(!e.Fixed, "still fixed after a take-over")
	}
	b.sleep(4)
	z.try(refused)
	s = y.renew(holding)
	b.check(s.Life >= b.ticks(6)-b.slack, "a renewal after a take-over answers %v, want %v", s.Life, b.ticks(6))
	b.sleep(4)
	z.try(refused)
	b.sleep(3)
	z.try(holding)
	return b.result()
}

func resumeOfNothing(b *bench) error {
	ks := b.keys(3)
	dead, released, unknown := b.client().claim(ks[0]).lives(2, 2), b.client().claim(ks[1]), b.client().claim(ks[2])
	dead.try(holding)
	released.try(holding)
	released.leave(left)
	unknown.Number = 4711
	b.sleep(3)
	for i, x := range []*claim{dead, released, unknown} {
		b.client().claim(ks[i]).resume(x, gone)
	}
	b.free(ks...)
	return b.result()
}

func resumeOfOtherStay(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	other := *x
	other.Number++
	y.resume(&other, gone)
	b.heldBy(x.Keys[0], x)
	x.renew(holding)
	y.resume(x, holding)
	return b.result()
}

func resumeOfWaiter(b *bench) error {
	h, w, y := b.trio(b.key())
	h.join(holding)
	w.join(waiting)
	y.resume(w, gone)
	b.heldBy(h.Keys[0], h)
	b.waitedBy(h.Keys[0], w)
	w.renew(waiting)
	return b.result()
}

func oldOwnerIsGone(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	y.resume(x, holding)
	x.renew(gone)
	x.fix(1, gone)
	x.leave(gone)
	x.drop(gone)
	x.try(refused) // a new stay, and the key is held
	b.heldBy(x.Keys[0], y)
	y.renew(holding)
	return b.result()
}

// The old id is put back in line by a late copy of its Join; its ticket, which
// names the earlier stay, opens nothing more.
func lateJoinBeforeSecondTaker(b *bench) error {
	x, y, z := b.trio(b.key())
	x.join(holding)
	ticket := *x
	y.resume(&ticket, holding)
	x.join(waiting)
	z.resume(&ticket, gone)
	y.leave(left)
	b.check(x.renew(holding).Number > ticket.Number, "the old id holds its old stay again")
	z.resume(&ticket, gone)
	b.heldBy(x.Keys[0], x)
	return b.result()
}

func resumeKeepsWeight(b *bench) error {
	x, y, z := b.trio(b.key())
	x.weighs(2, 3).join(holding)
	z.weighs(2, 3).join(waiting)
	y.weighs(2, 3).resume(x, holding)
	z.renew(waiting)
	for _, e := range b.line(x.Keys[0]).Holders {
		b.check(e.Weight == 2 && e.Capacity == 3, "the place weighs %d of %d after a take-over, want 2 of 3", e.Weight, e.Capacity)
	}
	y.leave(left)
	z.renew(holding)
	return b.result()
}

func resumeSeveral(b *bench) error {
	ks := b.keys(3)
	x, y := b.client().claim(ks...), b.client().claim(ks...)
	x.try(holding)
	y.resume(x, holding)
	for _, k := range ks {
		b.heldBy(k, y)
	}
	x.renew(gone)
	y.leave(left)
	b.free(ks...)
	return b.result()
}

func resumeBeforeWaiters(b *bench) error {
	x, y, w := b.trio(b.key())
	x.join(holding)
	w.join(waiting)
	y.resume(x, holding)
	s := w.renew(waiting)
	b.check(s.Ahead == 1 && s.Holder == y.Name, "the taker %q is ahead, but answered %+v", y.Name, s)
	y.leave(left)
	w.renew(holding)
	return b.result()
}

func resumeIsListed(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	y.Index, y.Name = 7, "taker"
	y.resume(x, holding)
	b.heldBy(x.Keys[0], y)
	for _, e := range b.line(x.Keys[0]).Holders {
		b.check(e.Index == 7 && e.Name == "taker", "listed as %q with index %d, want %q and 7", e.Name, e.Index, "taker")
	}
	return b.result()
}

func resumeOfRevoked(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	b.first.end(x.Keys[0], false, x)
	y.resume(x, gone)
	b.heldBy(x.Keys[0], x)
	return b.result()
}

func resumeChain(b *bench) error {
	x, y, z := b.trio(b.key())
	x.try(holding)
	y.resume(x, holding)
	z.resume(y, holding)
	b.check(z.Number == x.Number, "the last taker has number %d, the place had %d", z.Number, x.Number)
	y.resume(x, gone) // its stay has been taken over since
	y.renew(gone)
	z.renew(holding)
	return b.result()
}
