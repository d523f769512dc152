package sqllease

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

const (
	// maxLives is how many lives of one client have claims at once. Claims on further
	// terms carry their own expiry.
	maxLives = 16
	// maxParting is how many claims one renewal takes out of its life.
	maxParting = 200
)

// terms are what claims have in common that one row renews.
type terms struct {
	inbox       [6]byte
	hold, grace time.Duration
}

// lasts is how long, in µs, such a life lasts from a renewal on; unsaid is the part of
// it that is never answered.
func (t terms) lasts(grain time.Duration) int64 { return micros(t.hold) + t.unsaid(grain) }

func (t terms) unsaid(grain time.Duration) int64 { return micros(t.grace) + micros(grain) }

// life is a row of sessions that claims of this client live by. All but its terms and
// number is guarded by the roster.
type life struct {
	terms   terms
	number  int64
	open    bool  // the row is there
	seen    int64 // its counter of changes when its claims were last looked at
	round   int64 // of its latest renewal
	members map[driver.ID]*member
}

// member is a claim that lives by a life, or may.
type member struct {
	life    *life
	number  int64  // of its stay
	until   int64  // it would have expired by itself since it was last named, by the database's clock
	behind  bool   // somebody waits behind it
	round   int64  // the renewal of its life that named it last
	since   uint64 // the roster's count when it was enrolled
	touched uint64 // how often a step of this client has changed something about it
	looked  uint64 // how much of that was done when the claim was last looked at
	leaving bool   // its claim may be out already, or should be
	parting bool   // a transaction is taking its claim out
}

// answers says whether the life's row tells how the stay is.
func (m *member) answers(number int64) bool {
	return m.number == number && m.touched == m.looked && !m.leaving
}

// roster knows which claims of this client live by which lives. It does no I/O. What a
// transaction changes of a claim is noted before it is committed, so that nothing is
// answered from the roster that is no longer so.
type roster struct {
	mu      sync.Mutex
	lives   map[terms]*life       // guarded by mu; to enrol claims in
	numbers map[int64]*life       // guarded by mu; the same by their numbers
	members map[driver.ID]*member // guarded by mu
	naming  map[driver.ID]int     // guarded by mu; transactions under way that may enrol a claim
	count   uint64                // guarded by mu; of claims ever enrolled
}

func newRoster() *roster {
	return &roster{
		lives:   make(map[terms]*life),
		numbers: make(map[int64]*life),
		members: make(map[driver.ID]*member),
		naming:  make(map[driver.ID]int),
	}
}

// home answers the life for claims on some terms; nil: there are too many.
func (r *roster) home(t terms) *life {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l, ok := r.lives[t]; ok {
		return l
	}
	if len(r.lives) >= maxLives && !r.evict() {
		return nil
	}
	l := &life{terms: t, number: newLife(), members: make(map[driver.ID]*member)}
	r.lives[t], r.numbers[l.number] = l, l
	return l
}

// newLife makes up the number of a life, which no other will have.
func newLife() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.BigEndian.Uint64(b[:])>>2) + 1
}

// evict forgets a life nobody lives by; its row expires.
func (r *roster) evict() bool {
	for _, l := range r.lives {
		if len(l.members) == 0 {
			r.drop(l)
			return true
		}
	}
	return false
}

func (r *roster) drop(l *life) {
	if r.lives[l.terms] == l {
		delete(r.lives, l.terms)
	}
	delete(r.numbers, l.number)
	for id := range l.members {
		delete(r.members, id)
	}
	clear(l.members)
}

// lose forgets a life that has ended, and whoever lived by it.
func (r *roster) lose(l *life) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(l)
}

// has says whether a claim lives by a life.
func (r *roster) has(id driver.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[id]
	return m != nil && !m.leaving
}

// isOpen says whether the row of a life was written.
func (r *roster) isOpen(l *life) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return l.open
}

func (r *roster) opened(l *life) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.open = true
}

// name notes that a transaction begins that may enrol these claims; touched is what has
// been done about them before. It answers false while another transaction is taking one
// of them out.
func (r *roster) name(items []driver.Renewal) (touched map[driver.ID]uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	touched = make(map[driver.ID]uint64, len(items))
	for _, item := range items {
		m := r.members[item.ID]
		if m != nil && m.parting {
			return nil, false
		}
		if m != nil {
			touched[item.ID] = m.touched
		}
	}
	for _, item := range items {
		r.naming[item.ID]++
	}
	return touched, true
}

// named notes that the transaction has ended.
func (r *roster) named(items []driver.Renewal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, item := range items {
		if r.naming[item.ID]--; r.naming[item.ID] == 0 {
			delete(r.naming, item.ID)
		}
	}
}

// expect notes that a transaction is about to enrol a claim. Should the outcome remain
// unknown and nobody name the claim again, it is taken out.
func (r *roster) expect(id driver.ID, l *life) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[id]
	switch {
	case m == nil:
		r.put(id, &member{life: l, leaving: true})
	case m.life != l:
		r.put(id, &member{life: l, leaving: true, touched: m.touched, looked: m.looked})
	}
}

// enrol notes that a claim lives by a life now, and when it would expire by itself. One
// that was given up meanwhile is only noted to be taken out.
func (r *roster) enrol(id driver.ID, m member, given bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.numbers[m.life.number] == nil {
		return
	}
	if old := r.members[id]; old != nil {
		m.touched = old.touched
	}
	r.count++
	m.since, m.round, m.leaving = r.count, m.life.round, given
	r.put(id, &m)
}

// put replaces what is known of a claim; r.mu is held.
func (r *roster) put(id driver.ID, m *member) {
	r.forget(id)
	r.members[id], m.life.members[id] = m, m
}

// forget is remove for those who hold r.mu.
func (r *roster) forget(id driver.ID) {
	if m := r.members[id]; m != nil {
		delete(m.life.members, id)
		delete(r.members, id)
	}
}

// remove notes that a claim lives by no life.
func (r *roster) remove(id driver.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(id)
}

// depart notes that a claim is given up: nothing is answered for it, and if it does not
// go it is taken out of its life.
func (r *roster) depart(id driver.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.members[id]; m != nil {
		m.leaving = true
	}
}

// owns says whether a life is one of this client's.
func (r *roster) owns(number int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.numbers[number] != nil
}

// touch notes that a step of this client changes something about a claim.
func (r *roster) touch(id driver.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.members[id]; m != nil {
		m.touched++
	}
}
