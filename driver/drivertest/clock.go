package drivertest

// clock: a store's clock that steps.
func clock() []Case {
	return []Case{
		{Name: "a removed claim stays dead when the clock steps back", needs: stepHook | line, run: deadThoughClockBack},
		{Name: "numbers rise though the clock steps back", needs: stepHook | tokens, run: numbersThoughClockBack},
		{Name: "a clock that steps forward frees early, under a larger number", needs: stepHook | tokens, run: clockForward},
	}
}

func (b *bench) stepClock(ticks int) {
	if b.failed() {
		return
	}
	b.note("the clock steps by %d ticks", ticks)
	if err := b.store.Step(b.ticks(ticks)); err != nil {
		b.fail("Store.Step: %w", err)
	}
}

func deadThoughClockBack(b *bench) error {
	h, x, y := b.trio(b.key())
	h.lives(2, 2).join(holding)
	x.lives(2, 2).join(waiting)
	b.sleep(3)
	y.join(holding)
	b.stepClock(-4)
	h.renew(gone)
	x.renew(gone)
	b.heldBy(h.Keys[0], y)
	b.waitedBy(h.Keys[0])
	y.renew(holding)
	return b.result()
}

func numbersThoughClockBack(b *bench) error {
	c, k := b.client(), b.key()
	x := c.claim(k)
	x.try(holding)
	x.leave(left)
	b.stepClock(-20)
	y := c.claim(k)
	y.try(holding)
	b.check(y.Number > x.Number, "number %d follows %d", y.Number, x.Number)
	return b.result()
}

func clockForward(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(20, 20).try(holding)
	b.stepClock(40)
	y.try(holding)
	x.renew(gone)
	b.check(y.Number > x.Number, "number %d follows %d", y.Number, x.Number)
	return b.result()
}
