package sqllease

import (
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Bounds of one step.
const (
	maxGrants   = 32
	maxRemovals = 64
)

// lookAhead is how many waiting claims are asked when they could be gone.
const lookAhead = 64

// step is one atomic change of some lines. It removes the dead, does its own work,
// hands over, and collects whom to tell. It lives inside one transaction and keeps the
// one reading of the clock.
type step struct {
	*tx
	now      int64
	lines    map[string]*line
	granted  int
	removals int
	mine     bool // find has locked the claim it found
	told     []told
	ended    map[sessionKey]bool // lives that seemed to have expired, and whether they have ended
	fallen   bool                // there are lives that have expired
	enrolled *life               // of this client, that the step's claim lives by now
	kept     bool                // the step's claim lives by what it lived by before
}

// line is a line as far as the step has looked at it.
type line struct {
	glance
	key      string
	dirty    bool // a claim has left: somebody may hold now
	deadLeft bool // dead claims are left, since the step may remove no more
	cut      bool // a claim that fits was not granted, since the step may grant no more
	aside    bool // the step only swept here
	waited   bool // somebody waited when the step came
	kept     int64
	ahead    ahead
}

// ahead is who stands before a number of a line, kept for the next claim of the same
// line in the same transaction.
type ahead struct {
	below   int64
	count   int
	holders held
	front   held // the holders and the first that wait, at most lookAhead
	full    bool // front is the same for every greater number
}

// told is a client to be told about one of its claims.
type told struct {
	kind    driver.SignalKind
	claim   claim
	revoked bool
}

func newStep(t *tx) *step {
	return &step{tx: t, lines: make(map[string]*line)}
}

// open looks at the lines of the keys, first of all at those it has not seen, and
// removes their dead.
func (s *step) open(keys []string, id driver.ID) error {
	var dead []*line
	for _, key := range keys {
		l, err := s.look(key, id)
		if err != nil {
			return err
		}
		if l.dead() {
			dead = append(dead, l)
		}
	}
	for _, l := range dead {
		if err := s.bury(l); err != nil {
			return err
		}
	}
	return nil
}

func (s *step) look(key string, id driver.ID) (*line, error) {
	if l, ok := s.lines[key]; ok {
		return l, nil
	}
	if err := s.reach(key); err != nil {
		return nil, err
	}
	g, err := s.glance(key, id.Inbox(), id)
	if err != nil {
		return nil, err
	}
	if err := g.usable(s.d.dialect.Name); err != nil {
		return nil, err
	}
	if s.now == 0 {
		s.now = g.now
	}
	g.now = s.now
	l := &line{glance: g, key: key, waited: g.firstWaiting.Valid}
	s.lines[key] = l
	s.fallen = s.fallen || l.fallen()
	return l, nil
}

// again looks once more at a line that has changed.
func (s *step) again(l *line) error {
	g, err := s.glance(l.key, [6]byte{}, driver.ID{})
	if err != nil {
		return err
	}
	g.now, g.session, g.known = s.now, l.session, l.known
	l.glance = g
	return nil
}

// bury removes the dead of a line, wherever they stand.
func (s *step) bury(l *line) error {
	for l.dead() {
		room := maxRemovals - s.removals
		dead, err := s.seemDead(l, max(room, 1))
		if err != nil || len(dead) == 0 {
			return err
		}
		if room <= 0 {
			l.deadLeft = true
			return nil
		}
		before := s.removals
		if err := s.removeDead(dead); err != nil {
			return err
		}
		if s.removals == before { // others have locked what is left of them
			return nil
		}
		if err := s.again(l); err != nil {
			return err
		}
	}
	return nil
}

// seemDead finds claims of a line that have expired: those with an expiry of their own,
// the first holder, and those that live by a life. One may be among them twice.
func (s *step) seemDead(l *line, limit int) ([]claim, error) {
	key := []byte(l.key)
	var dead []claim
	if l.crowdExpiry.Valid && l.crowdExpiry.Int64 <= s.now {
		some, err := s.claims(stDead, key, s.now, limit)
		if err != nil {
			return nil, err
		}
		dead = some
	}
	if l.holders() && l.frontExpiry.Int64 <= s.now {
		some, err := s.claims(stDeadFirst, key, s.now)
		if err != nil {
			return nil, err
		}
		dead = append(dead, some...)
	}
	if left := limit - len(dead); l.fallen() && left > 0 {
		some, err := s.claims(stDeadFallen, key, s.now, left)
		if err != nil {
			return nil, err
		}
		dead = append(dead, some...)
	}
	return dead[:min(len(dead), limit)], nil
}

// removeDead removes those that are dead of claims that seem to be. One may be among them
// twice.
func (s *step) removeDead(rows []claim) error {
	gone := make(map[driver.ID]bool)
	for _, c := range rows {
		if gone[c.id] {
			continue
		}
		gone[c.id] = true
		dead, err := s.isDead(c)
		if err != nil {
			return err
		}
		if !dead {
			continue
		}
		if err := s.remove(c); err != nil {
			return err
		}
	}
	return nil
}

// remove takes a claim out of all its lines and marks them for handing over.
func (s *step) remove(c claim) error {
	rows := []claim{c}
	if c.keys > 1 {
		var free bool
		var err error
		if rows, free, err = s.places(c.id); err != nil || !free {
			return err
		}
	}
	s.removals++
	s.touch(c.id, c.session)
	for _, r := range rows {
		l, err := s.look(r.key, driver.ID{})
		if err != nil {
			return err
		}
		l.dirty = true
		l.kept = max(l.kept, keep(r.hold))
		l.ahead = ahead{}
	}
	return s.exec(stDelete, c.id[:])
}

// handOver lets the front of each changed line hold.
func (s *step) handOver() error {
	for _, l := range s.lines {
		if !l.dirty {
			continue
		}
		l.dirty = false
		if err := s.remember(l); err != nil {
			return err
		}
		if !l.firstWaiting.Valid {
			continue
		}
		if err := s.again(l); err != nil {
			return err
		}
		if _, err := s.promote(l, driver.ID{}); err != nil {
			return err
		}
	}
	return nil
}

// promote makes those waiting at the front of a line hold, as far as they fit. It stops
// at a claim of several keys, which only its own step may promote: that one is told so.
// fits says whether the caller's claim holds by now, or, with several keys, could here.
func (s *step) promote(l *line, self driver.ID) (fits bool, err error) {
	if !l.firstWaiting.Valid {
		return false, nil
	}
	h, err := s.held(l.key)
	if err != nil {
		return false, err
	}
	before := s.granted
	for limit, more := 1, true; more; limit = maxGrants {
		front, err := s.claims(stFront, []byte(l.key), limit)
		if err != nil {
			return false, err
		}
		more = len(front) == limit
		for _, c := range front {
			v, err := s.consider(l, h, c, self)
			if err != nil {
				return false, err
			}
			fits = fits || (c.id == self && v != stays)
			if v != holds {
				more = false
				break
			}
			h = h.with(c)
		}
	}
	if s.granted == before {
		return fits, nil
	}
	l.ahead = ahead{}
	return fits, s.again(l)
}

// verdict is what becomes of a claim at the front of those that wait.
type verdict uint8

const (
	stays verdict = iota // it is dead, does not fit, or the step may grant no more
	turns                // it fits, but only its own step may let it hold
	holds                // it holds now
)

// consider lets a claim hold behind these holders if it may. Its expiry stays.
func (s *step) consider(l *line, h held, c claim, self driver.ID) (verdict, error) {
	switch {
	case c.expiresAt <= s.now || !h.admits(c.weight, c.capacity):
		return stays, nil
	case c.keys > 1:
		if c.id != self {
			s.told = append(s.told, told{kind: driver.Turn, claim: c})
		}
		return turns, nil
	case s.granted == maxGrants:
		l.cut = true
		return stays, nil
	}
	s.granted++
	if c.id != self {
		s.told = append(s.told, told{kind: driver.Granted, claim: c})
	}
	return holds, s.exec(stStand, c.id[:])
}

// remember keeps the number of a line that may be empty now for as long as it must
// outlive its last claim.
func (s *step) remember(l *line) error {
	if !l.last.Valid || l.kept == 0 || l.sweepAt.Int64 >= s.now+l.kept {
		return nil
	}
	return s.keep(l, s.now+2*l.kept)
}

// keep writes when a line is due.
func (s *step) keep(l *line, sweepAt int64) error {
	l.sweepAt.Int64, l.sweepAt.Valid = sweepAt, true
	return s.exec(stKeepLine, []byte(l.key), sweepAt)
}

// save writes a line's last number, when it is due, and, where that is not 0, the number
// of a claim that began to wait.
func (s *step) save(l *line, sweepAt, waited int64) error {
	l.last.Valid = true
	l.sweepAt.Int64, l.sweepAt.Valid = sweepAt, true
	return s.exec(stSaveLine, []byte(l.key), l.last.Int64, sweepAt, waited)
}

// finish notes whose sessions are to be told that something happened to their claims, and
// tells this client's own once the step is committed.
func (s *step) finish() error {
	for _, t := range s.told {
		inbox := t.claim.id.Inbox()
		if !s.d.ear.hears(inbox) {
			s.raise(sessionKey{inbox: inbox})
			continue
		}
		s.after = append(s.after, func() {
			s.d.Tell(News{Kind: t.kind, Key: t.claim.key, ID: t.claim.id, Number: t.claim.number, Revoked: t.revoked})
		})
	}
	for _, l := range s.lines {
		if l.waited == l.firstWaiting.Valid || l.key == RememberedKey {
			continue
		}
		if err := s.touchSitters(l); err != nil {
			return err
		}
	}
	if err := s.dropEnded(); err != nil {
		return err
	}
	if s.fallen {
		s.after = append(s.after, s.d.buryFallen)
	}
	return nil
}

// capped says whether the step stopped with work left.
func (s *step) capped() bool {
	for _, l := range s.lines {
		if !l.aside && (l.deadLeft || l.cut) {
			return true
		}
	}
	return false
}

// expiry is the expiry a life gives from now, and the part of it that is never answered.
func (s *step) expiry(life driver.Life, waiting bool) (expiresAt, grace int64) {
	grain := micros(s.d.dialect.Grain)
	if waiting {
		return s.now + micros(life.Wait) + grain, grain
	}
	grace = micros(life.Grace) + grain
	return s.now + micros(life.Hold) + grace, grace
}

// lives is what is left of a claim's life, as it may be answered.
func (s *step) lives(c claim) time.Duration {
	return max(duration(c.expiresAt-c.grace-s.now), time.Microsecond)
}
