package sqllease

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/hasp-dev/hasp/driver"
)

// maxSitters is how many holders of a line are told that somebody waits behind them.
const maxSitters = 32

var (
	// errLifeOver says that a claim was to live by a life that has ended. The transaction
	// is done again, with a new life.
	errLifeOver = errors.New("the session has expired")
	// errParting says that another transaction is just taking the claim out of its life.
	errParting = errors.New("the claim is being taken out of its session")
)

// sessionKey names a row of sessions.
type sessionKey struct {
	inbox   [6]byte
	session int64 // 0: the client itself
}

func (k sessionKey) compare(o sessionKey) int {
	return cmp.Or(slices.Compare(k.inbox[:], o.inbox[:]), cmp.Compare(k.session, o.session))
}

// lifeOf names the life a claim lives by.
func lifeOf(c claim) sessionKey { return sessionKey{inbox: c.id.Inbox(), session: c.session} }

// flush writes the rows of sessions that the transaction has to do with, all at its end
// and in order: those of others that something happened to, and the lives of this client
// that it has enrolled claims in.
func (t *tx) flush() error {
	if err := t.write(); err != nil {
		return err
	}
	for _, k := range slices.SortedFunc(maps.Keys(t.changed), sessionKey.compare) {
		if err := t.exec(stChange, k.inbox[:], k.session); err != nil {
			return err
		}
	}
	for l := range t.renewing {
		if err := t.renewLife(l); err != nil {
			return err
		}
	}
	return nil
}

// renewLife makes sure that a life goes on for as long as a claim was promised.
func (t *tx) renewLife(l *life) error {
	inbox, lasts := l.terms.inbox[:], l.terms.lasts(t.d.dialect.Grain)
	if !t.d.roster.isOpen(l) {
		n, err := t.affect(stOpenLife, inbox, l.number, lasts)
		if err != nil {
			return err
		}
		t.after = append(t.after, func() { t.d.roster.opened(l) })
		if n > 0 { // else it was by another transaction of this client, maybe one whose outcome was unknown
			return nil
		}
	}
	n, err := t.affect(stRenewLife, inbox, l.number, lasts)
	if err != nil || n > 0 {
		return err
	}
	p, err := t.pulse(sessionKey{inbox: l.terms.inbox, session: l.number})
	if err != nil || p.until > p.now { // it would have changed nothing, since the clock was set back
		return err
	}
	t.d.roster.lose(l)
	return errLifeOver
}

// enrol lets a claim live by this client's life on its terms, where there is one, and
// says whether it does.
func (s *step) enrol(c *claim, given driver.Life) bool {
	l := s.d.roster.home(terms{inbox: c.id.Inbox(), hold: given.Hold, grace: given.Grace})
	if l == nil {
		return false
	}
	s.d.roster.expect(c.id, l)
	if s.renewing == nil {
		s.renewing = make(map[*life]bool)
	}
	s.renewing[l] = true
	s.enrolled, c.session = l, l.number
	return true
}

// raise notes that something happened to a claim of a session.
func (t *tx) raise(k sessionKey) {
	if t.changed == nil {
		t.changed = make(map[sessionKey]bool)
	}
	t.changed[k] = true
}

// touch notes that something about a claim changes which its client would not see in the
// row of its life. It must be noted before the transaction is committed.
func (s *step) touch(id driver.ID, session int64) {
	k := sessionKey{inbox: id.Inbox(), session: session}
	switch {
	case session == 0 || s.ended[k]:
	case s.d.roster.owns(session):
		s.d.roster.touch(id)
	default:
		s.raise(k)
	}
}

// touchSitters tells the holders of a line that the first has begun to wait behind them,
// or that nobody does any more.
func (s *step) touchSitters(l *line) error {
	if few, ok := s.foreseen.sitters(l.key); ok {
		for _, c := range few {
			s.touch(c.id, c.session)
		}
		return nil
	}
	rows, err := s.query(stSitters, []byte(l.key), maxSitters)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id []byte
		var session int64
		if err := rows.Scan(&id, &session); err != nil {
			return err
		}
		s.touch(driver.ID(id), session)
	}
	return rows.Err()
}

// settled takes a claim that will not be renewed any more out of its life and answers the
// expiry it keeps. The life's row is locked by that: it is not renewed meanwhile.
func (s *step) settled(c claim) (int64, error) {
	if c.session == 0 {
		return c.expiresAt, nil
	}
	if err := s.exec(stChange, c.id[:6], c.session); err != nil {
		return 0, err
	}
	s.touch(c.id, c.session)
	p, err := s.pulse(lifeOf(c))
	return max(c.expiresAt, p.until), err
}

// pulse is what a life's row says.
type pulse struct {
	now     int64
	changed int64 // how often something happened to one of its claims
	until   int64 // 0: it has ended
}

func (t *tx) pulse(k sessionKey) (pulse, error) {
	var p pulse
	err := t.row(stLife, []any{k.inbox[:], k.session}, &p.now, &p.changed, &p.until)
	return p, err
}

// isDead says whether a claim that seems to have expired has: its life must be ended for
// that, so that no renewal can come after. Another's lock on the row keeps it alive.
func (s *step) isDead(c claim) (bool, error) {
	if c.session == 0 {
		return true, nil
	}
	k := lifeOf(c)
	if dead, ok := s.ended[k]; ok {
		return dead, nil
	}
	dead, err := s.endLife(k)
	if err == nil {
		s.note(k, dead)
	}
	return dead, err
}

// note keeps what was found of a life that seemed to have expired.
func (s *step) note(k sessionKey, dead bool) {
	if s.ended == nil {
		s.ended = make(map[sessionKey]bool)
	}
	s.ended[k] = dead
}

// endLife ends a life that has expired, or has ended before.
func (s *step) endLife(k sessionKey) (bool, error) {
	free := int64(1)
	var err error
	if s.locks != nil {
		if free, err = s.count(stFreeLife, k.inbox[:], k.session); err != nil {
			return false, err
		}
	}
	if free > 0 {
		n, err := s.affect(stKillLife, k.inbox[:], k.session, s.now)
		if err != nil || n > 0 {
			return err == nil, err
		}
	}
	p, err := s.pulse(k)
	return err == nil && p.until == 0, err
}

// dropEnded removes the rows of the lives that this step has ended or found ended, where
// no claim lives by them any more.
func (s *step) dropEnded() error {
	for k, dead := range s.ended {
		if !dead {
			continue
		}
		n, err := s.affect(stDropLife, k.inbox[:], k.session)
		if err != nil {
			return err
		}
		s.fallen = s.fallen || n == 0
	}
	return nil
}
