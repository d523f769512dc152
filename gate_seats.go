package hasp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// gates are the open gates of a client and all derived from it. The lock is taken last,
// also under a claim's.
type gates struct {
	mu    sync.Mutex
	open  map[gateName]*gate
	spare []*gate // of those that closed

	idle    int                // how many gates are
	oldest  *gate              // of them
	newest  *gate              //
	watched map[string][]*gate // by key, those that the store's signals are for
}

// spareGates is how many closed gates are kept for the next.
const spareGates = 64

// gated says whether w goes through a gate: one key, wanted exclusively, with a renewed
// lease. Permits do not, since a semaphore may grow.
func (e *engine) gated(w *want) bool {
	return (w.kind == mutexKind || w.kind == writeKind) && len(w.keys.full) == 1 &&
		!w.opts.NoRenew && w.opts.LocalHandoffs >= 0 && e.feats.Line
}

// entry is what a call finds at the gate: the seat, or a turn to wait for, or neither.
type entry struct {
	seat   *gate
	turn   *turn
	before *claim // of who has the seat; nil: none was made yet
	queued int    // how many wait already
}

// enter goes to the gate of w. A call that does not wait, or not where too many do, does
// not wait there.
func (gs *gates) enter(w *want) entry {
	name := gateName{w.keys.full[0], w.capacity, w.opts.TTL, w.opts.Grace}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.open[name]
	switch {
	case g == nil:
		return entry{seat: gs.make(name)}
	case g.idle:
		gs.rouse(g)
		return entry{seat: g, before: g.claim}
	case w.opts.Wait == NoWait || w.opts.MaxLine > 0: // for the store to say whether it may wait
		return entry{before: g.claim, queued: g.waits()}
	}
	t := &turn{want: w, gate: g, come: make(chan struct{})}
	g.enqueue(t)
	return entry{turn: t}
}

func (gs *gates) make(name gateName) *gate {
	var g *gate
	if n := len(gs.spare); n > 0 {
		g, gs.spare = gs.spare[n-1], gs.spare[:n-1]
	} else {
		g = &gate{}
	}
	g.name = name
	if gs.open == nil {
		gs.open = make(map[gateName]*gate)
	}
	gs.open[name] = g
	return g
}

// seat notes the claim of who has the seat.
func (gs *gates) seat(g *gate, c *claim) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g.claim = c
}

// ahead answers the claim of who has the seat of a gate that t waits in; nil: it is not
// made yet.
func (gs *gates) ahead(t *turn) *claim {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return t.gate.claim
}

// next takes the first turn, whose seat it is from now on; nil: nobody waits, and the
// seat stays where it is.
func (gs *gates) next(g *gate) *turn {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return g.next()
}

// nextOrClose is next, and closes the gate where nobody waits.
func (gs *gates) nextOrClose(g *gate) *turn {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if t := g.next(); t != nil {
		return t
	}
	gs.close(g)
	return nil
}

// close ends a gate in which nobody waits; gs.mu is held.
func (gs *gates) close(g *gate) {
	delete(gs.open, g.name)
	if g.deaf != nil {
		gs.unwatch(g)
	}
	*g = gate{}
	if len(gs.spare) < spareGates {
		gs.spare = append(gs.spare, g)
	}
}

// vacate gives the seat up without a claim to go on with: the next makes one.
func (gs *gates) vacate(g *gate) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if t := g.next(); t != nil {
		g.claim = nil
		close(t.come)
		return
	}
	gs.close(g)
}

// disperse gives the seat up and has all who wait end with err: what is wrong with the
// store is wrong for them, too.
func (gs *gates) disperse(g *gate, err error) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for t := g.next(); t != nil; t = g.next() {
		t.err = err
		close(t.come)
	}
	gs.close(g)
}

// leave takes a call out that waits no longer. False says that its turn has come.
func (gs *gates) leave(t *turn) bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return t.gate.leave(t)
}

// pass goes through the gate to a lease.
func (a *acquisition) pass(ctx context.Context) (lease *Lease, err error) {
	in := a.e.gates.enter(a.want)
	switch {
	case in.turn != nil:
		if err := a.await(ctx, in.turn); err != nil {
			return nil, err
		}
	case in.seat == nil:
		return a.around(ctx, in)
	default:
		if a.gate = in.seat; in.before != nil {
			a.adopt(in.before)
		}
	}
	defer func() {
		if lease == nil { // also of a call that panics
			a.rise(err)
		}
	}()
	if a.claim == nil {
		return a.persevere(ctx)
	}
	got, again, err := a.stand(ctx)
	if !again {
		return got, err
	}
	a.tick()
	return a.persevere(ctx)
}

// around goes past the gate, with a claim of its own if need be. What this process holds is
// known without asking the store, and so are its own calls that wait.
func (a *acquisition) around(ctx context.Context, in entry) (*Lease, error) {
	held := a.want.opts.Wait == NoWait && in.before != nil && in.before.holds()
	if held || a.want.opts.MaxLine > 0 && in.queued >= a.want.opts.MaxLine {
		return nil, a.behind(in.before, nil)
	}
	if a.want.opts.MaxLine > 0 {
		a.queued = in.queued
	}
	return a.persevere(ctx)
}

// holds says whether the claim holds and is trusted now.
func (c *claim) holds() bool {
	now := c.e.clk.fresh()
	c.mu.Lock()
	defer c.mu.Unlock()
	return (c.fate == owned || c.fate == wanted) && c.stay.passed(now).phase == holding
}

// await waits for the seat. On an error it is not the call's.
func (a *acquisition) await(ctx context.Context, t *turn) error {
	a.stood = true
	waits := true
	defer func() {
		if waits { // in a panic
			a.withdraw(t, cancelled)
		}
	}()
	why, refusal := a.queue(ctx, t), error(nil)
	if why != granted {
		refusal = a.missed(ctx, t, why)
	}
	waits = false
	if why != granted && a.withdraw(t, why) {
		return refusal
	}
	a.tick()
	if t.err == nil {
		a.gate, a.claim = t.gate, t.claim
	}
	return t.err
}

// queue waits until the turn has come, or there is a reason to wait no longer.
func (a *acquisition) queue(ctx context.Context, t *turn) verdict {
	over, stop := a.patience()
	defer stop()
	for {
		select {
		case <-t.come:
			return granted
		case <-over:
			if a.over || !a.unheard(t) {
				return outOfTime
			}
			a.over, over = true, time.After(oneAnswer)
		case <-ctx.Done():
			return cancelled
		case <-a.e.closing:
			return closed
		}
	}
}

// withdraw ends the waiting, and says so unless the seat came just now with a claim that
// may hold, which is not thrown away because Wait is over.
func (a *acquisition) withdraw(t *turn, why verdict) bool {
	if a.e.gates.leave(t) {
		return true
	}
	<-t.come
	if why == outOfTime && t.err == nil && t.claim != nil {
		return false
	}
	if t.err == nil {
		a.tick()
		if a.gate, a.claim = t.gate, t.claim; a.claim != nil {
			a.leave(cancelled)
		}
		a.rise(nil)
	}
	return true
}

// unheard says that nothing was answered yet to who stands in line for t.
func (a *acquisition) unheard(t *turn) bool {
	c := a.e.gates.ahead(t)
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fate == wanted && c.stay.phase == joining
}

// rise gives the seat up, if the claim has not taken it along.
func (a *acquisition) rise(err error) {
	g := a.gate
	if a.gate = nil; g == nil {
		return
	}
	if a.broken {
		a.e.gates.disperse(g, err)
		return
	}
	a.e.gates.vacate(g)
}

// missed is the error of a call whose turn has not come.
func (a *acquisition) missed(ctx context.Context, t *turn, why verdict) error {
	cause := error(nil)
	if why == closed {
		return ErrClosed
	}
	if why == cancelled {
		cause = ctx.Err()
	}
	if a.unheard(t) {
		return errors.Join(errUnheard, cause)
	}
	return a.behind(a.e.gates.ahead(t), cause)
}

// errUnheard: another call of this process has asked for the key, and has no answer.
var errUnheard = fmt.Errorf("%w: no answer yet about the key", ErrUnavailable)

// behind is the error of a call that got no further than behind another one of this
// process, whose claim is c.
func (a *acquisition) behind(c *claim, cause error) error {
	now := a.e.clk.now()
	held := &HeldError{Key: a.want.keys.first(), cause: cause}
	if a.stood {
		held.Waited = now.Sub(a.start)
	}
	if c == nil {
		return held
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fate == wanted && c.stay.phase < told {
		held.Holder, held.ExpiresIn = c.last.holder, max(0, c.last.expiresIn-c.silence(now))
	} else {
		held.Holder, held.ExpiresIn = c.e.name, max(0, c.stay.until.Sub(now))
	}
	return held
}
