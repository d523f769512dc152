package sqllease

import (
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// roll is one renewal of a life and the claims it names.
type roll struct {
	life  *life
	round int64
	seen  int64 // the counter of changes as it was last looked at
	items []int // of the call
	ids   []driver.ID
}

// call sorts the items into the rolls that a life's row answers, and the rest.
func (r *roster) call(items []driver.Renewal, order []int) (rolls []*roll, rest []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	byLife := make(map[*life]*roll)
	for _, i := range order {
		m := r.members[items[i].ID]
		if m == nil || !m.suits(items[i]) {
			rest = append(rest, i)
			continue
		}
		g := byLife[m.life]
		if g == nil {
			m.life.round++
			g = &roll{life: m.life, round: m.life.round, seen: m.life.seen}
			byLife[m.life] = g
			rolls = append(rolls, g)
		}
		m.round = g.round
		g.items, g.ids = append(g.items, i), append(g.ids, items[i].ID)
	}
	return rolls, rest
}

// suits says whether the renewal asks for just what the life's row gives.
func (m *member) suits(item driver.Renewal) bool {
	t := m.life.terms
	return item.Mode == driver.Extend && !item.Life.Own && item.Life.Hold == t.hold && item.Life.Grace == t.grace &&
		m.answers(item.Number)
}

// parted is a claim to be taken out of its life.
type parted struct {
	id    driver.ID
	until int64
	was   *member
	kept  bool // another transaction keeps it where it is for now
}

// late picks the claims that no renewal has named for long, though their life goes on:
// one more than half its length behind the expiry that is about to be given.
func (r *roster) late(g *roll, until int64) []parted {
	r.mu.Lock()
	defer r.mu.Unlock()
	var late []parted
	for id, m := range g.life.members {
		if m.round == g.round && !m.leaving || r.naming[id] > 0 || m.parting || until-m.until <= micros(g.life.terms.hold)/2 {
			continue
		}
		if len(late) == maxParting {
			break
		}
		m.leaving, m.parting = true, true
		late = append(late, parted{id: id, until: m.until, was: m})
	}
	return late
}

// part notes whether claims were taken out of their lives.
func (r *roster) part(late []parted, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range late {
		p.was.parting = false
		if done && !p.kept && r.members[p.id] == p.was {
			r.forget(p.id)
		}
	}
}

// renewed notes the expiry that a renewal has given those it named.
func (r *roster) renewed(g *roll, until int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range g.ids {
		if m := r.members[id]; m != nil && m.life == g.life {
			m.until = max(m.until, until)
		}
	}
}

// sitter is what was seen of a claim that lives by a life.
type sitter struct {
	number int64
	behind bool
}

// counted answers how many claims were ever enrolled.
func (r *roster) counted() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

// saw notes how the claims of a life are. What is not among them, and was enrolled
// before they were looked at, lives by it no more.
func (r *roster) saw(g *roll, changed int64, found map[driver.ID]sitter, before uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if changed < g.life.seen {
		return // they were looked at again since
	}
	g.life.seen = changed
	for id, m := range g.life.members {
		s, ok := found[id]
		switch {
		case m.since > before || m.leaving:
		case !ok || s.number != m.number:
			r.forget(id)
		default:
			m.behind = s.behind
		}
	}
}

// standing answers how a claim is that the roll has named, if the life's row tells.
func (r *roster) standing(g *roll, item driver.Renewal, left time.Duration) (driver.Standing, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[item.ID]
	if m == nil || m.life != g.life || !m.answers(item.Number) {
		return driver.Standing{}, false
	}
	return driver.Standing{State: driver.Holding, Number: m.number, Life: left, Behind: m.behind}, true
}
