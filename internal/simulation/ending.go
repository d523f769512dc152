package simulation

import (
	"slices"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// remembered is how long the store knows at least an ID that was given up.
const remembered = 10 * time.Second

// exit follows how one claim leaves.
type exit struct {
	*judge
	claim  Claim
	lease  *lease        // the latest so far
	leaves int           // sent
	with   *Claim        // that joined in the step of the last of them
	ghost  bool          // the client was told of a later stay, by a late copy of the Join
	left   bool          // one of them found it
	spared bool          // a repeated one was answered "not there" in time
	wentAt time.Duration // a Leave was done
	bound  time.Duration // of the trust
	first  time.Duration // a Leave was sent
	failed time.Duration // the last one so far was not answered; never: there is none

	settled bool // one was answered
}

// leaving judges when a claim is left, what Release says, and that nothing comes back
// (P10 to P14).
func (j *judge) leaving(c Claim) {
	x := &exit{judge: j, claim: c, wentAt: never, first: never, failed: never}
	for _, i := range j.events[c] {
		e := &j.history.Events[i]
		x.lease = j.at(c, i)
		switch e.Kind { //nolint:exhaustive // the others say nothing of it
		case Sent:
			if e.Verb == Leave || e.Verb == Drop {
				x.with = e.With
				x.leaves++
				x.first, x.failed = min(x.first, e.At), never
				x.sent(i, e)
			}
		case Executed:
			x.executed(e)
		case Answered:
			x.answered(e)
		case Heard:
			x.ghost = x.ghost || x.lease != nil && e.Signal == driver.Granted.String() && e.Number > x.lease.number
		case Released:
			x.released(e)
		default:
		}
	}
	if !x.settled && x.failed < x.first+remembered-time.Second && x.failed+4*time.Second < j.last && !j.closes(c) && !j.granted(x.with) {
		j.faultf("P10", x.failed, "%s: its Leave was not answered, and is not repeated", c)
	}
}

// granted says that a signal has told a client of the grant of a claim, and so that its
// Join was done.
func (j *judge) granted(c *Claim) bool {
	return c != nil && slices.ContainsFunc(j.events[*c], func(i int) bool {
		e := &j.history.Events[i]
		return e.Kind == Heard && e.Signal == driver.Granted.String()
	})
}

// closes says that the client of a claim is closed while others may use it.
func (j *judge) closes(c Claim) bool {
	return slices.ContainsFunc(j.history.Events, func(e Event) bool { return e.Kind == Closing && e.Claim.Client == c.Client })
}

// sent is P13 and P14: a lease is left when its owner says so, and not after it was
// kept or detached.
func (x *exit) sent(index int, e *Event) {
	l := x.lease
	if l == nil || index < l.index || x.ghost {
		return
	}
	switch {
	case l.parking != nil && l.parking.At <= e.At && !l.stay.alive(e.At): // nothing is there to be left
	case l.parked != nil && l.parked.At <= e.At:
		x.faultf("P14", e.At, "%s is left after it was given away", x.claim)
	case l.reclaimed == nil && (l.releasing == nil || e.At < l.releasing.At):
		x.faultf("P13", e.At, "%s is left before its owner called Release", x.claim)
	}
}

func (x *exit) executed(e *Event) {
	switch {
	case e.State == driver.Left, e.State == driver.Gone && (e.Verb == Leave || e.Verb == Drop):
		x.left = x.left || e.State == driver.Left
		x.wentAt = min(x.wentAt, e.At)
	case e.Verb == Join && (e.State == driver.Holding || e.State == driver.Waiting) &&
		e.At > x.wentAt && e.At < x.wentAt+remembered && !x.wipedBetween(x.wentAt, e.At):
		x.faultf("P11", e.At, "%s left at %s, and a late copy of its Join was let in", x.claim, x.wentAt)
	}
}

func (x *exit) wipedBetween(from, to time.Duration) bool {
	for _, at := range x.wipes {
		if from <= at && at <= to {
			return true
		}
	}
	return false
}

func (x *exit) answered(e *Event) {
	if e.Text != "" {
		if e.Verb == Leave || e.Verb == Drop {
			x.failed = e.At
		}
		return
	}
	x.settled = x.settled || e.Verb == Leave || e.Verb == Drop
	switch {
	case e.State == driver.Gone && (e.Verb == Leave || e.Verb == Drop):
		x.spared = x.spared || x.leaves > 1 && e.At < x.bound
	case (e.State == driver.Holding || e.State == driver.Waiting) && (e.Verb == Join || e.Verb == Extend) &&
		(x.lease == nil || x.lease.releasing == nil || e.At <= x.lease.releasing.At):
		sent := x.history.Events[x.ledger.sent[e.Call]]
		x.bound = max(x.bound, sent.At+e.Life-margin(e.Life))
	}
}

// released is P12: what Release may say.
func (x *exit) released(e *Event) {
	l := x.about(e)
	if l == nil || l.parking != nil {
		return
	}
	lost := l.over != nil && l.over.Text == "lost"
	switch {
	case e.Text == "" && lost:
		x.faultf("P12", e.At, "Release of %s says that all is well, but it was lost", x.claim)
	case e.Text == "" && x.leaves == 0 && l.stay.ask.local(): // it went on to the next of its process, or waits for it
	case e.Text == "" && !x.left && !x.spared:
		x.faultf("P12", e.At, "Release of %s says that all is well, but no Leave found it", x.claim)
	case e.Text == "lost" && !lost && x.left && e.At < x.bound:
		x.faultf("P12", e.At, "Release of %s says that it was lost, but a Leave found it in time", x.claim)
	}
}

// waits is G5 where the weather lets it be measured, and that fair weather loses nothing.
func (j *judge) waits() {
	var most time.Duration
	switch j.history.Weather {
	case "calm":
		most = 50 * time.Millisecond
	case "deaf":
		most = 2*time.Second + 50*time.Millisecond
	default:
		return
	}
	for _, l := range j.leases {
		if s := l.stay; j.before(l) == nil && s.granted < never && len(s.ask.Keys) == 1 && s.ask.Resume == nil && l.from-s.granted > most {
			j.faultf("G5", l.from, "%s was granted at %s, and its call returned only now", l.claim, s.granted)
		}
		if l.over != nil && l.over.Text == "lost" && !l.stay.ask.Life.Own && l.text == "" && !j.ended(l) {
			j.faultf("fair", l.over.At, "%s is lost in fair weather", l.claim)
		}
	}
}

// ended says whether an operator ended the lease.
func (j *judge) ended(l *lease) bool {
	for _, e := range j.history.Events {
		if e.Kind == Found && e.Number == l.number && l.stay.standsAt(e.Key) {
			return true
		}
	}
	return false
}

// tooLate says that its client was closed meanwhile: the lease expires (G11).
func (l *lease) tooLate() bool { return l.over != nil && l.over.Text == "closed" }

// unknowable says that nobody could have kept a stay from being left behind: a late copy
// of the Join came after the store had lost what it remembered, or after the client was
// told that the claim is gone, or the client was closed before all was answered. It
// expires.
func (j *judge) unknowable(s *stay) bool {
	return j.closes(s.claim) || j.buried(s) ||
		slices.ContainsFunc(j.wipes, func(at time.Duration) bool { return at <= s.entered }) && (j.cameBack(s) || j.again(s))
}

// cameBack says that the stay began after its claim had left.
func (j *judge) cameBack(s *stay) bool {
	return slices.ContainsFunc(j.events[s.claim], func(i int) bool {
		e := &j.history.Events[i]
		return e.Kind == Executed && (e.Verb == Leave || e.Verb == Drop) && e.At < s.entered
	})
}

// again says that the stay is not the first of its claim.
func (j *judge) again(s *stay) bool {
	return slices.ContainsFunc(j.ordered, func(o *stay) bool { return o.claim == s.claim && o.number < s.number })
}

// buried says that the stay began after its client was told that the claim was gone, and
// so had no reason to leave.
func (j *judge) buried(s *stay) bool {
	return slices.ContainsFunc(j.events[s.claim], func(i int) bool {
		e := &j.history.Events[i]
		return e.Kind == Answered && e.State == driver.Gone && e.At < s.entered
	})
}

// leftovers is G12 for the store: at the end only what was given away, or never given
// back, still stands there.
func (j *judge) leftovers() {
	for _, e := range j.history.Events {
		if e.Kind != Listed {
			continue
		}
		for _, s := range j.ordered {
			if s.number != e.Number || !s.standsAt(e.Key) || s.gone < never {
				continue
			}
			l := j.byClaim[s.claim]
			given := l != nil && (l.parking != nil || l.reclaimed != nil || l.releasing == nil || l.tooLate())
			if !given && !j.unknowable(s) {
				j.faultf("G12", e.At, "%s still stands in the line of %q", s.claim, e.Key)
			}
		}
	}
}
