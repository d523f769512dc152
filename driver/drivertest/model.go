package drivertest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// model: random steps, each answered as a simple picture of the lines says.
func model() []Case {
	return []Case{
		{Name: "random steps with mutexes are answered as the model says", needs: line, run: func(b *bench) error { return b.agree(1, false) }},
		{Name: "random steps with weights are answered as the model says", needs: line | shared, run: func(b *bench) error { return b.agree(1, true) }},
		{Name: "random steps with several keys are answered as the model says", needs: line | together, run: func(b *bench) error { return b.agree(3, false) }},
		{Name: "random steps with weights and several keys are answered as the model says", needs: line | shared | together, run: func(b *bench) error { return b.agree(3, true) }},
	}
}

// agree runs some schedules, each with a seed of its own. Where time is virtual they
// are many, and claims die in them.
func (b *bench) agree(keys int, weights bool) error {
	schedules, steps := 2, 40
	if b.exact {
		schedules, steps = 40, 80
	}
	for seed := range schedules {
		p := newPicture(b, uint64(seed), keys, weights)
		for range steps {
			p.step()
		}
		if b.failed() {
			return fmt.Errorf("schedule %d: %w", seed, b.result())
		}
	}
	return b.result()
}

// picture is what the lines of some keys should be. Claims stand in the order of
// their numbers, which is the same in every line.
type picture struct {
	b       *bench
	r       *rand.Rand
	keys    []string
	weights bool
	clients []*client
	line    []*figure // all in line, in order
	out     []*figure // some that have left or died
}

// figure is a claim in the picture.
type figure struct {
	*claim
	holds, fixed, revoked bool
	until                 time.Time
}

func newPicture(b *bench, seed uint64, keys int, weights bool) *picture {
	p := &picture{b: b, r: rand.New(rand.NewPCG(seed, 4711)), keys: b.keys(keys), weights: weights}
	for range 3 {
		p.clients = append(p.clients, b.client())
	}
	return p
}

// step does one random thing and compares.
func (p *picture) step() {
	if p.b.failed() {
		return
	}
	switch n := p.r.IntN(20); {
	case n < 7 && len(p.line) < 12:
		p.join()
	case n < 10:
		p.with(p.renew)
	case n < 13:
		p.with(p.leave)
	case n < 14:
		p.with(p.fix)
	case n < 15:
		p.with(p.resume)
	case n < 16:
		p.with(p.end)
	case n < 17:
		p.late()
	default:
		if p.b.exact {
			p.b.sleep(1)
		}
	}
	k := p.keys[p.r.IntN(len(p.keys))]
	l := p.b.line(k)
	var want, got []int64
	for _, f := range p.alive(k) {
		want = append(want, f.Number)
	}
	for _, e := range append(l.Holders, l.Waiters...) {
		got = append(got, e.Number)
	}
	p.b.check(slices.Equal(want, got), "in the line of %q are %d, want %d", k, got, want)
}

// with does something with a random claim in line.
func (p *picture) with(do func(*figure)) {
	if len(p.line) > 0 {
		do(p.line[p.r.IntN(len(p.line))])
	}
}

// alive are those in the line of a key that have not expired.
func (p *picture) alive(key string) []*figure {
	var fs []*figure
	for _, f := range p.line {
		if slices.Contains(f.Keys, key) && time.Now().Before(f.until) {
			fs = append(fs, f)
		}
	}
	return fs
}

// begin is the first part of each step that touches these keys: the dead go.
func (p *picture) begin() {
	p.line = slices.DeleteFunc(p.line, func(f *figure) bool {
		dead := !time.Now().Before(f.until)
		if dead {
			p.out = append(p.out, f)
		}
		return dead
	})
	p.handOver(nil)
}

// handOver lets those hold that fit. A claim of several keys holds by its own step
// alone.
func (p *picture) handOver(self *figure) {
	for _, f := range p.line {
		if !f.holds && (len(f.Keys) == 1 || f == self) && p.fits(f) {
			f.holds = true
		}
	}
}

// fits says whether a claim may hold behind those before it.
func (p *picture) fits(f *figure) bool {
	for _, k := range f.Keys {
		sum, least := int64(0), f.Capacity
		for _, g := range p.line {
			if g == f {
				break
			}
			if !slices.Contains(g.Keys, k) {
				continue
			}
			if !g.holds {
				return false
			}
			sum, least = sum+g.Weight, min(least, g.Capacity)
		}
		if sum+f.Weight > least {
			return false
		}
	}
	return true
}

// state is how a claim stands.
func (p *picture) state(f *figure) driver.State {
	switch {
	case !slices.Contains(p.line, f), f.revoked:
		return gone
	case f.holds:
		return holding
	}
	return waiting
}

// compare checks what else is answered of a claim in line.
func (p *picture) compare(f *figure, s driver.Standing) {
	if !slices.Contains(p.line, f) || f.revoked {
		return
	}
	ahead, behind := 0, false
	for _, k := range f.Keys {
		n, seen := 0, false
		for _, g := range p.line {
			if !slices.Contains(g.Keys, k) {
				continue
			}
			behind = behind || seen && !g.holds
			seen = seen || g == f
			if !seen {
				n++
			}
		}
		ahead = max(ahead, n)
	}
	p.b.check(f.holds || s.Ahead == ahead, "%s has %d ahead, answered %d", f, ahead, s.Ahead)
	p.b.check(s.Behind == behind, "%s has somebody behind: %v, answered %v", f, behind, s.Behind)
}

// life is some ticks and a half, so that it ends between two looks and no verdict rests
// on a moment. Where time is real it does not end at all.
func (p *picture) life(n int) time.Duration {
	if !p.b.exact {
		n += 1000
	}
	return p.b.ticks(n) + p.b.tick/2
}

// extend moves an expiry, which never goes back.
func (f *figure) extend() {
	if until := time.Now().Add(f.Life.Hold); until.After(f.until) && !f.fixed {
		f.until = until
	}
}

func (p *picture) newClaim() *claim {
	keys := slices.Clone(p.keys)
	for len(keys) > 1 && p.r.IntN(3) > 0 {
		i := p.r.IntN(len(keys))
		keys = slices.Delete(keys, i, i+1)
	}
	x := p.clients[p.r.IntN(len(p.clients))].claim(keys...)
	if p.weights {
		capacity := 2 + p.r.Int64N(3)
		x.weighs(1+p.r.Int64N(capacity), capacity)
	}
	d := p.life(2 + p.r.IntN(5))
	x.Life = driver.Life{Hold: d, Wait: d}
	return x
}

func (p *picture) join() {
	f := &figure{claim: p.newClaim()}
	f.until = time.Now().Add(f.Life.Hold)
	j := driver.Join{Try: p.r.IntN(3) == 0}
	if p.r.IntN(3) == 0 {
		j.MaxLine = 1 + p.r.IntN(2)
	}
	p.begin()
	full := j.MaxLine > 0 && p.longest(f.Keys) >= j.MaxLine
	p.line = append(p.line, f)
	p.handOver(f)
	want := p.state(f)
	if !f.holds && (j.Try || full) {
		want = refused
		p.line = p.line[:len(p.line)-1]
	}
	p.compare(f, f.enter(j, want))
	if n := len(p.line); n > 1 && p.line[n-1] == f {
		p.b.check(!p.meet(f, p.line[n-2]) || f.Number > p.line[n-2].Number, "number %d is behind %d", f.Number, p.line[n-2].Number)
	}
}

// longest is how many wait in the longest of some lines.
func (p *picture) longest(keys []string) int {
	most := 0
	for _, k := range keys {
		n := 0
		for _, g := range p.line {
			if slices.Contains(g.Keys, k) && !g.holds {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// meet says whether two claims have a key in common.
func (p *picture) meet(f, g *figure) bool {
	return slices.ContainsFunc(f.Keys, func(k string) bool { return slices.Contains(g.Keys, k) })
}

// renew renews, or repeats the join.
func (p *picture) renew(f *figure) {
	p.begin()
	if slices.Contains(p.line, f) && !f.revoked {
		p.handOver(f)
		f.extend()
	}
	if want := p.state(f); want == gone || p.r.IntN(2) == 0 {
		p.compare(f, f.renew(want))
	} else {
		p.compare(f, f.enter(driver.Join{Try: p.r.IntN(2) == 0, MaxLine: 1}, want))
	}
}

func (p *picture) leave(f *figure) {
	p.begin()
	want := gone
	if i := slices.Index(p.line, f); i >= 0 {
		want = left
		p.line = slices.Delete(p.line, i, i+1)
		p.out = append(p.out, f)
	}
	p.handOver(nil)
	switch p.r.IntN(3) {
	case 0:
		f.drop(want)
	case 1:
		f.giveUp(1000, want)
	default:
		f.leave(want)
	}
}

func (p *picture) fix(f *figure) {
	p.renew(f) // so that it is known whether it holds
	n := 2 + p.r.IntN(3)
	if p.state(f) == holding && !f.fixed {
		f.fixed, f.until = true, time.Now().Add(p.life(n))
	} else if p.state(f) == waiting {
		f.extend()
	}
	life := f.Life
	if f.holds {
		life.Hold = p.life(n)
	}
	p.compare(f, f.item("fixes", driver.Renewal{Ref: f.Ref, Mode: driver.Fix, Life: life}, p.state(f)))
}

func (p *picture) resume(f *figure) {
	p.renew(f)
	y := p.newClaim()
	y.Keys, y.Weight, y.Capacity = f.Keys, f.Weight, f.Capacity
	old := *f.claim
	if p.state(f) != holding {
		y.resume(&old, gone)
		return
	}
	f.claim, f.fixed, f.until = y, false, time.Now().Add(y.Life.Hold)
	p.compare(f, y.resume(&old, holding))
	old.renew(gone)
}

// end revokes or forces, where the driver can.
func (p *picture) end(f *figure) {
	if !p.b.operates() {
		return
	}
	p.renew(f)
	force := p.r.IntN(2) == 0
	i := slices.Index(p.line, f)
	found := p.clients[0].end(f.Keys[p.r.IntN(len(f.Keys))], force, f.claim)
	p.b.check(slices.Contains(found, f.Number) == (i >= 0), "ending %s found %d, in line it is number %d", f, found, i)
	switch {
	case i < 0:
	case force || !f.holds:
		p.line = slices.Delete(p.line, i, i+1)
		p.out = append(p.out, f)
		p.handOver(nil)
	default:
		f.revoked = true
	}
}

// late sends a call for a claim that has gone.
func (p *picture) late() {
	if len(p.out) == 0 {
		return
	}
	f := p.out[p.r.IntN(len(p.out))]
	p.begin()
	switch p.r.IntN(3) {
	case 0:
		f.renew(gone)
	case 1:
		f.leave(gone)
	default:
		f.fix(3, gone)
	}
}
