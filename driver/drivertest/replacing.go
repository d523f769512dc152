package drivertest

import "github.com/hasp-dev/hasp/driver"

// replacing: a Join that first takes out another claim of the same client, in the
// same step. A process that has handed a lock on locally for long enough does so.
func replacing() []Case {
	return []Case{
		{Name: "leaving and joining in one step lets the next in and stands behind", needs: line, run: replaceStandsBehind},
		{Name: "leaving and joining in one step where nobody waits holds under a larger number", run: replaceAlone},
		{Name: "leaving and joining in one step may be repeated", needs: line, run: replaceTwice},
		{Name: "a try that leaves first does not find itself in the way", run: replaceTry},
		{Name: "leaving and joining in one step remembers the id that left", run: replaceRemembers},
		{Name: "joining goes on where the claim to leave is gone", run: replaceOfGone},
		{Name: "leaving and joining in one step goes for several keys", needs: line | together, run: replaceSeveral},
	}
}

func replaceStandsBehind(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	w.join(waiting)
	x := h.twin()
	s := x.replace(h, waiting)
	b.check(s.Number > w.Number && s.Ahead == 1 && s.Holder == w.Name, "behind #%d of %q, but answered %+v", w.Number, w.Name, s)
	b.heldBy(h.Keys[0], w)
	b.waitedBy(h.Keys[0], x)
	h.renew(gone)
	w.leave(left)
	x.renew(holding)
	return b.result()
}

func replaceAlone(b *bench) error {
	h := b.client().claim(b.key())
	h.try(holding)
	x := h.twin()
	x.enter(driver.Join{Try: true, Leaving: &driver.Leaving{Ref: h.Ref}}, holding)
	b.check(x.Number > h.Number, "number %d follows %d", x.Number, h.Number)
	h.renew(gone)
	b.heldBy(h.Keys[0], x)
	return b.result()
}

func replaceTwice(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	w.join(waiting)
	x := h.twin()
	x.replace(h, waiting)
	n := x.Number
	b.check(x.replace(h, waiting).Number == n, "the repeated step made another stay")
	b.heldBy(h.Keys[0], w)
	b.waitedBy(h.Keys[0], x)
	w.leave(left)
	x.replace(h, holding)
	return b.result()
}

func replaceTry(b *bench) error {
	h, o := b.pair(b.key())
	h.try(holding)
	x := h.twin()
	try := driver.Join{Try: true, Leaving: &driver.Leaving{Ref: h.Ref}}
	x.enter(try, holding)
	x.enter(try, holding)
	o.try(refused)
	x.leave(left)
	b.free(h.Keys...)
	return b.result()
}

func replaceRemembers(b *bench) error {
	h := b.client().claim(b.key())
	h.try(holding)
	x := h.twin()
	l := driver.Leaving{Ref: h.Ref, Unanswered: true, Remember: b.ticks(40)}
	x.enter(driver.Join{Try: true, Leaving: &l}, holding)
	x.leave(left)
	h.try(gone)
	b.free(h.Keys...)
	return b.result()
}

func replaceOfGone(b *bench) error {
	h, o := b.pair(b.key())
	h.try(holding)
	h.leave(left)
	x := h.twin()
	try := driver.Join{Try: true, Leaving: &driver.Leaving{Ref: h.Ref}}
	x.enter(try, holding)
	x.leave(left)
	o.try(holding)
	h.twin().enter(try, refused)
	o.renew(holding)
	return b.result()
}

func replaceSeveral(b *bench) error {
	ks := b.keys(2)
	h := b.client().claim(ks...)
	h.join(holding)
	w, v := b.client().claim(ks[0]), b.client().claim(ks[1])
	w.join(waiting)
	v.join(waiting)
	x := h.twin()
	x.replace(h, waiting)
	b.heldBy(ks[0], w)
	b.heldBy(ks[1], v)
	w.leave(left)
	x.renew(waiting)
	v.leave(left)
	x.renew(holding)
	return b.result()
}
