package hasp

import "time"

// gateName names a gate: who wants the same key, weighs alike and asks for the same life
// may stand in line with one claim. It must be all of the line's capacity.
type gateName struct {
	key        string // with prefix
	capacity   int64
	ttl, grace time.Duration
}

// gate is where the goroutines of a process meet that want one key exclusively. One of
// them has the seat: a call on its way to a lease, then that lease; it stands in the
// store's line for all. The others wait for it in the order in which they came. A gate
// is open as long as somebody has the seat. Its methods are pure: no clock, no I/O, no
// goroutine, no lock.
type gate struct {
	name  gateName
	claim *claim // of who has the seat, once it was made
	queue line   // who waits for the seat
	idle  bool   // the claim lingers without an owner: whoever comes next has the seat
	ahead *gate  // among the idle ones, by how long they are
	after *gate
	deaf  func() // ends the store's signals of the key; nil: they were not asked for
}

// turn is the place of one call among those of this process that want the same.
type turn struct {
	want *want
	come chan struct{} // closed when the turn has come, or err is set
	// What it comes to; written before come is closed.
	gate  *gate
	claim *claim // to go on with; nil: with one to be made
	err   error  // what the one before found wrong with the store

	queued bool // it stands between these two
	before *turn
	behind *turn
}

// line has turns in the order in which they came. Each can leave at once, wherever it
// stands: thousands may be cancelled in one moment.
type line struct {
	first, last *turn
	size        int
}

// add puts a turn behind the others.
func (l *line) add(t *turn) {
	t.queued, t.before = true, l.last
	if l.last != nil {
		l.last.behind = t
	} else {
		l.first = t
	}
	l.last = t
	l.size++
}

// leave takes a turn out. False says that it does not stand there any more.
func (l *line) leave(t *turn) bool {
	if !t.queued {
		return false
	}
	if t.before != nil {
		t.before.behind = t.behind
	} else {
		l.first = t.behind
	}
	if t.behind != nil {
		t.behind.before = t.before
	} else {
		l.last = t.before
	}
	t.queued, t.before, t.behind = false, nil, nil
	l.size--
	return true
}

// waits is how many wait for the key, as far as the process knows.
func (g *gate) waits() int { return g.queue.size }

// enqueue puts a call behind those that wait.
func (g *gate) enqueue(t *turn) { g.queue.add(t) }

// next takes the first out of the queue; nil: nobody waits.
func (g *gate) next() *turn {
	t := g.queue.first
	if t == nil {
		return nil
	}
	g.queue.leave(t)
	t.gate = g
	return t
}

// leave takes a call out that waits no longer. False says that its turn has come.
func (g *gate) leave(t *turn) bool { return g.queue.leave(t) }

const (
	// rivalsFresh is how old an answer may be that says whether others wait.
	rivalsFresh = time.Second
	// rivalsGrants is how many local grants it may be old, where no signal would tell.
	rivalsGrants = 16
	// mostHandoffs is how many local grants one stay has tokens for.
	mostHandoffs = blockSize - 1
)

// rivals is what a claim knows of those who wait behind it, outside of the process
// (P18). Its methods are pure.
type rivals struct {
	behind  bool      // somebody waits, as last told
	asked   time.Time // when the call was sent that was answered so, or a signal said so
	grants  uint8     // local ones since, at most a block of tokens
	favours uint8     // local ones in a row while others waited, or may have
	watched bool      // a signal tells when somebody comes
}

// answered takes in the answer to a call.
func (r rivals) answered(sent time.Time, behind bool) rivals {
	if sent.Before(r.asked) {
		return r // what is known is newer
	}
	r.behind, r.asked, r.grants = behind, sent, 0
	if !behind {
		r.favours = 0
	}
	return r
}

// wanted takes in a signal that somebody has come.
func (r rivals) wanted(now time.Time) rivals {
	r.behind, r.asked, r.grants = true, now, 0
	return r
}

// wait says whether others wait. Without a fresh answer they are taken to.
func (r rivals) wait(now time.Time) bool {
	return r.behind || now.Sub(r.asked) > rivalsFresh || !r.watched && r.grants >= rivalsGrants
}

// allow says whether one more local grant may be made, where that many are allowed in a
// row while others wait.
func (r rivals) allow(now time.Time, handoffs int) bool {
	return !r.wait(now) || int(r.favours) < handoffs
}

// granted counts a local grant.
func (r rivals) granted(now time.Time) rivals {
	if r.wait(now) {
		r.favours++
	}
	r.grants++
	return r
}
