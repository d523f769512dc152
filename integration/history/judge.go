package history

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is a promise that a history breaks.
type Fault struct {
	Promise string // "G1", "G2", ...
	Place   int    // the index of the event that shows it
	Text    string
}

// String names the promise, the line and what happened.
func (f Fault) String() string { return fmt.Sprintf("%s, line %d: %s", f.Promise, f.Place+1, f.Text) }

// Judge answers every promise that a history breaks, in its order.
func Judge(events []Event) []Fault {
	r := newRun(events)
	byKey := make(map[string][]*lease)
	for _, l := range r.leases {
		for _, key := range l.keys {
			byKey[key] = append(byKey[key], l)
		}
	}
	for key, leases := range byKey {
		r.exclusion(key, leases)
		r.tokens(key, leases)
	}
	for _, l := range r.leases {
		r.bounded(l)
	}
	for i := range events {
		if events[i].Kind == Seen {
			r.seen(i)
		}
	}
	slices.SortStableFunc(r.faults, func(a, b Fault) int { return a.Place - b.Place })
	return r.faults
}

func (r *run) faultf(promise string, place int, format string, args ...any) {
	r.faults = append(r.faults, Fault{promise, place, fmt.Sprintf(format, args...)})
}

// exclusion is G1 and G2: those who are trusted when a lease is granted weigh, with it,
// no more than any of them allows.
func (r *run) exclusion(key string, leases []*lease) {
	var open []*lease // those before that may still be trusted
	for _, l := range leases {
		open = slices.DeleteFunc(open, func(o *lease) bool { return o.closedBefore(l.held) })
		weight, capacity, promise := l.weight, l.capacity, "G1"
		var others []string
		for _, o := range open {
			proven, trusted := r.trustedAt(o, l)
			if !proven && !trusted {
				continue
			}
			if !proven {
				promise = "G2"
			}
			weight += o.weight
			capacity = min(capacity, o.capacity)
			others = append(others, fmt.Sprintf("%s since line %d", o, o.held+1))
		}
		if weight > capacity && l.proven >= l.held {
			r.faultf(promise, l.held, "%s holds %q beside %s", l, key, strings.Join(others, ", "))
		}
		open = append(open, l)
	}
}

// closedBefore says that a lease, by its owner's own words, is over for good.
func (l *lease) closedBefore(place int) bool { return l.ended < place && l.proven < place }

// trustedAt says whether o is still trusted when l is granted: proven by o's owner, or
// because o has said that it may be trusted longer.
func (r *run) trustedAt(o, l *lease) (proven, trusted bool) {
	if r.excused(o, l.held) {
		return false, false
	}
	if o.proven >= l.held {
		return true, true
	}
	if killed, ok := r.killed[o.who]; ok && killed < l.held && killed > o.held || o.ended < l.held {
		return false, false
	}
	return false, o.untilAt(l.held) > r.events[l.held].At
}

// excused says that a lease may overlap with others from that place on: the store has
// forgotten it, or it was taken by force.
func (r *run) excused(l *lease, place int) bool {
	if l.forced < place {
		return true
	}
	w := r.wipedUnder(l)
	return w != nil && w.began < place
}

// wipedUnder answers the first wipe that hit a claim: one that had joined before it.
func (r *run) wipedUnder(l *lease) *wipe {
	for i := range r.wipes {
		w := &r.wipes[i]
		before := l.wanted < w.ended && (w.ended == never || l.token/blockSize < w.clock)
		if before && max(l.ended, l.proven) > w.began {
			return w
		}
	}
	return nil
}

// blockSize is how many tokens belong to one number.
const blockSize = 64

// bounded is the end of what is excused: one trust window after the store has forgotten
// a lease, or after it was taken, nobody trusts it any more.
func (r *run) bounded(l *lease) {
	for _, w := range r.wipes {
		if l.held < w.began && l.proven > w.ended && w.ended < never {
			r.trustEnds(l, w.ended)
		}
	}
	if l.taken < never && l.proven > l.taken {
		r.trustEnds(l, l.taken)
	}
}

func (r *run) trustEnds(l *lease, place int) {
	if over := r.events[l.proven].At - r.events[place].At - l.life; over > 0 {
		r.faultf("G2", l.proven, "%s is trusted %d ms longer than one TTL after line %d", l, over/1e6, place+1)
	}
}

// tokens is G3, and with it G4: whoever is granted later has a larger token than all
// whom he excludes. Tokens of one key are never used twice.
func (r *run) tokens(key string, leases []*lease) {
	used := make(map[int64]*lease)
	type class struct{ weight, capacity int64 }
	largest := make(map[class]*lease)
	for _, l := range leases {
		if o := used[l.token]; o != nil && l.token != 0 {
			r.faultf("G3", l.held, "%s has on %q the token of %s", l, key, o)
		}
		used[l.token] = l
		if l.proven < l.held || r.wipedUnder(l) != nil {
			continue // it may have been granted long before it could say so
		}
		for _, o := range largest {
			if o.excludes(l) && o.token > l.token && l.token != 0 {
				r.faultf("G3", l.held, "%s was granted %q after %s", l, key, o)
			}
		}
		c := class{l.weight, l.capacity}
		if o := largest[c]; o == nil || o.token < l.token {
			largest[c] = l
		}
	}
}

// seen is G1 and G4 as the store shows them: holders fit, and stand before all waiters.
func (r *run) seen(place int) {
	e := r.events[place]
	var weight, last int64
	capacity := int64(1<<63 - 1)
	for _, h := range e.Holders {
		weight += h.Weight
		capacity = min(capacity, h.Capacity)
		last = max(last, h.Token/blockSize)
	}
	if weight > capacity {
		r.faultf("G1", place, "the store shows holders of %q that weigh %d where %d fits", e.Keys, weight, capacity)
	}
	for _, w := range e.Waiters {
		if len(e.Holders) > 0 && w.Token/blockSize < last {
			r.faultf("G4", place, "the store shows %d waiting for %q behind the holder %d", w.Token, e.Keys, last*blockSize)
		}
	}
}
