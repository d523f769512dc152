package drivertest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// concurrency: many clients at once, watched by a witness that knows who holds.
func concurrency() []Case {
	return []Case{
		{Name: "of many joins of a new key at once one holds", strict: true, needs: line, run: oneOfMany},
		{Name: "of many tries of a new key at once one holds", strict: true, run: oneTryOfMany},
		{Name: "no two hold a mutex, and numbers rise", strict: true, needs: line, run: hammerMutex},
		{Name: "no two hold a mutex by trying", strict: true, run: hammerTries},
		{Name: "no more permits are out than there are", strict: true, needs: line | shared, run: hammerPermits},
		{Name: "no writer holds beside anybody", strict: true, needs: line | shared, run: hammerReaders},
		{Name: "claims of several keys exclude each other on every key", strict: true, needs: line | together, run: hammerSeveral},
		{Name: "no trust overlaps another's though lives are short", strict: true, needs: line, run: hammerShortLives},
		{Name: "a renewal and a join around the expiry never both hold", strict: true, run: renewalAgainstJoin},
		{Name: "a counter that is read and written back loses nothing", strict: true, run: counterLosesNothing},
	}
}

// witness is told who begins and ends to hold, and knows what may be.
type witness struct {
	b    *bench
	mu   sync.Mutex
	held map[string][]*claim
	last map[string]int64
}

func newWitness(b *bench) *witness {
	return &witness{b: b, held: map[string][]*claim{}, last: map[string]int64{}}
}

// enters is told when an answer said that x holds.
func (w *witness) enters(x *claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range x.Keys {
		sum, least := x.Weight, x.Capacity
		for _, y := range w.held[k] {
			sum, least = sum+y.Weight, min(least, y.Capacity)
		}
		w.b.check(sum <= least, "%s holds %q beside %v: %d of %d", x, k, w.held[k], sum, least)
		if x.Weight == x.Capacity { // it excludes all, so it follows all
			w.b.check(x.Number > w.last[k], "number %d holds %q after number %d did", x.Number, k, w.last[k])
		}
		w.last[k] = max(w.last[k], x.Number)
		w.held[k] = append(w.held[k], x)
	}
}

// leaves is told before the release of x is sent.
func (w *witness) leaves(x *claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range x.Keys {
		if i := slices.Index(w.held[k], x); i >= 0 {
			w.held[k] = slices.Delete(w.held[k], i, i+1)
		}
	}
}

// turn is one time in line: join, look until it holds, hold for a moment, leave.
func (w *witness) turn(x *claim) {
	b := x.b
	s, err := x.c.d.Join(b.ctx, driver.Join{Claim: x.Claim})
	for end := time.Now().Add(30 * time.Second); err == nil && s.State == waiting && !b.failed(); {
		if time.Now().After(end) {
			b.fail("%s still waits after 30 s: %s", x, told(s, nil))
			return
		}
		time.Sleep(min(s.LookAgain, time.Millisecond))
		x.Number = s.Number
		a := x.c.renew(b.ctx, []driver.Renewal{extension(x)})[0]
		s, err = a.Standing, a.err
	}
	if b.failed() {
		return
	}
	if err != nil || s.State != holding {
		b.fail("%s is %s, want holding", x, told(s, err))
		return
	}
	x.Number = s.Number
	w.enters(x)
	pause()
	w.leaves(x)
	x.leave(left)
}

// pause is a moment in which others may go wrong.
func pause() {
	if rand.IntN(3) == 0 {
		time.Sleep(time.Duration(rand.Int64N(int64(300 * time.Microsecond))))
	}
}

// hammer lets n clients take turns with the claims that next makes.
func (b *bench) hammer(n, rounds int, next func(c *client) *claim) error {
	w := newWitness(b)
	cs := make([]*client, n)
	for i := range cs {
		cs[i] = b.client()
	}
	b.atOnce(n, func(i int) {
		for range rounds {
			if b.failed() {
				return
			}
			w.turn(next(cs[i]))
		}
	})
	return b.result()
}

func oneOfMany(b *bench) error {
	for _, k := range b.keys(5) {
		b.onlyOne(b.crowd(12, k), driver.Join{})
		l := b.line(k)
		b.check(len(l.Holders) == 1 && l.Waiting == 11, "of 12 joins %d hold and %d wait", len(l.Holders), l.Waiting)
	}
	return b.result()
}

func oneTryOfMany(b *bench) error {
	for _, k := range b.keys(5) {
		b.onlyOne(b.crowd(12, k), driver.Join{Try: true})
		l := b.line(k)
		b.check(len(l.Holders) == 1 && l.Waiting == 0, "of 12 tries %d hold and %d wait", len(l.Holders), l.Waiting)
	}
	return b.result()
}

func (b *bench) onlyOne(xs []*claim, j driver.Join) {
	var mu sync.Mutex
	hold := 0
	b.atOnce(len(xs), func(i int) {
		mine := j
		mine.Claim = xs[i].Claim
		s, err := xs[i].c.d.Join(b.ctx, mine)
		mu.Lock()
		defer mu.Unlock()
		b.check(err == nil, "a join among many: %v", err)
		if s.State == holding {
			hold++
		}
	})
	b.check(hold == 1, "%d of %d hold", hold, len(xs))
}

func hammerMutex(b *bench) error {
	ks := b.keys(2)
	return b.hammer(6, 12, func(c *client) *claim { return c.claim(ks[rand.IntN(2)]) })
}

func hammerTries(b *bench) error {
	k, w := b.key(), newWitness(b)
	b.atOnce(6, func(int) {
		c := b.client()
		for range 60 {
			if b.failed() {
				return
			}
			x := c.claim(k)
			s, err := c.d.Join(b.ctx, driver.Join{Claim: x.Claim, Try: true})
			b.check(err == nil, "a try among many: %v", err)
			if s.State != holding {
				pause()
				continue
			}
			x.Number = s.Number
			w.enters(x)
			pause()
			w.leaves(x)
			x.leave(left)
		}
	})
	b.free(k)
	return b.result()
}

func hammerPermits(b *bench) error {
	k := b.key()
	return b.hammer(6, 10, func(c *client) *claim {
		n := 3 + rand.Int64N(2) // clients that disagree
		return c.claim(k).weighs(1+rand.Int64N(3), n)
	})
}

func hammerReaders(b *bench) error {
	k := b.key()
	return b.hammer(6, 10, func(c *client) *claim {
		if rand.IntN(3) == 0 {
			return c.claim(k).writes()
		}
		return c.claim(k).reads()
	})
}

func hammerSeveral(b *bench) error {
	ks := b.keys(3)
	return b.hammer(5, 10, func(c *client) *claim {
		mine := slices.Clone(ks)
		if drop := rand.IntN(4); drop < 3 {
			mine = slices.Delete(mine, drop, drop+1)
		}
		return c.claim(mine...)
	})
}

// hammerShortLives lets holders sleep through their lives. What counts is the time in
// which each may trust: from the answer until its release or, if that is earlier,
// until the send of the call plus the life that was answered.
func hammerShortLives(b *bench) error {
	k, t := b.key(), &trusts{b: b}
	b.atOnce(4, func(int) {
		c := b.client()
		for range 6 {
			x := c.claim(k).lives(2, 2)
			send := time.Now()
			s, err := c.d.Join(b.ctx, driver.Join{Claim: x.Claim})
			for err == nil && s.State == waiting && !b.failed() {
				time.Sleep(b.tick / 20)
				send = time.Now()
				a := c.renew(b.ctx, []driver.Renewal{extension(x)})[0]
				s, err = a.Standing, a.err
			}
			b.check(err == nil, "a join among many: %v", err)
			if s.State != holding {
				continue // it was starved of its processor and died
			}
			t.add(trust{s.Number, time.Now(), send.Add(s.Life)}, time.Duration(rand.Int64N(int64(3*b.tick))))
			if _, err := c.d.Leave(b.ctx, driver.Leaving{Ref: x.Ref}); err != nil {
				b.fail("Leave: %w", err)
			}
		}
	})
	t.judge()
	return b.result()
}

// trust is a time in which a client may take itself for the holder.
type trust struct {
	number      int64
	from, until time.Time
}

type trusts struct {
	b   *bench
	mu  sync.Mutex
	all []trust
}

// add works for a while under a trust and records it, cut off by the end of the work.
func (t *trusts) add(one trust, work time.Duration) {
	time.Sleep(work)
	if now := time.Now(); now.Before(one.until) {
		one.until = now
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, one)
}

func (t *trusts) judge() {
	slices.SortFunc(t.all, func(x, y trust) int { return x.from.Compare(y.from) })
	for i := 1; i < len(t.all); i++ {
		p, q := t.all[i-1], t.all[i]
		if !p.from.Before(p.until) || !q.from.Before(q.until) {
			continue // the answer came after the end of the trust
		}
		t.b.check(!q.from.Before(p.until), "#%d trusted itself for %v more when #%d began to", p.number, p.until.Sub(q.from), q.number)
		t.b.check(q.number > p.number, "#%d held after #%d did", q.number, p.number)
	}
}

// renewalAgainstJoin sends both at the moment of the expiry. A renewal that began before
// it and ended after it, beside a join that took the claim for dead, made two holders.
func renewalAgainstJoin(b *bench) error {
	const n = 24
	xs, ys := make([]*claim, n), make([]*claim, n)
	c, o := b.client(), b.client()
	for i, k := range b.keys(n) {
		xs[i], ys[i] = c.claim(k).lives(2, 2), o.claim(k)
	}
	b.atOnce(n, func(i int) {
		x, y := xs[i], ys[i]
		x.try(holding)
		at := time.Now().Add(x.Life.Hold - 3*time.Millisecond)
		var kept, taken driver.Standing
		b.atOnce(2, func(who int) {
			time.Sleep(time.Until(at.Add(time.Duration(rand.Int64N(int64(6 * time.Millisecond))))))
			if who == 0 {
				a := c.renew(b.ctx, []driver.Renewal{extension(x)})[0]
				b.check(a.err == nil, "a renewal at the expiry: %v", a.err)
				kept = a.Standing
				return
			}
			s, err := o.d.Join(b.ctx, driver.Join{Claim: y.Claim, Try: true})
			b.check(err == nil, "a try at the expiry: %v", err)
			taken = s
		})
		b.check(kept.State != holding || taken.State != holding, "both hold: renewed %+v, joined %+v", kept, taken)
	})
	return b.result()
}

// counterLosesNothing keeps a number outside the store. Nothing but the lock guards
// it, which the race detector sees too where it is told of the lock by its mutex.
func counterLosesNothing(b *bench) error {
	k, counter := b.key(), struct {
		sync.Mutex
		n int
	}{}
	const clients, rounds = 5, 8
	read := func() int {
		counter.Lock()
		defer counter.Unlock()
		return counter.n
	}
	write := func(n int) {
		counter.Lock()
		defer counter.Unlock()
		counter.n = n
	}
	b.atOnce(clients, func(int) {
		c := b.client()
		for range rounds {
			x := c.claim(k)
			for tries := 0; !x.tryOnce(); tries++ {
				if b.failed() || tries > 20000 {
					b.fail("%s tried 20000 times", x)
					return
				}
				time.Sleep(time.Millisecond)
			}
			n := read()
			pause()
			write(n + 1)
			x.leave(left)
		}
	})
	b.check(counter.n == clients*rounds, "the counter says %d, want %d", counter.n, clients*rounds)
	return b.result()
}

// tryOnce says whether a try holds.
func (x *claim) tryOnce() bool {
	s, err := x.c.d.Join(x.b.ctx, driver.Join{Claim: x.Claim, Try: true})
	if err != nil {
		x.b.fail("a try among many: %w", err)
	}
	x.Number = s.Number
	return err == nil && s.State == holding
}
