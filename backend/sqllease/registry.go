package sqllease

import (
	"maps"
	"slices"
	"sync"

	"github.com/hasp-dev/hasp/driver"
)

// registry is what this client knows of its claims in line. The poller compares it with
// the database.
type registry struct {
	mu    sync.Mutex
	stays map[driver.ID]*stay // guarded by mu
}

// stay is one known claim.
type stay struct {
	id      driver.ID
	number  int64 // 0 until the Join is answered
	keys    []string
	holds   bool
	revoked bool        // the client was told
	life    driver.Life // that was asked for last
}

// expect notes a claim before its Join is sent.
func (r *registry) expect(ref driver.Ref, life driver.Life) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.stays[ref.ID]; !ok {
		r.stays[ref.ID] = &stay{id: ref.ID, keys: slices.Clone(ref.Keys)}
	}
	r.stays[ref.ID].life = life
}

// ask notes the life a renewal asks for.
func (r *registry) ask(id driver.ID, life driver.Life) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.stays[id]; s != nil {
		s.life = life
	}
}

// life answers the life that was asked for last.
func (r *registry) life(id driver.ID) (life driver.Life, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.stays[id]; s != nil {
		return s.life, true
	}
	return driver.Life{}, false
}

// settle notes what a step has answered.
func (r *registry) settle(c *Client, ref driver.Ref, st driver.Standing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.stays[ref.ID]
	switch st.State {
	case driver.Refused, driver.Gone, driver.Left:
		delete(r.stays, ref.ID)
	case driver.Holding, driver.Waiting:
		if !ok { // its Leave is under way
			return
		}
		waits := st.State == driver.Waiting
		began := s.number != st.Number || s.holds == waits
		s.number, s.holds = st.Number, !waits
		if began && (waits || c.ear.idle.Load()) {
			c.ear.rouse()
		}
	}
}

// drop forgets a claim that is given up.
func (r *registry) drop(id driver.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.stays, id)
}

func (r *registry) knows(id driver.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.stays[id]
	return ok
}

func (r *registry) waits(id driver.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.stays[id]
	return ok && !s.holds
}

// count answers how many claims wait and how many hold.
func (r *registry) count() (waiting, holding int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.stays {
		if s.holds {
			holding++
		} else {
			waiting++
		}
	}
	return waiting, holding
}

// all copies the claims of one inbox.
func (r *registry) all(inbox [6]byte) []stay {
	r.mu.Lock()
	defer r.mu.Unlock()
	var stays []stay
	for s := range maps.Values(r.stays) {
		if s.id.Inbox() == inbox {
			stays = append(stays, *s)
		}
	}
	return stays
}

// lines names a few of the keys claims wait for.
func (r *registry) lines(limit int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := make(map[string]bool)
	for s := range maps.Values(r.stays) {
		for _, key := range s.keys {
			if !s.holds && len(keys) < limit {
				keys[key] = true
			}
		}
	}
	return slices.Collect(maps.Keys(keys))
}

// news notes what was seen of a stay in the database and says whether to tell it: a
// stay whose number changed, or that was given up meanwhile, is no longer the one seen.
func (r *registry) news(seen stay, kind driver.SignalKind, revoked bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.stays[seen.id]
	if !ok || (s.number != 0 && s.number != seen.number) {
		return false
	}
	switch kind {
	case driver.Granted:
		if s.holds {
			return false
		}
		s.holds = true
	case driver.Ended:
		if revoked && s.revoked {
			return false
		}
		s.revoked = revoked
		if !revoked {
			delete(r.stays, seen.id)
		}
	case driver.Turn, driver.Freed, driver.Wanted, driver.Changed, driver.Missed:
	}
	return true
}
