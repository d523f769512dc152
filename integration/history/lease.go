package history

import (
	"cmp"
	"fmt"
	"slices"
)

// never is later than every place in a history.
const never = int(^uint(0) >> 1)

// lease is what the events say of one lease. Places are indices of events.
type lease struct {
	name             string
	who              string
	keys             []string
	weight, capacity int64
	life             int64
	token            int64

	wanted   int
	held     int // of the line that says so
	proven   int // it was certainly trusted from held to here; -1: not even at held
	ended    int // its owner said that it is over, or released it
	lost     int // its owner was told of a loss
	forced   int // somebody began to take it by force
	taken    int // and had done so
	untils   []until
	released string // what Release said; "?" while it has not
}

// until is what the lease said at some place about the end of its trust.
type until struct {
	place int
	at    int64
}

// untilAt is what the lease had said last before a place.
func (l *lease) untilAt(place int) int64 {
	i, _ := slices.BinarySearchFunc(l.untils, place, func(u until, place int) int { return cmp.Compare(u.place, place) })
	if i == 0 {
		return 0
	}
	return l.untils[i-1].at
}

func (l *lease) String() string {
	return fmt.Sprintf("%s (token %d, weight %d of %d)", l.name, l.token, l.weight, l.capacity)
}

// excludes says whether two leases cannot hold one key together.
func (l *lease) excludes(o *lease) bool { return l.weight+o.weight > min(l.capacity, o.capacity) }

// wipe is a time in which the store lost what it knew.
type wipe struct {
	began, ended int
	clock        int64 // the store's, in µs, when it was over
}

// run is a history, sorted.
type run struct {
	events  []Event
	leases  []*lease // in the order in which they were held
	byName  map[string]*lease
	byToken map[int64][]*lease
	killed  map[string]int // where a process was killed
	wipes   []wipe
	faults  []Fault
}

// newRun makes leases of events.
func newRun(events []Event) *run {
	r := &run{
		events: events, byName: make(map[string]*lease), byToken: make(map[int64][]*lease),
		killed: make(map[string]int),
	}
	for i := range events {
		r.note(i, &events[i])
	}
	return r
}

func (r *run) note(i int, e *Event) {
	switch e.Kind {
	case Want:
		r.byName[e.Lease] = &lease{
			name: e.Lease, who: e.Who, keys: e.Keys, weight: e.Weight, capacity: e.Capacity, life: e.Life,
			wanted: i, held: never, proven: -1, ended: never, lost: never, forced: never, taken: never, released: "?",
		}
	case Killing:
		r.killed[e.Who] = i
	case Wiping:
		r.wipes = append(r.wipes, wipe{began: i, ended: never})
	case Wiped:
		if n := len(r.wipes); n > 0 {
			r.wipes[n-1].ended, r.wipes[n-1].clock = i, e.Number
		}
	case Forcing:
		for _, l := range r.byToken[e.Token] {
			l.forced = min(l.forced, i)
		}
	case Forced:
		for _, l := range r.byToken[e.Token] {
			l.taken = min(l.taken, i)
		}
	case Held, Trusted, Over, Releasing, Released:
		if l := r.byName[e.Lease]; l != nil {
			r.noteLease(l, i, e)
		} else {
			r.faultf("history", i, "%s of %s, which nobody wanted", e.Kind, e.Lease)
		}
	case Refused, Seen, Note:
	}
}

func (r *run) noteLease(l *lease, i int, e *Event) {
	switch e.Kind {
	case Held:
		l.held, l.token = i, e.Token
		l.untils = append(l.untils, until{i, e.Until})
		r.leases = append(r.leases, l)
		r.byToken[e.Token] = append(r.byToken[e.Token], l)
	case Trusted:
		if l.ended < i {
			r.faultf("G9", i, "%s is trusted again after it was over", l)
			return
		}
		l.proven = l.untils[len(l.untils)-1].place
		l.untils = append(l.untils, until{i, e.Until})
	case Over:
		l.ended = min(l.ended, i)
		if e.Text == "lost" {
			l.lost = min(l.lost, i)
		}
	case Releasing:
		l.ended = min(l.ended, i)
	case Released:
		l.released = e.Text
		if e.Text == "" && l.lost < i {
			r.faultf("G9", i, "Release of %s says that all is well, but it was lost", l)
		}
	case Want, Refused, Killing, Wiping, Wiped, Forcing, Forced, Seen, Note:
	}
}
