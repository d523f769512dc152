package drivertest

import (
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// watching: the unaddressed signals. One may get lost, so each is given some tries.
func watching() []Case {
	return []Case{
		{Name: "a watched key tells that somebody began to wait", needs: signaler | line, run: wantedIsSignalled},
		{Name: "whoever holds and watches is told that somebody from outside waits, and sees it in every answer", needs: signaler | line, run: holderIsWanted},
		{Name: "a watched key tells that its holders changed", needs: signaler | line, run: changeIsSignalled},
		{Name: "a key without a line tells that it may be free", needs: signaler, run: freedIsSignalled},
		{Name: "a key watched no more is silent", needs: signaler, run: stoppedWatch},
		{Name: "one of two watches on a key may stop", needs: signaler, run: twoWatches},
	}
}

// provokes repeats do until c hears the kind for the key, some times.
func (c *client) provokes(kind driver.SignalKind, key string, do func()) {
	for range 4 {
		if c.b.failed() {
			return
		}
		do()
		if c.ear.await(func(s driver.Signal) bool { return s.Kind == kind && s.Key == key }, time.Second) {
			return
		}
	}
	c.b.fail("%s hears no %v of the watched %q, but %+v", c.name, kind, key, c.ear.all())
}

// watch watches a key.
func (c *client) watch(key string) (stop func()) {
	if c.b.failed() {
		return func() {}
	}
	return c.d.(driver.Signaler).Watch(key)
}

func wantedIsSignalled(b *bench) error {
	k := b.key()
	c, h, other := b.client().listens(), b.client().claim(k), b.client()
	defer c.watch(k)()
	h.join(holding)
	c.provokes(driver.Wanted, k, func() {
		w := other.claim(k)
		w.join(waiting)
		w.leave(left)
	})
	return b.result()
}

// What keeps a lock while nobody wants it rests on this: the signal, or, where it is lost,
// the next answer.
func holderIsWanted(b *bench) error {
	k := b.key()
	h, other := b.client().listens().claim(k), b.client()
	h.join(holding)
	b.check(!h.renew(holding).Behind, "nobody waits, but Behind is set")
	h.c.provokes(driver.Wanted, k, func() {
		defer h.c.watch(k)()
		w := other.claim(k)
		w.join(waiting) // at once: a store that looks may not have looked yet
		b.check(h.renew(holding).Behind, "somebody waits, but a renewal does not say Behind")
		b.check(h.join(holding).Behind, "somebody waits, but a repeated join does not say Behind")
		h.c.ear.await(func(s driver.Signal) bool { return s.Kind == driver.Wanted && s.Key == k }, time.Second)
		w.leave(left)
		b.check(!h.renew(holding).Behind, "nobody waits any more, but Behind is set")
	})
	return b.result()
}

func changeIsSignalled(b *bench) error {
	k := b.key()
	c, other := b.client().listens(), b.client()
	defer c.watch(k)()
	c.provokes(driver.Changed, k, func() {
		h, w := other.claim(k), other.claim(k)
		h.join(holding)
		w.join(waiting)
		h.leave(left)
		w.leave(left)
	})
	return b.result()
}

// Where there is a line, Changed says the same.
func freedIsSignalled(b *bench) error {
	k := b.key()
	c, other := b.client().listens(), b.client()
	defer c.watch(k)()
	kind := driver.Freed
	if c.d.Features().Line {
		kind = driver.Changed
	}
	c.provokes(kind, k, func() {
		h := other.claim(k)
		h.try(holding)
		h.leave(left)
	})
	return b.result()
}

// stir has somebody do on a key what a watch tells of, and answers as what: that it is
// wanted or, where nobody can wait, free.
func (b *bench) stir(other *client) (driver.SignalKind, func(key string)) {
	if !other.d.Features().Line {
		return driver.Freed, func(key string) {
			h := other.claim(key)
			h.try(holding)
			h.leave(left)
		}
	}
	return driver.Wanted, func(key string) {
		h, w := other.claim(key), other.claim(key)
		h.join(holding)
		w.join(waiting)
		h.leave(left)
		w.leave(left)
	}
}

func stoppedWatch(b *bench) error {
	k, watched := b.key(), b.key()
	c := b.client().listens()
	stop := c.watch(k)
	defer c.watch(watched)()
	stop()
	b.sleep(1)
	before := c.ear.count(func(s driver.Signal) bool { return s.Key == k })
	// When the signal of the one has come, that of the other would have come too.
	kind, stir := b.stir(b.client())
	c.provokes(kind, watched, func() {
		stir(k)
		stir(watched)
	})
	after := c.ear.count(func(s driver.Signal) bool { return s.Key == k })
	b.check(after == before, "%d signals of a key that is watched no more", after-before)
	stop() // once more does no harm
	return b.result()
}

func twoWatches(b *bench) error {
	k := b.key()
	c := b.client().listens()
	defer c.watch(k)()
	c.watch(k)()
	kind, stir := b.stir(b.client())
	c.provokes(kind, k, func() { stir(k) })
	return b.result()
}
