package hasp

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// want is what a call asks for.
type want struct {
	keys             keySet
	kind             kind
	weight, capacity int64
	opts             LockOptions // resolved
	err              error       // what is wrong with the options
}

// kind tells what may share a nested lock.
type kind uint8

const (
	mutexKind kind = iota
	readKind
	writeKind
	permitKind
)

// life is what each step of the claim asks the store for.
func (w *want) life(ttl time.Duration) driver.Life {
	return driver.Life{Hold: ttl, Grace: w.opts.Grace, Wait: min(ttl, waitLife), Own: w.opts.NoRenew}
}

// fate is what a claim's owner wants of it.
type fate uint8

const (
	wanted    fate = iota // a call waits for it
	owned                 // a lease was handed out
	lingering             // released, and kept for the next call of this process
	releasing             // a call is leaving with it
	leaving               // given up; the renewer leaves until that is answered
	parked                // kept or detached: it lives on without this client
	finished              // nothing more is sent for it
)

// claim is one attempt to get keys, and from the grant on the lease. It lives from
// before its Join is sent until the store has answered that it is gone.
type claim struct {
	e     *engine
	want  *want
	id    driver.ID
	lease Lease

	mu       sync.Mutex
	stay     stay
	ttl      time.Duration // of the next renewal; Extend changes it
	sent     uint64        // calls begun
	asked    uint64        // ordinal of the latest call that was answered
	last     lastAnswer
	answered time.Time     // when the store last answered, by the clock that stops in a sleep
	next     time.Time     // when the next renewal is to be sent
	urged    uint64        // the latest call when a signal last asked for a renewal: its answer may know nothing of that
	since    time.Time     // of the grant
	giveUpBy time.Time     // leaving, parked or lost: the claim cannot live after this; lingering: it is left then
	failure  error         // of the last renewal; while joining, of the Join that another has sent for it
	asking   *budget       // of the Join under way: its answer is not waited for once it is not needed
	wake     chan struct{} // of the waiting call; nil while there is none
	failures int32         // renewals that failed, in a row
	looks    int32         // looks of an unheard waiter, in a row
	idle     int32         // brief looks of a waiter that changed nothing, in a row
	joins    int32         // Joins whose answer is missing
	fate     fate
	quiet    bool  // no signal of its grant is to come
	extended bool  // Extend was called: it may live longer than the next is to have it
	index    uint8 // local index of the lease's token; never changed
	rivals   rivals
	gate     *gate  // in which it has the seat, for its call or as a lease
	heir     *claim // that goes on with it in this process; what comes for this one is that one's

	// guarded by the renewer's lock
	due      time.Time
	together time.Duration
	slot     int
}

// lastAnswer is what of the last answer its call may need.
type lastAnswer struct {
	state     driver.State
	revoked   bool
	ahead     int32
	holder    string
	expiresIn time.Duration
}

// newClaim makes a claim and makes it known to the listener.
func (e *engine) newClaim(w *want, index uint8) (*claim, error) {
	c := &claim{e: e, want: w, index: index, ttl: w.opts.TTL}
	c.lease.claim = c
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shut {
		return nil, ErrClosed
	}
	c.id = e.ids.next()
	e.claims[c.id] = c // before its Join is sent, since a signal may overtake the answer
	return c, nil
}

// ref names the stay as far as it is known; c.mu is held or the claim is new.
func (c *claim) ref() driver.Ref {
	return driver.Ref{ID: c.id, Number: c.stay.number, Keys: c.want.keys.full}
}

// lockNewest locks the claim that goes on with this one's place, which is often itself.
func (c *claim) lockNewest() *claim {
	c.mu.Lock()
	for c.heir != nil {
		heir := c.heir
		c.mu.Unlock()
		c = heir
		c.mu.Lock()
	}
	return c
}

// begin notes that a call is sent now; c.mu is held.
func (c *claim) begin(now time.Time) sending {
	c.sent++
	if c.sent == 1 {
		c.answered = c.e.clk.local(now) // nothing could be answered before
	}
	return sending{at: now, ordinal: c.sent, number: c.stay.number}
}

// take takes in an answer; c.mu is held.
func (c *claim) take(call sending, a driver.Standing, now time.Time) {
	c.answered, c.failures, c.failure = c.e.clk.local(now), 0, nil
	c.asked = max(c.asked, call.ordinal)
	c.last = lastAnswer{a.State, a.Revoked, int32(min(a.Ahead, math.MaxInt32)), a.Holder, a.ExpiresIn} //nolint:gosec // bounded
	c.quiet = c.quiet || call.ordinal == 1 && a.State == driver.Holding                                // no step of another has granted it
	c.stay = c.stay.answered(call, a, c.sent)
	if a.State == driver.Holding || a.State == driver.Waiting {
		c.rivals = c.rivals.answered(call.at, a.Behind)
	}
	c.learn(now)
}

// learn draws what follows from a changed stay; c.mu is held.
func (c *claim) learn(now time.Time) {
	if !c.confirms() {
		c.stay = c.stay.used(now)
	}
	c.stay = c.stay.passed(now)
	switch c.stay.phase {
	case told: // one answered renewal is owed
		c.next = now
	case joining: // a signal overtook the answer, which should come any moment
		c.next = now.Add(overtaken)
	case holding:
		if c.since.IsZero() {
			c.since = now
		}
	case waiting, over:
	}
	c.settle(now)
}

// overtaken is how long an answer may come after the signal it should have come
// before, until it is asked for once more.
const overtaken = 50 * time.Millisecond

// signal takes in an addressed signal.
func (c *claim) signal(s driver.Signal) {
	c = c.lockNewest()
	defer c.mu.Unlock()
	now := c.e.clk.fresh() // or a signal that outlasted a sleep would be believed
	switch s.Kind {
	case driver.Granted:
		was := c.stay.phase
		c.stay = c.stay.granted(s.Number, c.sent)
		if was != c.stay.phase { // who has come behind since the last answer is not known
			c.rivals = c.rivals.wanted(now)
		}
	case driver.Ended:
		c.stay = c.stay.ended(s.Number, s.Revoked)
	case driver.Turn:
		c.next, c.urged = now, c.sent
	case driver.Freed, driver.Wanted, driver.Changed, driver.Missed:
	}
	c.learn(now)
}

// confirms says whether a signalled grant must be renewed before it is used.
func (c *claim) confirms() bool { return c.want.opts.NoRenew || c.e.feats.ConfirmGrant }

// hurry renews a waiting claim at once: signals may have been missed.
func (c *claim) hurry(now time.Time) {
	c = c.lockNewest()
	defer c.mu.Unlock()
	if c.fate == lingering || c.fate == wanted && (c.stay.phase == joining || c.stay.phase == waiting || c.stay.phase == told) {
		c.next, c.urged = now, c.sent
		c.settle(now)
	}
}

// settle acts on what the claim knows now: it tells the waiting call, ends a lease
// that is lost, and sets when the renewer looks next; c.mu is held.
func (c *claim) settle(now time.Time) {
	switch c.fate {
	case wanted:
		if c.asking != nil && c.stay.phase != joining {
			c.asking.end()
		}
		if c.wake != nil && (c.stay.phase == holding || c.stay.phase == over) {
			select {
			case c.wake <- struct{}{}:
			default:
			}
		}
		if c.stay.phase == holding && c.wake == nil && c.joins == 0 {
			return // granted by its Join: the call takes it at once, which schedules it
		}
		if c.renewable() {
			c.schedule(c.dueWanted(now))
		}
	case owned:
		if c.stay.phase == over {
			c.lose(now)
			return
		}
		c.schedule(c.dueOwned())
	case lingering:
		c.linger(now)
	case leaving:
		c.schedule(c.next)
	case parked:
		c.rest(now)
	case finished:
		c.e.renewals.remove(c)
	case releasing: // its place in the queue is taken by nothing, and soon given up
	}
}

// rest lets a parked or lost claim lie. One whose grant a signal may tell, perhaps once
// more, stays listed as long as it can live: that signal would find it unknown, and it
// would be left (P10). c.mu is held.
func (c *claim) rest(now time.Time) {
	if c.quiet || !now.Before(c.giveUpBy) {
		c.e.renewals.remove(c)
		c.e.unlist(c)
		return
	}
	c.e.list(c)
	c.schedule(c.giveUpBy)
}

// tick answers what is to be sent for a claim that is due.
func (c *claim) tick(now time.Time) (errand, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.fate {
	case wanted:
		return c.tickWanted(now)
	case owned:
		return c.tickOwned(now)
	case lingering:
		c.stay = c.stay.passed(now)
		if c.linger(now); c.fate == lingering {
			return c.errand(now, driver.Extend), true
		}
	case leaving:
		if now.After(c.giveUpBy) {
			c.e.forget(c)
			return errand{}, false
		}
		return c.errand(now, driver.Drop), true
	case parked:
		c.rest(now)
	case releasing, finished:
	}
	return errand{}, false
}

func (c *claim) tickWanted(now time.Time) (errand, bool) {
	if c.silence(now) >= answerLimit && c.wake != nil {
		select { // the call finds that the store is silent, and gives the claim up
		case c.wake <- struct{}{}:
		default:
		}
		return errand{}, false
	}
	if !c.renewable() {
		return errand{}, false
	}
	return c.errand(now, driver.Extend), true
}

// renewable says whether a waiting claim can be renewed: before an answer or a signal
// named its stay, only its Join can.
func (c *claim) renewable() bool { return c.stay.number != 0 && c.stay.phase != over }

func (c *claim) tickOwned(now time.Time) (errand, bool) {
	if c.stay = c.stay.passed(now); c.stay.phase == over {
		c.lose(now)
		return errand{}, false
	}
	if !c.renews() {
		c.schedule(c.stay.until)
		return errand{}, false
	}
	return c.errand(now, driver.Extend), true
}

// errand makes one item, and is due again when it has failed; c.mu is held.
func (c *claim) errand(now time.Time, mode driver.Mode) errand {
	patience := max(interval(c.stay.life), interval(minTTL))
	if c.stay.life == 0 {
		patience = interval(min(c.ttl, waitLife))
	}
	job := errand{claim: c, call: c.begin(now), patience: min(patience, callLimit)}
	job.item = driver.Renewal{Ref: c.ref(), Mode: mode, Life: c.want.life(c.ttl)}
	if mode == driver.Drop {
		job.item.Unanswered = c.joins > 0
		job.item.Remember = rememberFor(c.ttl, c.want.opts.Grace)
	}
	c.next = now.Add(job.patience)
	switch {
	case c.fate == owned && c.stay.until.Before(c.next):
		c.schedule(c.stay.until)
	case c.fate == wanted:
		c.schedule(c.dueWanted(now))
	case c.fate == lingering:
		c.linger(now)
	default:
		c.schedule(c.next)
	}
	return job
}

// renewed takes in the answer to an errand, or its lack.
func (c *claim) renewed(job errand, a driver.Standing, err error) {
	c = c.lockNewest()
	defer c.mu.Unlock()
	now := c.e.clk.now()
	if c.fate == leaving && job.item.Mode == driver.Drop {
		c.dropped(now, a, err)
		return
	}
	if c.fate != wanted && c.fate != owned && c.fate != lingering {
		return
	}
	if err != nil {
		c.failures++
		c.failure = err
		life := min(c.ttl, max(c.stay.life, minTTL))
		if next := now.Add(retryPause(life, int(c.failures)-1)); next.Before(c.next) || c.failures == 1 {
			c.next = next
		}
		c.tell(EventRenewFailed, now.Sub(job.call.at), unavailable(err))
		c.settle(now)
		return
	}
	if job.call.ordinal > c.asked || c.stay.phase == told {
		c.plan(job.call, a, now)
	}
	if a.State == driver.Holding {
		c.tell(EventRenewed, now.Sub(job.call.at), nil)
	}
	c.take(job.call, a, now)
}

// tell reports a renewal of an owned claim, if anybody asks.
func (c *claim) tell(kind EventKind, took time.Duration, err error) {
	if c.fate == owned && c.e.obs.tell != nil {
		c.e.obs.later(c.e.life, c.lease.event(kind, "renew", took, err))
	}
}

// dropped takes in the answer to a Leave that the renewer repeated.
func (c *claim) dropped(now time.Time, a driver.Standing, err error) {
	if err != nil {
		c.failures++
		c.next = now.Add(min(retryPause(c.ttl, int(c.failures)), callLimit)) // others wait for it, however long the TTL is
		c.settle(now)
		return
	}
	c.lease.left(a.State == driver.Left, true)
	c.e.forget(c)
}

// giveUp hands the claim to the renewer, which leaves with it until that is answered
// (P10); c.mu is held.
func (c *claim) giveUp(now time.Time) {
	c.e.list(c)
	c.fate = leaving
	c.failures = 0
	c.next = now
	c.giveUpBy = now.Add(rememberFor(c.ttl, c.want.opts.Grace))
	c.settle(now)
}

// lose ends the lease: no renewal any more, and the news to everybody; c.mu is held.
// The claim itself is left when its owner calls Release, not before, since Grace
// would be void otherwise (P13).
func (c *claim) lose(now time.Time) {
	c.unseat()
	if c.lease.lost() != nil {
		c.rest(now) // an owner who never releases must not keep it here
		return
	}
	c.giveUpBy = now.Add(rememberFor(c.ttl, c.want.opts.Grace))
	c.rest(now)
	lost := &LostError{Key: c.want.keys.first(), Token: c.token(), Revoked: c.stay.revoked}
	switch {
	case c.last.state == driver.Gone:
		lost.Holder = c.last.holder
	case now.Before(c.stay.until) || c.renews():
	case c.want.opts.NoRenew:
		lost.why = "the TTL of a fixed lease is over"
	default:
		lost.why = fmt.Sprintf("held for longer than MaxHold (%s), so it was no longer renewed", c.want.opts.MaxHold)
	}
	c.e.obs.later(c.e.life, c.lease.event(EventLost, "hold", now.Sub(c.since), lost)) // before anybody can act on it
	c.lease.end(lost)
}

// tokenNow is token for those who do not hold c.mu.
func (c *claim) tokenNow() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token()
}
