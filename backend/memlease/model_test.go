package memlease_test

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// model is the line of claims as DESIGN words it, with no thought for speed: one list of
// claims in joining order, and every question answered by looking at all of it.
type model struct {
	start      time.Time
	now        time.Duration // since start
	claims     []*stay
	last       map[string]int64
	remembered map[driver.ID]time.Duration
}

type stay struct {
	driver.Claim
	joined, trust, expiry   time.Duration
	holding, fixed, revoked bool
}

func newModel() *model {
	return &model{start: time.Now(), last: map[string]int64{}, remembered: map[driver.ID]time.Duration{}}
}

// begin removes the dead and hands over, everywhere.
func (m *model) begin() {
	m.now = time.Since(m.start)
	m.claims = slices.DeleteFunc(m.claims, func(c *stay) bool { return c.expiry <= m.now })
	m.handOver()
}

func (m *model) handOver() {
	for _, c := range m.claims {
		if !c.holding && len(c.Keys) == 1 && m.fits(c) {
			c.holding = true
		}
	}
}

func (m *model) find(id driver.ID) *stay {
	if i := slices.IndexFunc(m.claims, func(c *stay) bool { return c.ID == id }); i >= 0 {
		return m.claims[i]
	}
	return nil
}

func (m *model) line(key string) []*stay {
	var line []*stay
	for _, c := range m.claims {
		if slices.Contains(c.Keys, key) {
			line = append(line, c)
		}
	}
	return line
}

// ahead is who stands before c; everybody, if c has not entered.
func (m *model) ahead(c *stay, key string) []*stay {
	line := m.line(key)
	if i := slices.Index(line, c); i >= 0 {
		return line[:i]
	}
	return line
}

func (m *model) fits(c *stay) bool {
	return !slices.ContainsFunc(c.Keys, func(key string) bool { return !m.fitsIn(c, key) })
}

func (m *model) fitsIn(c *stay, key string) bool {
	waits := func(q *stay) bool { return !q.holding }
	ahead := m.ahead(c, key)
	return !slices.ContainsFunc(ahead, waits) && fitBeside(c, ahead)
}

func fitBeside(c *stay, ahead []*stay) bool {
	sum, smallest := c.Weight, c.Capacity
	for _, q := range ahead {
		sum += q.Weight
		smallest = min(smallest, q.Capacity)
	}
	return sum <= smallest
}

func (m *model) join(j driver.Join) driver.Standing {
	m.begin()
	if j.Leaving != nil {
		m.takeOut(*j.Leaving)
	}
	switch c := m.find(j.ID); {
	case c != nil:
		return m.renew(c, j.Ref, driver.Extend, j.Life)
	case m.remembered[j.ID] > m.now:
		return m.gone(j.Number, j.Keys, nil)
	case j.Resume != nil:
		return m.resume(j)
	}
	c := &stay{Claim: j.Claim, joined: m.now}
	c.holding = m.fits(c)
	full := func(key string) bool {
		waiting := len(slices.DeleteFunc(m.line(key), func(q *stay) bool { return q.holding }))
		return j.MaxLine > 0 && waiting >= j.MaxLine
	}
	if !c.holding && (j.Try || slices.ContainsFunc(j.Keys, full)) {
		s := m.inTheWay(driver.Standing{State: driver.Refused}, c)
		s.Ahead = m.longest(c)
		return s
	}
	c.Number = m.start.Add(m.now).UnixMicro()
	for _, key := range j.Keys {
		c.Number = max(c.Number, m.last[key]+1)
	}
	for _, key := range j.Keys {
		m.last[key] = c.Number
	}
	m.claims = append(m.claims, c)
	m.lengthen(c, j.Life)
	return m.standing(c)
}

func (m *model) resume(j driver.Join) driver.Standing {
	c := m.find(j.Resume.ID)
	if c == nil || c.Number != j.Resume.Number || !c.holding {
		return m.gone(j.Number, j.Keys, nil)
	}
	if c.revoked {
		return m.gone(j.Number, j.Keys, c)
	}
	c.ID, c.Name, c.Index = j.ID, j.Name, j.Index
	c.fixed, c.trust, c.expiry = false, 0, 0
	m.lengthen(c, j.Life)
	return m.standing(c)
}

func (m *model) renewal(r driver.Renewal) driver.Standing {
	if r.Mode == driver.Drop {
		return m.leave(driver.Leaving{Ref: r.Ref, Unanswered: r.Unanswered, Remember: r.Remember})
	}
	m.begin()
	if c := m.find(r.ID); c != nil {
		return m.renew(c, r.Ref, r.Mode, r.Life)
	}
	return m.gone(r.Number, r.Keys, nil)
}

func (m *model) renew(c *stay, ref driver.Ref, mode driver.Mode, life driver.Life) driver.Standing {
	if ref.Number != 0 && ref.Number != c.Number {
		return m.gone(ref.Number, ref.Keys, nil)
	}
	if c.revoked {
		return m.gone(ref.Number, ref.Keys, c)
	}
	if !c.holding && m.fits(c) {
		c.holding = true
		m.handOver()
	}
	switch {
	case c.fixed:
	case mode == driver.Fix && c.holding:
		c.fixed, c.trust, c.expiry = true, m.now+life.Hold, m.now+life.Hold
	default:
		m.lengthen(c, life)
	}
	return m.standing(c)
}

func (m *model) lengthen(c *stay, life driver.Life) {
	if c.holding {
		c.trust = max(c.trust, m.now+life.Hold)
		c.expiry = max(c.expiry, m.now+life.Hold+life.Grace)
	} else {
		c.trust = max(c.trust, m.now+life.Wait)
		c.expiry = max(c.expiry, m.now+life.Wait)
	}
}

func (m *model) leave(l driver.Leaving) driver.Standing {
	m.begin()
	if c := m.takeOut(l); c != nil {
		return driver.Standing{State: driver.Left, Number: c.Number}
	}
	return m.gone(l.Number, l.Keys, nil)
}

func (m *model) takeOut(l driver.Leaving) *stay {
	if l.Unanswered {
		m.remembered[l.ID] = max(m.remembered[l.ID], m.now+l.Remember)
	}
	c := m.find(l.ID)
	m.claims = slices.DeleteFunc(m.claims, func(q *stay) bool { return q == c })
	m.handOver()
	return c
}

func (m *model) end(key string, numbers []int64, force bool) []int64 {
	m.begin()
	var found []int64
	for _, c := range m.line(key) {
		if !slices.Contains(numbers, c.Number) {
			continue
		}
		found = append(found, c.Number)
		if c.holding && !force {
			c.revoked = true
		} else {
			m.claims = slices.DeleteFunc(m.claims, func(q *stay) bool { return q == c })
		}
	}
	m.handOver()
	return found
}

func (m *model) standing(c *stay) driver.Standing {
	s := driver.Standing{State: driver.Holding, Number: c.Number, Life: c.trust - m.now, Ahead: m.longest(c)}
	for _, key := range c.Keys {
		line := m.line(key)
		behind := line[slices.Index(line, c)+1:]
		s.Behind = s.Behind || slices.ContainsFunc(behind, func(q *stay) bool { return !q.holding })
	}
	if !c.holding {
		s.State, s.LookAgain = driver.Waiting, m.lookAgain(c)
		s = m.inTheWay(s, c)
	}
	return s
}

func (m *model) longest(c *stay) int {
	n := 0
	for _, key := range c.Keys {
		n = max(n, len(m.ahead(c, key)))
	}
	return n
}

// lookAgain tries every expiry there is, earliest first.
func (m *model) lookAgain(c *stay) time.Duration {
	best := time.Duration(math.MaxInt64)
	for _, dying := range m.claims {
		at := dying.expiry
		if !slices.ContainsFunc(c.Keys, func(key string) bool { return !m.fitsAt(c, key, at) }) {
			best = min(best, at)
		}
	}
	return best - m.now
}

func (m *model) fitsAt(c *stay, key string, at time.Duration) bool {
	alive := slices.DeleteFunc(slices.Clone(m.ahead(c, key)), func(q *stay) bool { return q.expiry <= at })
	stuck := func(q *stay) bool { return !q.holding && len(q.Keys) > 1 }
	return !slices.ContainsFunc(alive, stuck) && fitBeside(c, alive)
}

// inTheWay names the first holder of the first line that keeps c out and has one.
func (m *model) inTheWay(s driver.Standing, c *stay) driver.Standing {
	for _, key := range c.Keys {
		if line := m.line(key); !m.fitsIn(c, key) && len(line) > 0 && line[0].holding {
			s.Holder, s.ExpiresIn = line[0].Name, line[0].expiry-m.now
			return s
		}
	}
	return s
}

func (m *model) gone(number int64, keys []string, revoked *stay) driver.Standing {
	s := driver.Standing{State: driver.Gone, Number: number, Revoked: revoked != nil}
	for _, key := range keys {
		for _, c := range m.line(key) {
			if c != revoked && c.holding {
				s.Holder, s.ExpiresIn = c.Name, c.expiry-m.now
				return s
			}
		}
	}
	return s
}

// list is the listing of one key.
func (m *model) list(key string) driver.Line {
	m.begin()
	out := driver.Line{Key: key}
	line := m.line(key)
	slices.SortFunc(line, func(a, b *stay) int { return cmp.Compare(a.Number, b.Number) })
	for _, c := range line {
		e := driver.Entry{
			Number: c.Number, Weight: c.Weight, Capacity: c.Capacity, Index: c.Index, Name: c.Name,
			InLine: m.now - c.joined, ExpiresIn: c.expiry - m.now, Fixed: c.fixed, Revoked: c.revoked,
		}
		if c.holding {
			out.Holders = append(out.Holders, e)
		} else {
			out.Waiting++
			out.Waiters = append(out.Waiters, e)
		}
	}
	return out
}
