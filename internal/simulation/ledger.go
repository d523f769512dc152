package simulation

import (
	"math"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// never is later than everything.
const never = time.Duration(math.MaxInt64)

// stay is one life of a claim as the store had it.
type stay struct {
	claim    Claim
	number   int64
	ask      *Ask
	entered  time.Duration
	granted  time.Duration // never: it waited all along
	gone     time.Duration // left, taken away, taken over or wiped; expiry is in lives
	wiped    time.Duration // never: no wipe has hit it
	forced   time.Duration
	forgot   time.Duration
	lives    []life
	replaced *stay // by whom, on Resume
}

// life is what the store said when it set an expiry.
type life struct{ at, until time.Duration }

// alive says whether the store had certainly not let it expire at that time, nor
// removed it.
func (s *stay) alive(at time.Duration) bool {
	if at < s.entered || at >= s.gone {
		return false
	}
	var until time.Duration
	for _, l := range s.lives {
		if l.at <= at {
			until = max(until, l.until)
		}
	}
	return at < until
}

// excused is from when on an overlap with it is allowed: the store could not know, or was
// told not to care.
func (s *stay) excused() time.Duration { return min(s.wiped, s.forced, s.forgot) }

// lease is what a call returned, as its owner saw it.
type lease struct {
	claim  Claim
	number int64
	token  int64
	stay   *stay
	from   time.Duration
	index  int    // of the event Acquired
	text   string // what Acquired said
	passes int    // how often in a row it may go before others
	asked  time.Duration

	end       time.Duration // its owner stopped to trust it
	over      *Event
	releasing *Event
	released  []Event
	parking   *Event
	parked    *Event
	reclaimed *Event
}

// excludes says whether two leases cannot be held at once.
func (l *lease) excludes(o *lease) bool {
	if !l.stay.shares(o.stay) {
		return false
	}
	a, b := l.stay.ask, o.stay.ask
	return a.Weight+b.Weight > min(a.Capacity, b.Capacity)
}

func (s *stay) shares(o *stay) bool {
	for _, key := range s.ask.Keys {
		if o.standsAt(key) {
			return true
		}
	}
	return false
}

func (s *stay) standsAt(key string) bool {
	for _, k := range s.ask.Keys {
		if k == key {
			return true
		}
	}
	return false
}

// stayOf names a stay.
type stayOf struct {
	claim  Claim
	number int64
}

// ledger is a history sorted by what it is about.
type ledger struct {
	history *History
	stays   map[stayOf]*stay
	ordered []*stay // as they entered
	leases  []*lease
	byClaim map[Claim]*lease   // the last
	chains  map[Claim][]*lease // all, as one went on to the next in its process
	asks    map[Claim]*Ask
	events  map[Claim][]int // indices of the events of a claim
	sent    map[int]int     // index of the Sent event of a call
	wipes   []time.Duration
	last    time.Duration
}

func newLedger(h *History) *ledger {
	l := &ledger{
		history: h,
		stays:   make(map[stayOf]*stay),
		byClaim: make(map[Claim]*lease),
		chains:  make(map[Claim][]*lease),
		asks:    make(map[Claim]*Ask),
		events:  make(map[Claim][]int),
		sent:    make(map[int]int),
	}
	for i := range h.Events {
		e := &h.Events[i]
		l.last = e.At
		if e.Claim.Nth != 0 {
			l.events[e.Claim] = append(l.events[e.Claim], i)
		}
		switch e.Kind { //nolint:exhaustive // the others say nothing of it
		case Sent:
			l.sent[e.Call] = i
			if e.Ask != nil {
				l.asks[e.Claim] = e.Ask
			}
		case Executed:
			l.executed(e)
		case Made:
			if e.Signal == driver.Granted.String() {
				l.grant(e.Claim, e.Number, e.At)
			}
		case Wiped:
			l.wipe(e.At)
		case Found:
			l.found(e)
		case Forgot:
			if s := l.stays[stayOf{e.Claim, e.Number}]; s != nil {
				s.forgot = min(s.forgot, e.At)
			}
		default:
			l.owner(i, e)
		}
	}
	return l
}

// executed takes in a step of the store.
func (l *ledger) executed(e *Event) {
	switch e.State {
	case driver.Holding, driver.Waiting:
		s := l.stays[stayOf{e.Claim, e.Number}]
		if s == nil {
			s = l.enter(e)
		}
		if e.State == driver.Holding {
			l.grant(e.Claim, e.Number, e.At)
		}
		until := e.At + e.Life
		if e.Verb == Fix && e.State == driver.Holding { // it may set the expiry back
			for i := range s.lives {
				s.lives[i].until = min(s.lives[i].until, max(until, e.At))
			}
		}
		s.lives = append(s.lives, life{e.At, until})
	case driver.Left:
		if s := l.stays[stayOf{e.Claim, e.Number}]; s != nil {
			s.gone = min(s.gone, e.At)
		}
	case driver.Gone, driver.Refused:
	}
}

func (l *ledger) enter(e *Event) *stay {
	s := &stay{
		claim: e.Claim, number: e.Number, ask: l.asks[e.Claim], entered: e.At,
		granted: never, gone: never, wiped: never, forced: never, forgot: never,
	}
	if s.ask == nil {
		s.ask = &Ask{}
	}
	if s.ask.Resume != nil {
		if old := l.stays[stayOf{*s.ask.Resume, s.ask.ResumeNumber}]; old != nil {
			old.gone = min(old.gone, e.At)
			old.replaced = s
			s.entered = old.entered
		}
	}
	l.stays[stayOf{e.Claim, e.Number}] = s
	l.ordered = append(l.ordered, s)
	return s
}

func (l *ledger) grant(c Claim, number int64, at time.Duration) {
	if s := l.stays[stayOf{c, number}]; s != nil {
		s.granted = min(s.granted, at)
	}
}

func (l *ledger) wipe(at time.Duration) {
	l.wipes = append(l.wipes, at)
	for _, s := range l.ordered {
		s.wiped = min(s.wiped, at)
		s.gone = min(s.gone, at)
	}
}

// found takes in that an operator's call ended a stay. A waiting one goes at once.
func (l *ledger) found(e *Event) {
	for _, s := range l.ordered {
		if s.number != e.Number || !s.standsAt(e.Key) || s.gone <= e.At {
			continue
		}
		switch {
		case e.Force:
			s.forced = min(s.forced, e.At)
			s.gone = min(s.gone, e.At)
		case s.granted > e.At:
			s.gone = min(s.gone, e.At)
		}
	}
}

// owner takes in what the user of a lease did and saw.
func (l *ledger) owner(index int, e *Event) {
	if e.Kind == Acquired {
		l.acquired(index, e)
		return
	}
	lease := l.about(e)
	if lease == nil {
		return
	}
	switch e.Kind { //nolint:exhaustive // the others say nothing of it
	case Over:
		lease.over = e
		lease.end = min(lease.end, e.At)
	case Releasing:
		if lease.releasing == nil {
			lease.releasing = e
		}
		lease.end = min(lease.end, e.At)
	case Parking:
		if lease.parking == nil {
			lease.parking = e
		}
		lease.end = min(lease.end, e.At)
	case Released:
		lease.released = append(lease.released, *e)
	case Parked:
		lease.parked = e
	case Reclaimed:
		lease.reclaimed = e
	default:
	}
}

func (l *ledger) acquired(index int, e *Event) {
	s := l.stays[stayOf{e.Claim, e.Number}]
	if s == nil { // judged as a lease without a grant
		s = &stay{
			claim: e.Claim, number: e.Number, ask: l.asks[e.Claim], entered: e.At,
			granted: never, gone: never, wiped: never, forced: never, forgot: never,
		}
		if s.ask == nil {
			s.ask = &Ask{}
		}
	}
	lease := &lease{claim: e.Claim, number: e.Number, token: e.Token, stay: s, from: e.At, index: index, text: e.Text, passes: e.Passes, asked: e.Asked, end: never}
	l.leases = append(l.leases, lease)
	l.byClaim[e.Claim] = lease
	l.chains[e.Claim] = append(l.chains[e.Claim], lease)
}

// about answers the lease that an event is about.
func (l *ledger) about(e *Event) *lease {
	for _, lease := range l.chains[e.Claim] {
		if lease.token == e.Token {
			return lease
		}
	}
	return l.byClaim[e.Claim]
}

// at answers the last lease of a claim that was acquired up to an event.
func (l *ledger) at(c Claim, index int) *lease {
	var last *lease
	for _, lease := range l.chains[c] {
		if lease.index <= index {
			last = lease
		}
	}
	return last
}

// before answers the lease of the same stay that went on to this one; nil: it is the
// first.
func (l *ledger) before(after *lease) *lease {
	var last *lease
	for _, lease := range l.chains[after.claim] {
		if lease == after {
			break
		}
		if lease.number == after.number {
			last = lease
		}
	}
	return last
}

// local says whether the lease of such a claim may go on within its process.
func (a *Ask) local() bool {
	return len(a.Keys) == 1 && a.Weight == a.Capacity && (a.Capacity == 1 || a.Capacity == 1<<30) && !a.Life.Own
}
