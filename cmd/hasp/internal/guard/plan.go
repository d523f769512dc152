package guard

import (
	"fmt"
	"math"
	"time"
)

// Instant is a point on the clock that hasp and the guard share, in nanoseconds.
type Instant int64

// never is later than all instants.
const never Instant = math.MaxInt64

// Add is the instant d after i.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// phase is how far the guard has come.
type phase uint8

const (
	running phase = iota // the command may run
	ending               // the command was sent TERM, or what it left behind was
	killing              // everything is being killed
)

func (p phase) String() string {
	switch p {
	case running:
		return "running"
	case ending:
		return "ending"
	case killing:
		return "killing"
	}
	return fmt.Sprintf("phase(%d)", uint8(p))
}

// plan decides when the guard ends what it guards. It reads no clock and touches no
// process.
//
//	running ──term time, loss, command ended──▶ ending ──kill time──▶ killing
//	   └───────────────── kill time, pipe closed ──────────────────────▲
type plan struct {
	phase phase
	term  Instant
	kill  Instant
}

// enter is the only place that changes the phase. It says whether it did: there is
// no way back.
func (p *plan) enter(to phase) bool {
	if to <= p.phase {
		return false
	}
	p.phase = to
	return true
}

// trust takes new times. Once the command was told to end they count no more: it
// may have undone half of its work.
func (p *plan) trust(term, kill Instant) {
	if p.phase == running {
		p.term, p.kill = term, kill
	}
}

// lost says that the lease is gone. The result says whether TERM is due.
func (p *plan) lost(kill Instant) bool {
	p.kill = min(p.kill, kill)
	return p.enter(ending)
}

// ended says that the command itself is over. What it left behind gets TERM, if the
// result says so, and a little time.
func (p *plan) ended(now Instant) bool {
	p.kill = min(p.kill, now.Add(leftover))
	return p.enter(ending)
}

// hangup says that hasp is gone.
func (p *plan) hangup() { p.kill = 0 }

// due answers the phase that now has begun, and whether it has begun just now.
func (p *plan) due(now Instant) (phase, bool) {
	switch {
	case now >= p.kill:
		return killing, p.enter(killing)
	case now >= p.term && p.phase == running:
		return ending, p.enter(ending)
	}
	return p.phase, false
}

// next is when due has to be asked again.
func (p *plan) next() Instant {
	switch p.phase {
	case running:
		return min(p.term, p.kill)
	case ending:
		return p.kill
	case killing:
	}
	return never
}
