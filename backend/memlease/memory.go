package memlease

import (
	"maps"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

const (
	keepNumbers = 10 * time.Second // the least time for which the last number outlives the line
	tidyPerStep = 16               // memos a step looks at
	smallMap    = 64               // a map is rebuilt when it has shrunk to this
	largeMap    = 4096             // from more than this
)

// memo says when to look whether a line, or a remembered ID where line is nil, can be
// forgotten. Each has exactly one memo, which may come too early: it is then put off.
type memo struct {
	at   int64
	line *line
	id   driver.ID
}

// memos is a heap by time.
type memos []memo

func (h *memos) push(m memo) {
	q := append(*h, m)
	i := len(q) - 1
	for i > 0 && m.at < q[(i-1)/2].at {
		q[i] = q[(i-1)/2]
		i = (i - 1) / 2
	}
	q[i] = m
	*h = q
}

func (h *memos) pop() memo {
	q := *h
	first, last := q[0], q[len(q)-1]
	q[len(q)-1] = memo{}
	q = q[:len(q)-1]
	i := 0
	for {
		child := 2*i + 1
		if child >= len(q) {
			break
		}
		if child+1 < len(q) && q[child+1].at < q[child].at {
			child++
		}
		if last.at <= q[child].at {
			break
		}
		q[i] = q[child]
		i = child
	}
	if len(q) > 0 {
		q[i] = last
	}
	*h = shrunk(q)
	return first
}

// shrunk gives back the memory of a slice that needs a quarter of it at most.
func shrunk[S ~[]E, E any](s S) S {
	if cap(s) <= smallMap || len(s) > cap(s)/4 {
		return s
	}
	return append(make(S, 0, 2*len(s)), s...)
}

// remember has Join of id answered Gone until then.
func (s *Store) remember(id driver.ID, until int64) {
	known, ok := s.remembered[id]
	s.remembered[id] = max(known, until)
	s.peak.remembered = max(s.peak.remembered, len(s.remembered))
	if !ok {
		s.memos.push(memo{at: until, id: id})
	}
}

// remembers reports whether a Leave asked to answer Gone to id.
func (s *Store) remembers(id driver.ID, now int64) bool {
	return len(s.remembered) > 0 && s.remembered[id] > now
}

// tidy looks at a few memos that are due. Without it the dead in lines nobody touches
// would stay for ever.
func (p *step) tidy() {
	s := p.store
	for n := 0; n < tidyPerStep && p.removals > 0 && len(s.memos) > 0 && s.memos[0].at <= p.now; n++ {
		m := s.memos.pop()
		if m.line == nil {
			m.at = s.remembered[m.id]
		} else {
			m.at = p.tidyLine(m.line)
		}
		switch {
		case m.at > p.now:
			s.memos.push(m)
		case m.line == nil:
			delete(s.remembered, m.id)
		default:
			delete(s.lines, m.line.key)
		}
	}
	s.peak.shrink(s)
}

// tidyLine removes the dead and answers when to look again; not later than now: never.
func (p *step) tidyLine(l *line) int64 {
	if l.head != nil {
		p.touch(l)
		p.settle()
	}
	if l.head == nil {
		return l.forgetAt
	}
	return max(l.nextExpiry(), later(p.now, keepNumbers))
}

// peak knows how large the maps have been, since a Go map never gives memory back.
type peak struct{ lines, claims, remembered int }

func (k *peak) shrink(s *Store) {
	if k.lines > largeMap && len(s.lines) <= smallMap {
		s.lines, k.lines = maps.Collect(maps.All(s.lines)), 0
	}
	if k.claims > largeMap && len(s.claims) <= smallMap {
		s.claims, k.claims = maps.Collect(maps.All(s.claims)), 0
	}
	if k.remembered > largeMap && len(s.remembered) <= smallMap {
		s.remembered, k.remembered = maps.Collect(maps.All(s.remembered)), 0
	}
}
