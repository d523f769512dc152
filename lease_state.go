package hasp

import (
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// phase is how far a stay has come, as its client knows.
type phase uint8

const (
	joining phase = iota // nothing answered yet
	waiting              // in line
	told                 // a signal said it holds; one answered renewal is owed before use
	holding              // it holds, as long as the trust window lasts
	over                 // gone, for ever
)

// String names the phase.
func (p phase) String() string {
	switch p {
	case joining:
		return "joining"
	case waiting:
		return "waiting"
	case told:
		return "told"
	case holding:
		return "holding"
	case over:
		return "over"
	}
	return "unknown"
}

// sending is one call under way: when it was sent, and which one it is of its claim.
type sending struct {
	at      time.Time
	ordinal uint64
	number  int64 // the stay it names; 0: none
}

// stay is what a client knows of its claim (P1). Its methods are the only ones that
// change a phase; they are pure: no clock, no I/O, no goroutine.
type stay struct {
	number  int64         // 0 while neither an answer nor a signal has named it
	early   int64         // a signal granted this number before anything was answered
	until   time.Time     // trusted until; zero: no answered call
	life    time.Duration // as last answered
	learnt  uint64        // the last ordinal sent when the grant was learnt (P6)
	phase   phase
	revoked bool // over by a revoke: still in line until it leaves or expires
}

// answered takes in the answer to a call. last is the greatest ordinal sent so far.
func (s stay) answered(call sending, a driver.Standing, last uint64) stay {
	if s.phase == over {
		return s
	}
	switch a.State {
	case driver.Holding, driver.Waiting:
		return s.standing(call, a, last)
	case driver.Gone:
		if call.number >= s.number {
			s.phase, s.revoked = over, a.Revoked
		}
	case driver.Refused:
		if s.number == 0 {
			s.phase = over
		}
	case driver.Left:
		s.phase = over
	}
	return s
}

func (s stay) standing(call sending, a driver.Standing, last uint64) stay {
	if a.Number < s.number {
		return s // of an earlier stay
	}
	if a.Number > s.number {
		if s.phase == holding {
			s.phase = over // the stay that was held is dead; a lost lease is never held again (G9)
			return s
		}
		s = stay{phase: joining, number: a.Number}
	}
	if a.State == driver.Waiting && s.phase >= told && call.ordinal > s.learnt {
		s.phase = over // asked after the grant was learnt, and yet waiting (P6)
		return s
	}
	if until := trustedUntil(call.at, a.Life); until.After(s.until) {
		s.until = until
	}
	s.life = a.Life
	switch {
	case a.State == driver.Holding && s.phase != holding:
		s.phase, s.learnt = holding, last
	case a.State == driver.Waiting && s.phase == joining:
		s.phase = waiting
		if s.early == s.number {
			s.phase, s.learnt = told, last
		}
	}
	return s
}

// granted takes in a signal that the stay of that number holds. It moves no window
// (P2).
func (s stay) granted(number int64, last uint64) stay {
	switch {
	case s.phase == over, number < s.number:
	case number > s.number:
		if s.phase == holding {
			s.phase = over
			return s
		}
		// a stay of which nothing was answered yet: the signal overtook the answer
		s = stay{phase: joining, number: number, early: number}
	case s.phase == waiting:
		s.phase, s.learnt = told, last
	}
	return s
}

// used turns told into holding, where the trust that is left is enough: a third of
// the life that was answered (P5).
func (s stay) used(now time.Time) stay {
	if s.phase == told && s.until.Sub(now) >= interval(s.life) {
		s.phase = holding
	}
	return s
}

// ended takes in a signal that the stay of that number was revoked or forced.
func (s stay) ended(number int64, revoked bool) stay {
	if s.phase != over && number >= s.number {
		s.phase, s.revoked = over, revoked
	}
	return s
}

// passed ends a lease whose trust window is over.
func (s stay) passed(now time.Time) stay {
	if s.phase == holding && !now.Before(s.until) {
		s.phase = over
	}
	return s
}
