package pglease

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// book is what this client knows of its claims beyond what every SQL store knows.
type book struct {
	mu       sync.Mutex
	own      [6]byte              // guarded by mu; the inbox of the last claim
	claims   map[driver.ID]*entry // guarded by mu
	digests  map[digest]driver.ID // guarded by mu; notifications name no IDs
	sessions map[lifetime]int64   // guarded by mu; the open session of a life
	last     int64                // guarded by mu; the greatest number of a session
}

// entry is one claim.
type entry struct {
	keys  []string
	held  *heldClaim // nil unless it lives with a session
	until int64      // the greatest expiry that a renewal of a session which named it has given

	// It may live with this one: a step of which nobody has learnt the outcome has named it, or
	// it is given up. Nothing is answered from here.
	maybe  *heldClaim
	naming int // steps under way that name it

	// It is being taken out of its session. A renewal that named it now could be undone.
	parting *heldClaim

	// A Join of it was sent whose outcome nobody has learnt.
	doubt bool
	life  driver.Life
}

// heldClaim is a claim that is renewed by its session alone.
type heldClaim struct {
	number  int64
	life    lifetime
	session int64
	seen    int64 // the client's counter when the claim was last looked at
	behind  bool
	until   int64     // the session's expiry as of the last renewal that named the claim
	named   time.Time // of that renewal
}

// lifetime is what claims of one session have in common, in microseconds.
type lifetime struct{ hold, grace int64 }

// digest is how a notification names an ID: whoever may connect to a database can listen
// to every channel, and an ID is the proof of ownership.
type digest [16]byte

func digestOf(id driver.ID) digest {
	sum := sha256.Sum256(id[:])
	return digest(sum[:16])
}

func newBook() *book {
	return &book{claims: make(map[driver.ID]*entry), digests: make(map[digest]driver.ID), sessions: make(map[lifetime]int64)}
}

// join notes a claim before its Join is sent.
func (b *book) join(id driver.ID, keys []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.own = id.Inbox()
	if _, ok := b.claims[id]; !ok {
		b.claims[id] = &entry{keys: slices.Clone(keys)}
		b.digests[digestOf(id)] = id
	}
}

func (b *book) inbox() [6]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.own
}

// doubt notes that a Join of this client may have been done, or be done later.
func (b *book) doubt(id driver.ID, life driver.Life) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.claims[id]; ok {
		e.doubt, e.life = true, life
	}
}

func (b *book) doubtful(id driver.ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.claims[id]
	return ok && e.doubt
}

// leaving says more of a claim that leaves than its client knows: a copy of its Join that
// this driver has sent may still be under way. From here on no session renews it.
func (b *book) leaving(l driver.Leaving) driver.Leaving {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.claims[l.ID]
	if !ok {
		return l
	}
	e.held, e.maybe = nil, cmp.Or(e.held, e.maybe)
	if e.doubt {
		l.Unanswered = true
		l.Remember = max(l.Remember, e.life.Hold+e.life.Grace, e.life.Wait)
	}
	return l
}

// forget strikes out a claim that is not in line any more.
func (b *book) forget(id driver.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.claims[id]; ok {
		delete(b.claims, id)
		delete(b.digests, digestOf(id))
	}
}

// key answers the first key of a claim.
func (b *book) key(id driver.ID) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.claims[id]
	if !ok {
		return "", false
	}
	return e.keys[0], true
}

// named finds the claim a notification speaks of.
func (b *book) named(d digest) (id driver.ID, key string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id, ok = b.digests[d]
	if !ok {
		return id, "", false
	}
	return id, b.claims[id].keys[0], true
}

// held answers a claim that the open session of its life renews.
func (b *book) held(item driver.Renewal) (heldClaim, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.claims[item.ID]
	if !ok || e.held == nil {
		return heldClaim{}, false
	}
	h := *e.held
	if item.Mode != driver.Extend || item.Life.Own || h.life != lifetimeOf(item.Life) {
		e.held = nil
		return heldClaim{}, false
	}
	return h, b.sessions[h.life] == h.session && (item.Number == 0 || item.Number == h.number)
}

// hold notes that a claim lives with a session. knows is asked once more under the
// lock: a claim that is given up must not be noted afterwards.
func (b *book) hold(id driver.ID, h heldClaim, knows func(driver.ID) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.claims[id]; ok && knows(id) {
		e.held, e.maybe, e.until = &h, nil, max(e.until, h.until)
	}
}

// naming is a claim that a step may let live with a session.
type naming struct {
	id      driver.ID
	session int64
	life    lifetime
}

// begin notes that a step begins that may let claims live with a session: should its outcome
// remain unknown and no renewal name them again, they are taken out. It answers false
// while one of them is being taken out.
func (b *book) begin(all []naming, at time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range all {
		if e, ok := b.claims[n.id]; ok && e.parting != nil {
			return false
		}
	}
	for _, n := range all {
		if e, ok := b.claims[n.id]; ok {
			e.naming++
			e.maybe = &heldClaim{life: n.life, session: n.session, named: at}
		}
	}
	return true
}

// end notes that the step has ended.
func (b *book) end(all []naming) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range all {
		if e, ok := b.claims[n.id]; ok {
			e.naming--
		}
	}
}

// apart notes that a claim does not live with a session.
func (b *book) apart(id driver.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.claims[id]; ok {
		e.maybe = nil
	}
}

// confirm notes that a claim was named while its session was renewed, if that is so and
// nothing has happened to it. Where something has happened to a claim of this client it
// must be looked at; f is what was seen then.
func (b *book) confirm(item driver.Renewal, t touched, f *seen) (h heldClaim, as, look bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.claims[item.ID]
	if !ok || e.held == nil || e.held.session != t.number || !t.alive || t.changed < 0 {
		return heldClaim{}, false, false
	}
	if f != nil {
		if f.Number != e.held.number || f.Waiting || f.Revoked || f.session != t.number {
			return heldClaim{}, false, false
		}
		e.held.seen, e.held.behind = t.changed, f.behind
	}
	if e.held.seen != t.changed {
		return heldClaim{}, false, true
	}
	e.held.until, e.held.named, e.until = t.until, t.at, max(e.until, t.until)
	return *e.held, true, false
}

// unnamed are claims that live with a session though no renewal has named them for so
// long that they must not live by others' renewals.
func (b *book) unnamed(session int64, now time.Time) []parting {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []parting
	for id, e := range b.claims {
		if h := cmp.Or(e.held, e.maybe); h != nil && h.session == session && e.naming == 0 && now.Sub(h.named) > micros(h.life.hold)/2 {
			e.parting, e.held, e.maybe = h, nil, nil
		}
		if h := e.parting; h != nil && h.session == session && len(all) < maxChunk {
			all = append(all, parting{id: id, keys: e.keys, until: e.until})
		}
	}
	return all
}

// parts says whether a claim is being taken out of its session.
func (b *book) parts(id driver.ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.claims[id]
	return ok && e.parting != nil
}

// parted notes that a claim was taken out of its session.
func (b *book) parted(id driver.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.claims[id]; ok {
		e.parting = nil
	}
}

// parting is a claim that leaves its session.
type parting struct {
	id    driver.ID
	keys  []string
	until int64
}

// release notes that a claim lives with no session.
func (b *book) release(id driver.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.claims[id]; ok {
		e.held = nil
	}
}

// session answers the number of the open session of a life, or one to open it with: no
// number is ever used for a second session.
func (b *book) session(l lifetime) (number int64, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n, ok := b.sessions[l]; ok {
		return n, true
	}
	b.last++
	return b.last, false
}

// opened notes an open session. Where two were opened at once, the claims of one move.
func (b *book) opened(l lifetime, number int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.sessions[l]; !ok {
		b.sessions[l] = number
	}
}

// expired notes that a session is no more.
func (b *book) expired(number int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for l, n := range b.sessions {
		if n == number {
			delete(b.sessions, l)
		}
	}
}

func lifetimeOf(l driver.Life) lifetime { return lifetime{ceil(l.Hold), ceil(l.Grace)} }
