package drivertest

import (
	"context"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// signals: what Listen delivers. Signals are hints, but in a calm store each comes.
func signals() []Case {
	return []Case{
		{Name: "listening begins with Missed", needs: signaler, run: missedFirst},
		{Name: "listening ends with its context", needs: signaler, run: listenEnds},
		{Name: "a release signals the claim it grants, and nobody else", needs: signaler | line, run: grantIsSignalled},
		{Name: "the grant after a death is signalled by whoever removes the dead", needs: signaler | line, run: grantAfterDeath},
		{Name: "a grant names the stay it is for", needs: signaler | line, run: grantNamesStay},
		{Name: "each of many waiters hears of its own grant", needs: signaler | line, run: everyoneHears},
		{Name: "all claims granted in one step hear of it", needs: signaler | line | shared, run: crowdHears},
		{Name: "a claim of several keys hears its turn, never a grant by others", needs: signaler | line | together, run: turnIsSignalled},
		{Name: "a revoked holder hears that it ended and is still in line", needs: signaler | operator, run: revokedHears},
		{Name: "a forced holder hears that it ended", needs: signaler | operator | line, run: forcedHears},
		{Name: "a client without signals finds its grant by renewing", needs: line, run: deafClient},
		{Name: "hand-overs are signalled in good time", needs: signaler | line, run: signalsAreQuick},
		{Name: "after a gap Missed comes again", needs: signaler | cutHook, run: missedAfterGap},
	}
}

func missedFirst(b *bench) error {
	h, w := b.pair(b.key())
	w.c.listens()
	b.check(len(w.c.ear.all()) > 0 && w.c.ear.all()[0].Kind == driver.Missed, "the first signal is not Missed: %+v", w.c.ear.all())
	h.try(holding)
	b.client().listens()
	return b.result()
}

func listenEnds(b *bench) error {
	c := b.client()
	ctx, stop := context.WithCancel(b.ctx)
	ended, hears := make(chan error, 1), make(chan struct{}, 64)
	go func() {
		ended <- c.d.(driver.Signaler).Listen(ctx, c.inbox, func(driver.Signal) { hears <- struct{}{} })
	}()
	select {
	case <-hears:
	case <-time.After(patience):
		b.fail("Listen delivers no Missed at first")
	}
	stop()
	begin := time.Now()
	select {
	case err := <-ended:
		b.took(time.Since(begin))
		b.check(err != nil, "Listen ended without an error")
	case <-time.After(patience):
		b.fail("Listen goes on after its context has ended")
	}
	return b.result()
}

func grantIsSignalled(b *bench) error {
	k := b.key()
	xs := b.crowd(4, k)
	for _, x := range xs {
		x.c.listens()
	}
	xs[0].join(holding)
	for _, x := range xs[1:] {
		x.join(waiting)
	}
	xs[0].leave(left)
	xs[1].hears(driver.Granted)
	b.sleep(1)
	xs[2].deafTo(driver.Granted)
	xs[3].deafTo(driver.Granted)
	for _, x := range xs {
		n := x.c.ear.count(func(s driver.Signal) bool { return s.ID != driver.ID{} && s.ID != x.ID })
		b.check(n == 0, "%s heard what is addressed to others: %+v", x, x.c.ear.all())
	}
	xs[1].renew(holding)
	return b.result()
}

func grantAfterDeath(b *bench) error {
	k := b.key()
	xs := b.crowd(3, k)
	xs[1].c.listens()
	xs[0].lives(2, 2).join(holding)
	xs[1].join(waiting)
	xs[2].join(waiting)
	b.sleep(3)
	xs[2].renew(waiting) // removes the dead, grants to the one before
	xs[1].hears(driver.Granted)
	xs[1].renew(holding)
	return b.result()
}

// The id stood in line before; its grant must carry the number of the new stay.
func grantNamesStay(b *bench) error {
	h, w := b.pair(b.key())
	w.c.listens()
	h.join(holding)
	w.lives(20, 2).join(waiting)
	first := *w
	b.sleep(3)
	w.lives(20, 20).join(waiting)
	b.check(w.Number > first.Number, "the new stay is %d, the first was %d", w.Number, first.Number)
	h.leave(left)
	w.hears(driver.Granted)
	n := w.c.ear.count(first.addressed(driver.Granted))
	b.check(n == 0, "the stay that expired was granted: %+v", w.c.ear.all())
	for _, s := range w.c.ear.all() {
		b.check(s.Kind != driver.Granted || s.Key == h.Keys[0], "granted is key %q, want %q", s.Key, h.Keys[0])
	}
	return b.result()
}

func everyoneHears(b *bench) error {
	h, w := b.client(), b.client().listens()
	var hs, ws []*claim
	for _, k := range b.keys(30) {
		x, y := h.claim(k), w.claim(k)
		x.join(holding)
		y.join(waiting)
		hs, ws = append(hs, x), append(ws, y)
	}
	for i := len(hs) - 1; i >= 0; i -= 2 {
		hs[i].leave(left)
	}
	for i := len(hs) - 1; i >= 0; i -= 2 {
		ws[i].hears(driver.Granted)
		ws[i-1].deafTo(driver.Granted)
	}
	return b.result()
}

func crowdHears(b *bench) error {
	k := b.key()
	h := b.client().claim(k).writes()
	h.join(holding)
	rs := b.crowd(5, k)
	for _, r := range rs {
		r.c.listens()
		r.reads().join(waiting)
	}
	h.leave(left)
	for _, r := range rs {
		r.hears(driver.Granted)
	}
	return b.result()
}

func turnIsSignalled(b *bench) error {
	ks := b.keys(2)
	h, g, x := b.client().claim(ks[0]), b.client().claim(ks[1]), b.client().listens().claim(ks...)
	h.join(holding)
	g.join(holding)
	x.join(waiting)
	g.leave(left)
	h.leave(left)
	x.hears(driver.Turn)
	x.deafTo(driver.Granted)
	x.renew(holding)
	return b.result()
}

func revokedHears(b *bench) error {
	x := b.client().listens().claim(b.key())
	x.try(holding)
	b.first.end(x.Keys[0], false, x)
	x.hears(driver.Ended)
	n := x.c.ear.count(func(s driver.Signal) bool { return s.Kind == driver.Ended && !s.Revoked })
	b.check(n == 0, "the revoked claim is still in line, but heard Ended without Revoked")
	return b.result()
}

func forcedHears(b *bench) error {
	h, w, v := b.trio(b.key())
	for _, x := range []*claim{h, w, v} {
		x.c.listens()
	}
	h.join(holding)
	w.join(waiting)
	v.join(waiting)
	b.first.end(h.Keys[0], false, w) // a waiting claim is removed in either case
	w.hears(driver.Ended)
	b.first.end(h.Keys[0], true, h)
	h.hears(driver.Ended)
	v.hears(driver.Granted)
	v.deafTo(driver.Ended)
	for _, x := range []*claim{h, w} {
		n := x.c.ear.count(func(s driver.Signal) bool { return s.Kind == driver.Ended && s.Revoked })
		b.check(n == 0, "%s is not in line any more, but heard Ended with Revoked", x)
	}
	return b.result()
}

func deafClient(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	w.join(waiting)
	h.leave(left)
	w.renew(holding)
	return b.result()
}

// Half of the signals of 20 hand-overs must come well before anybody would look
// again by itself.
func signalsAreQuick(b *bench) error {
	h, w := b.client(), b.client().listens()
	quick := 0
	const rounds = 20
	for _, k := range b.keys(rounds) {
		x, y := h.claim(k), w.claim(k)
		x.join(holding)
		y.join(waiting)
		begin := time.Now()
		x.leave(left)
		y.hears(driver.Granted)
		if time.Since(begin) < time.Second/2 {
			quick++
		}
	}
	b.check(quick > rounds/2, "only %d of %d grants were heard within half a second", quick, rounds)
	return b.result()
}

func missedAfterGap(b *bench) error {
	c := b.client().listens()
	missed := func(s driver.Signal) bool { return s.Kind == driver.Missed }
	before := c.ear.count(missed)
	if err := b.store.Cut(); err != nil {
		return err
	}
	end := time.Now().Add(patience)
	for c.ear.count(missed) == before && time.Now().Before(end) {
		time.Sleep(b.tick / 10)
	}
	b.check(c.ear.count(missed) > before, "the push connection was cut, but no Missed came")
	if !c.d.Features().Line {
		k := b.key()
		defer c.watch(k)()
		kind, stir := b.stir(b.client())
		c.provokes(kind, k, func() { stir(k) })
		return b.result()
	}
	h, w := b.client().claim(b.key()), c.claim("")
	w.Keys = h.Keys
	h.join(holding)
	w.join(waiting)
	h.leave(left)
	w.hears(driver.Granted)
	return b.result()
}
