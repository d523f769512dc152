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
	claim *claim  // of who has the seat, once it was made
	queue []*turn // who waits for the seat
	idle  bool    // the claim lingers without an owner: whoever comes next has the seat
	ahead *gate   // among the idle ones, by how long they are
	after *gate
	deaf  func() // ends the store's signals of the key; nil: they were not asked for
}

// turn is the place of one call in a gate.
type turn struct {
	want *want
	come chan struct{} // closed when the seat is the call's, or err is set
	// What it comes to; written before come is closed.
	gate  *gate
	claim *claim // to go on with; nil: with one to be made
	err   error  // what the one before found wrong with the store
}

// waits is how many wait for the key, as far as the process knows.
func (g *gate) waits() int { return len(g.queue) }

// enqueue puts a call behind those that wait.
func (g *gate) enqueue(t *turn) { g.queue = append(g.queue, t) }

// next takes the first out of the queue; nil: nobody waits.
func (g *gate) next() *turn {
	if len(g.queue) == 0 {
		return nil
	}
	t := g.queue[0]
	g.queue[0] = nil
	if g.queue = g.queue[1:]; len(g.queue) == 0 {
		g.queue = nil
	}
	t.gate = g
	return t
}

// leave takes a call out that waits no longer. False says that its turn has come.
func (g *gate) leave(t *turn) bool {
	for i, other := range g.queue {
		if other == t {
			g.queue = append(g.queue[:i:i], g.queue[i+1:]...)
			return true
		}
	}
	return false
}

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
