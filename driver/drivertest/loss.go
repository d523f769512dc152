package drivertest

// loss: a store that forgot everything.
func loss() []Case {
	return []Case{
		{Name: "after a loss every claim is gone, and tokens still rise", needs: wipeHook | tokens, run: tokensAfterLoss},
		{Name: "after a loss no call brings a claim back but a new join", needs: wipeHook | line, run: nothingComesBack},
	}
}

func (b *bench) wipe() {
	if b.failed() {
		return
	}
	b.note("the store forgets everything")
	if err := b.store.Wipe(); err != nil {
		b.fail("Store.Wipe: %w", err)
	}
}

func tokensAfterLoss(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	b.sleep(1)
	b.wipe()
	y.try(holding)
	b.check(y.Number > x.Number, "number %d follows %d, which was lost", y.Number, x.Number)
	x.renew(gone)
	y.renew(holding)
	return b.result()
}

func nothingComesBack(b *bench) error {
	h, w, o := b.trio(b.key())
	h.join(holding)
	w.join(waiting)
	b.sleep(1)
	b.wipe()
	h.renew(gone)
	w.renew(gone)
	h.fix(5, gone)
	h.leave(gone)
	o.resume(h, gone)
	b.free(h.Keys...)
	before := w.Number
	w.join(holding)
	b.check(w.Number > before, "number %d follows %d, which was lost", w.Number, before)
	return b.result()
}
