package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Fault is a promise that a history breaks.
type Fault struct {
	Promise string // "G1", or a rule
	At      time.Duration
	Text    string
}

// String names the promise, the time and what happened.
func (f Fault) String() string {
	return fmt.Sprintf("%s at %.9fs: %s", f.Promise, f.At.Seconds(), f.Text)
}

// Judge answers every promise the history breaks, in the order of time.
func Judge(h *History) []Fault {
	j := &judge{ledger: newLedger(h)}
	j.users()
	j.exclusion()
	j.tokens()
	j.order()
	for _, c := range j.claims() {
		j.trust(c)
		j.leaving(c)
	}
	j.passes()
	j.lingering()
	j.waits()
	j.leftovers()
	slices.SortStableFunc(j.faults, func(a, b Fault) int { return int(a.At - b.At) })
	return j.faults
}

type judge struct {
	*ledger
	faults []Fault
}

func (j *judge) faultf(promise string, at time.Duration, format string, args ...any) {
	j.faults = append(j.faults, Fault{promise, at, fmt.Sprintf(format, args...)})
}

// claims answers the claims of the history, in their order.
func (j *judge) claims() []Claim {
	claims := make([]Claim, 0, len(j.events))
	for c := range j.events {
		claims = append(claims, c)
	}
	slices.SortFunc(claims, func(a, b Claim) int {
		if a.Client != b.Client {
			return int(a.Client) - int(b.Client)
		}
		return int(a.Nth) - int(b.Nth)
	})
	return claims
}

// users passes on what the users of the locks saw themselves.
func (j *judge) users() {
	for _, e := range j.history.Events {
		if e.Kind == Wrong {
			promise, text, ok := strings.Cut(e.Text, ": ")
			if !ok {
				promise, text = "users", e.Text
			}
			j.faultf(promise, e.At, "client %s: %s", e.Claim, text)
		}
	}
}

// exclusion is G1: leases that are trusted at once weigh no more than any of them
// allows. After a wipe, a force, or a failover that forgot, the old one may go on for
// a while.
func (j *judge) exclusion() {
	for i, l := range j.leases {
		for _, key := range l.stay.ask.Keys {
			weight, capacity := l.stay.ask.Weight, l.stay.ask.Capacity
			if l.stay.excused() <= l.from {
				break
			}
			others := []string{}
			for _, o := range j.leases[:i] {
				if o.stay.standsAt(key) && o.from <= l.from && l.from < o.end && l.from < o.stay.excused() {
					weight += o.stay.ask.Weight
					capacity = min(capacity, o.stay.ask.Capacity)
					others = append(others, o.claim.String())
				}
			}
			if weight > capacity {
				j.faultf("G1", l.from, "%s is trusted on %q beside %s: weight %d where %d fits",
					l.claim, key, strings.Join(others, ", "), weight, capacity)
			}
		}
	}
}

// tokens is G3: of two leases that exclude each other, the one granted later has the
// larger token.
func (j *judge) tokens() {
	for i, a := range j.leases {
		for _, b := range j.leases[:i] {
			if !a.excludes(b) || a.stay.granted == never || b.stay.granted == never || min(a.stay.forgot, b.stay.forgot) < never {
				continue // a grant that was forgotten came too early
			}
			first, second := b, a
			if a.stay.granted < b.stay.granted {
				first, second = a, b
			}
			if first.token >= second.token {
				j.faultf("G3", second.from, "%s was granted after %s and has token %d, not more than %d",
					second.claim, first.claim, second.token, first.token)
			}
		}
	}
}

// order is G4: no claim holds while one that entered before it, in one of its lines,
// lives and waits.
func (j *judge) order() {
	for _, b := range j.ordered {
		if b.granted == never || b.ask.Resume != nil {
			continue
		}
		for _, a := range j.ordered {
			if a.number >= b.number || a.claim == b.claim || !a.shares(b) || j.closes(a.claim) {
				continue // a closed client hears of no grant
			}
			if a.granted > b.granted && a.alive(b.granted) {
				j.faultf("G4", b.granted, "%s holds while %s, which entered before it, still waits", b.claim, a.claim)
			}
		}
	}
}

// lag is how long a process may not know that somebody else waits.
const lag = time.Second

// passes is the other half of G4: a lease goes from one to the next in its process before
// others who wait, and are known to, as often in a row as its calls allow.
func (j *judge) passes() {
	for _, l := range j.leases {
		row := 0
		for at := l; j.before(at) != nil && j.awaited(at, j.before(at)); at = j.before(at) {
			row++
		}
		if row > max(0, l.passes) {
			j.faultf("G4", l.from, "%s goes on to the next of its process for the %d. time while others wait, %d are allowed",
				l.claim, row, l.passes)
		}
	}
}

// awaited says whether somebody else has waited for so long for what the lease keeps that
// its process must have known when it went on. That is when the one before was released, or
// the next call began where none waited; a renewal that is owed first comes after it.
func (j *judge) awaited(l, before *lease) bool {
	at := l.from
	if before.releasing != nil {
		at = max(before.releasing.At, l.asked)
	}
	for _, s := range j.ordered {
		if s.number > l.number && s.shares(l.stay) && s.entered < at-lag && s.granted > at && s.alive(at) {
			return true
		}
	}
	return false
}

// lingering is what a lease that is kept after its release owes others, where the weather
// lets it be measured: it is given back within two seconds of somebody coming, and at last
// in any case.
func (j *judge) lingering() {
	for _, h := range j.ordered {
		l := j.byClaim[h.claim]
		if l == nil || l.number != h.number || l.releasing == nil || l.parking != nil || !h.ask.local() || j.closes(h.claim) {
			continue
		}
		if len(l.released) > 0 && l.released[0].Text == "" && h.gone == never && !j.leaves(h.claim) {
			j.faultf("G12", l.released[0].At, "%s was released, and neither left nor went on", h.claim)
		}
		if j.history.Weather != "calm" && j.history.Weather != "deaf" {
			continue
		}
		for _, s := range j.ordered {
			if s.number <= h.number || !s.shares(h) || s.gone < h.gone {
				continue
			}
			if kept := h.gone - max(s.entered, l.releasing.At); h.gone < never && kept > 2*time.Second+50*time.Millisecond {
				j.faultf("G5", h.gone, "%s was kept for %s while %s waited for it and nobody used it", h.claim, kept, s.claim)
			}
		}
	}
}

// leaves says whether a Leave of the claim was sent, or there was no need: it is gone.
func (j *judge) leaves(c Claim) bool {
	for _, i := range j.events[c] {
		e := &j.history.Events[i]
		if e.Kind == Sent && (e.Verb == Leave || e.Verb == Drop) || e.Kind == Answered && e.State == driver.Gone {
			return true
		}
	}
	return false
}
